"""Whatever people do in whatever order, the queue keeps the design's rules 3.1 to 3.6.

A day is a list of acts, drawn at random, by three annotators and an adjudicator on a project with
random settings. After each act every rule is looked at anew, on the rows themselves. What people
were told is stored, is kept beside in plain lists, so that nothing is checked against itself.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation import importing, tasktypes
from annotation.errors import Refused
from annotation.items import taxonomy
from annotation.labelling import blind_names, queue, submissions
from annotation.labelling.queue import Offer, Waiting
from annotation.labelling.submissions import Submission
from annotation.models import (
    WORK_LIKE_STAGES,
    Item,
    Label,
    Mark,
    Membership,
    Project,
    Resolution,
    Revision,
    Role,
    Slot,
    Stage,
)
from annotation.settings import categories
from formats.rows import Row
from tests.builders import TEXTS, make_item, make_member, make_project

pytestmark = pytest.mark.django_db
PEOPLE = 3
FACTUAL = {"source_ability": "factual"}
CHOICES = ["valid", "invalid", "score-invariant", "not-sure"]
REASONS = ["needs-expert", "gold-wrong", "question-unclear", "tool-trouble"]


@dataclass
class Sent:
    """A submission that was acknowledged, as the person has it in mind."""

    label_id: int
    member: Membership
    said: Submission
    stage: str
    taxonomy: str


@dataclass
class Day:
    """A project, its people, the clock, what each has on the screen, and what was acknowledged."""

    project: Project
    people: list[Membership]
    adjudicator: Membership
    now: datetime
    screens: dict[int, Offer] = field(default_factory=dict)
    ahead: dict[int, list[Offer]] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)
    corrected: list[tuple[int, str]] = field(default_factory=list)
    # The category of each imported row, and the version under which each resolution was first seen.
    imported: list[str] = field(default_factory=list)
    resolved: dict[int, str] = field(default_factory=dict)

    def person(self, number: int) -> Membership:
        return Membership.objects.select_related("project__task_type").get(
            pk=self.people[number % PEOPLE].pk
        )


def begin(
    overlap: int, disputed: int, verify: bool, blind: bool, order: str = "file", begun: bool = False
) -> Day:
    project = make_project(
        overlap=overlap,
        disputed_overlap=disputed,
        verify=verify,
        blind_first=blind,
        order=order,
        order_seed=7,
        begun_first=begun,
    )
    people = [make_member(project) for _ in range(PEOPLE)]
    adjudicator = make_member(project, role=Role.ADJUDICATOR)
    for number in range(4):
        make_item(project, f"first-{number}")
    return Day(project, people, adjudicator, timezone.now())


# ------------------------------------------------------------------------------------------- acts


def look(day: Day, who: int, pick: int) -> None:
    member = day.person(who)
    offer = queue.next_offer(member, now=day.now, draw=1)
    if isinstance(offer, Offer):
        day.screens[member.pk] = offer
    else:
        check_truth(day, member, offer)


def look_ahead(day: Day, who: int, pick: int) -> None:
    offer = queue.next_offer(day.person(who), ahead=True, now=day.now, draw=1)
    if isinstance(offer, Offer) and pick % 2:
        day.screens[day.person(who).pk] = offer


def fetch_ahead(day: Day, who: int, pick: int) -> None:
    member = day.person(who)
    day.ahead[member.pk] = queue.list_ahead(member, now=day.now)


def label_ahead(day: Day, who: int, pick: int) -> None:
    """A page shows an item that was sent ahead, maybe long ago; its label comes now or later."""
    member = day.person(who)
    if there := day.ahead.get(member.pk):
        offer = day.screens[member.pk] = there[pick % len(there)]
        if pick % 3:
            submit(day, member, offer.submission(answers(day, offer, pick)))
        elif pick % 2:
            with suppress(Refused):
                token = submissions.read_token(offer.key, member)
                queue.hold_shown(member, token, now=day.now)


def label(day: Day, who: int, pick: int) -> None:
    member = day.person(who)
    if offer := day.screens.get(member.pk):
        submit(day, member, offer.submission(answers(day, offer, pick)))


def work(day: Day, who: int, pick: int) -> None:
    """As the label screen does it: look, fetch the item after, label."""
    look(day, who, pick)
    look_ahead(day, who, 0)
    label(day, who, pick)


def send_again(day: Day, who: int, pick: int) -> None:
    """A page that was sent before arrives once more: as it was, or with something else in it."""
    if not day.sent:
        return
    before = day.sent[pick % len(day.sent)]
    said = before.said if pick % 2 else replace(before.said, comment="changed")
    count = Label.objects.count()
    try:
        again = queue.store_label(before.member, said, stage=before.stage, now=day.now)
    except Refused:
        pass
    else:
        assert again.pk == before.label_id
    assert Label.objects.count() == count


def skip(day: Day, who: int, pick: int) -> None:
    member = day.person(who)
    if offer := day.screens.pop(member.pk, None):
        try:
            queue.skip_item(member, offer.submission(), now=day.now)
        except Refused:
            return
        kept = Mark.objects.in_force().filter(member=member, item=offer.item, kind="skip")
        assert kept.exists()


def undo(day: Day, who: int, pick: int) -> None:
    member = day.person(who)
    if offer := queue.undo_label(member, now=day.now):
        day.screens[member.pk] = offer


def reopen(day: Day, who: int, pick: int) -> None:
    member = day.person(who)
    keys = sorted({label.item.key for label in member.labels.select_related("item")})
    if keys:
        with suppress(Refused):
            day.screens[member.pk] = queue.reopen_item(member, keys[pick % len(keys)], now=day.now)


def correct(day: Day, who: int, pick: int) -> None:
    member = day.person(who)
    offer = day.screens.get(member.pk)
    if not offer:
        return
    text = f"A spider has {pick} legs."
    try:
        day.screens[member.pk] = queue.store_correction(
            member, offer.submission(), {"perturbed": text}, now=day.now
        )
    except Refused:
        return
    day.corrected.append((offer.item.pk, text))


def expire(day: Day, who: int, pick: int) -> None:
    day.now += timedelta(minutes=7 * (pick % 10))


def bring_in(day: Day, who: int, pick: int) -> None:
    """An import, new or of what is there already."""
    number, known = pick % (len(day.imported) + 1), taxonomy.load_taxonomy(day.project)
    new = known.offered[pick % len(known.offered)].slug
    word = day.imported[number] if number < len(day.imported) else new
    row = Row("in.csv", 1, {"key": f"in-{number}", "category": word, **TEXTS, **FACTUAL})
    checked = importing.parse_items([row], tasktypes.load_task_type(day.project), known)
    report = importing.store_items(day.project, checked)
    retired = known.category(known.category(word).merged_into or word).retired
    assert (len(report.bad), report.conflicts) == (retired, [])
    if report.new:
        day.imported.append(word)


def change_categories(day: Day, who: int, pick: int) -> None:
    """A lead adds a category, renames, retires or merges one, takes that back, or moves it to
    another group."""
    definition = deepcopy(day.project.taxonomy.definition)
    offered = [one for one in definition["category"] if not one.get("retired")]
    gone = [one for one in definition["category"] if one.get("retired")]
    one, other = offered[pick % len(offered)], offered[(pick + 1) % len(offered)]
    match pick % 6:
        case 0:
            name = f"Own {len(definition['category'])}"
            values = {"name": name, "ability": "factual", "expected_effect": "penalty"}
            definition, _ = categories.put(definition, "category", "", values)
        case 1:
            one["name"] += "!"
        case 2:
            one["retired"] = True
        case 3:
            one |= {"retired": True, "merged_into": other["slug"]}
        case 4 if gone:
            gone[pick % len(gone)] |= {"retired": False, "merged_into": ""}
        case _:
            one["ability"] = definition["ability"][pick % len(definition["ability"])]["slug"]
    with suppress(Refused):
        shown = day.project.taxonomy_id
        categories.save(day.project, definition, member=day.adjudicator, shown=shown, note="n")


def decide(day: Day, who: int, pick: int) -> None:
    """The adjudicator, or a second person, says what holds of what waits for them."""
    stage = Stage.VERIFY if pick % 2 else Stage.ADJUDICATE
    member = day.person(who) if pick % 2 else day.adjudicator
    member = Membership.objects.select_related("project__task_type").get(pk=member.pk)
    offer = queue.next_offer(member, stage=stage, now=day.now)
    if isinstance(offer, Offer):
        submit(day, member, offer.submission({"choice": CHOICES[pick % 3]}), stage)


def renew(day: Day, who: int, pick: int) -> None:
    member = day.person(who)
    held = queue.renew_holds(member, now=day.now)
    # By the names that the member's pages give them.
    items = {item.key for name in held if (item := blind_names.find_item(member, name))}
    assert len(items) == len(held)
    assert items == set(member.slots.filter(state="held").values_list("item__key", flat=True))


ACTS: list[Callable[[Day, int, int], None]] = [
    look, look_ahead, label, send_again, skip, undo, reopen, correct, expire, bring_in, decide,
    renew, fetch_ahead, label_ahead, change_categories,
]  # fmt: skip
# Working comes more often, or nothing would ever get done.
OFTEN = [*ACTS, work, work, work, work, look_ahead, undo, label, decide, fetch_ahead, label_ahead]


def answers(day: Day, offer: Offer, pick: int) -> dict[str, Any]:
    if offer.phase == "blind":
        blind = tasktypes.load_task_type(day.project).blind
        assert blind
        return {blind.fields[0].name: False}
    choice = CHOICES[pick % len(CHOICES)]
    return {"choice": choice} | (
        {"reason": REASONS[pick % len(REASONS)]} if choice == "not-sure" else {}
    )


def submit(day: Day, member: Membership, said: Submission, stage: str = Stage.LABEL) -> None:
    count = Label.objects.count()
    try:
        made = queue.store_label(member, said, stage=stage, now=day.now)
    except Refused:
        assert Label.objects.count() == count
        return
    if made.pk not in {sent.label_id for sent in day.sent}:
        day.sent.append(Sent(made.pk, member, said, stage, day.project.taxonomy_id))


# ------------------------------------------------------------------------------------------ rules


def check(day: Day) -> None:
    nothing_is_lost(day)
    no_place_is_filled_twice()
    nobody_holds_more_than_two(day)
    counters_are_true(day)
    resolutions_are_of_what_people_said(day)
    items_follow_the_categories(day)
    versions_are_those_of_then(day)


def nothing_is_lost(day: Day) -> None:
    """Rules 1 and 2: what was acknowledged is there as it was said, once; no label is more."""
    stored = {label.pk: label for label in Label.objects.select_related("revision")}
    assert set(stored) == {sent.label_id for sent in day.sent}
    for sent in day.sent:
        label = stored[sent.label_id]
        assert label.member_id == sent.member.pk
        assert label.answers.items() >= sent.said.answers.items()
        assert label.revision.number == sent.said.revision
    for item_id, text in day.corrected:
        kept = Revision.objects.filter(item=item_id)
        assert text in [revision.texts["perturbed"] for revision in kept]


def no_place_is_filled_twice() -> None:
    """Rule 3: counted labels and filled places are one to one, and a person has one an item."""
    counted = list(Label.objects.counted().select_related("slot", "revision", "item"))
    filled = Slot.objects.filter(state="filled")
    owners = {(label.slot_id, label.member_id) for label in counted}
    assert len(owners) == len(counted)
    assert owners <= set(filled.values_list("pk", "member"))
    per_person = Counter((label.item_id, label.stage, label.member_id) for label in counted)
    assert set(per_person.values()) <= {1}
    for label in counted:
        assert (label.slot.item_id, label.slot.stage) == (label.item_id, label.stage)
        # What counts speaks of the texts as they are.
        assert label.stage == "blind" or label.revision.number == label.item.revision_number


def nobody_holds_more_than_two(day: Day) -> None:
    for member in day.people:
        held = Slot.objects.filter(member=member, state="held", stage__in=WORK_LIKE_STAGES)
        assert held.count() <= 2
        assert held.filter(ahead=False).count() <= 1


def counters_are_true(day: Day) -> None:
    for member in day.people:
        labels = Label.objects.current().filter(member=member, stage__in=WORK_LIKE_STAGES)
        assert day.person(day.people.index(member)).labelled == labels.count()


def resolutions_are_of_what_people_said(day: Day) -> None:
    """A resolution is of the current texts, one an item, and somebody did say that."""
    current = Resolution.objects.current().select_related("item", "revision")
    for resolution in current:
        assert resolution.revision.number == resolution.item.revision_number
        labels = Label.objects.counted().filter(item=resolution.item)
        said = labels.exclude(stage="blind").values_list("choice", flat=True)
        assert resolution.value in set(said)


def items_follow_the_categories(day: Day) -> None:
    """Every item has a category of the project that is not merged, and its group."""
    known = taxonomy.load_taxonomy(day.project)
    for item in Item.objects.all():
        category = known.category(item.category)
        assert not category.merged_into
        assert item.ability == category.ability


def versions_are_those_of_then(day: Day) -> None:
    """A label and a final label name the categories that the project had when they came."""
    stored = dict(Label.objects.values_list("pk", "taxonomy"))
    assert stored == {sent.label_id: sent.taxonomy for sent in day.sent}
    for pk, digest in Resolution.objects.values_list("pk", "taxonomy"):
        assert digest == day.resolved.setdefault(pk, day.project.taxonomy_id)


def check_truth(day: Day, member: Membership, waiting: Waiting) -> None:
    """Rule 5: "nothing" means that no place is free for the person, and "held" counts the rest."""
    places = Slot.objects.in_project(day.project.pk).at_stage(Stage.LABEL).untouched_by(member.pk)
    skipped = Mark.objects.of_member(member.pk, "skip").values("item")
    places = places.exclude(item__in=skipped)
    assert not places.free_for(member.pk, day.now).exists()
    held = places.held(day.now)
    if waiting.held_by_others:
        others = Slot.objects.in_project(day.project.pk).at_stage(Stage.LABEL).held(day.now)
        assert waiting.next_free in set(others.values_list("held_until", flat=True))
    assert waiting.held_by_others >= held.count()


# ------------------------------------------------------------------------------------------- days

A_DAY = st.lists(
    st.tuples(st.sampled_from(OFTEN), st.integers(0, PEOPLE - 1), st.integers(0, 23)),
    min_size=12,
    max_size=40,
)
PROJECTS = st.tuples(
    st.integers(1, 3),
    st.sampled_from([0, 0, 4]),
    st.booleans(),
    st.sampled_from([False, True]),
    st.sampled_from(["file", "random"]),
    st.booleans(),
)


@pytest.mark.timeout(1800)  # in CI some minutes on a busy machine
@settings(
    # A day is up to forty examples of an act, so a third of the days is enough.
    max_examples=max(15, settings().max_examples // 3),
    derandomize=True,  # the same days each time; more of them by EXAMPLES=1000
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(project=PROJECTS, acts=A_DAY)
def test_any_interleaving_keeps_the_rules(
    project: tuple[int, int, bool, bool, str, bool], acts: list[tuple[Any, int, int]]
) -> None:
    """Some ten seconds: after each of up to forty acts of a day, all rules are checked anew."""
    with transaction.atomic():
        day = begin(*project)
        for act, who, pick in acts:
            act(day, who, pick)
            check(day)
        transaction.set_rollback(True)


def test_a_rule_that_is_broken_is_seen() -> None:
    """The checks themselves can fail: a label that vanished, a place that is filled twice, a label
    without its version, an item outside its group."""
    day = begin(1, 0, False, False)
    look(day, 0, 1)
    label(day, 0, 0)
    check(day)
    stored = Label.objects.get()
    Label.objects.filter(pk=stored.pk).update(answers={"choice": "invalid"})
    with pytest.raises(AssertionError):
        nothing_is_lost(day)
    Slot.objects.filter(pk=stored.slot_id).update(member=day.people[1])
    with pytest.raises(AssertionError):
        no_place_is_filled_twice()
    Label.objects.filter(pk=stored.pk).update(taxonomy=None)
    with pytest.raises(AssertionError):
        versions_are_those_of_then(day)
    Item.objects.filter(key="first-0").update(ability="reasoning")
    with pytest.raises(AssertionError):
        items_follow_the_categories(day)
