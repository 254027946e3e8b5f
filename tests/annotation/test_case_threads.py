"""Several people decide and verify at once, as real threads on the database of the tests."""

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.errors import Refused, Stale
from annotation.labelling import cases, drafts, gold_correction, queue, verification
from annotation.labelling.submissions import Submission
from annotation.models import Draft, Item, Label, Membership, Project, Resolution, Slot, Stage
from tests.annotation.test_queue_threads import at_once
from tests.builders import make_item, make_member, make_project, say, take

pytestmark = pytest.mark.django_db(transaction=True)


def disputed(project: Project, number: int) -> list[Item]:
    people = [make_member(project) for _ in range(2)]
    items = [make_item(project, cluster="spider") for _ in range(number)]
    for person, choice in zip(people, ("valid", "invalid"), strict=True):
        for _ in items:
            say(person, take(person), choice)
    return items


def decide_until_none_is_left(judge: Membership) -> int:
    done = 0
    while key := cases.next_case_key(judge, timezone.now()):
        item = Item.objects.get(project=judge.project, key=key)
        case = cases.open_case(judge, item, now=timezone.now())
        if case.offer is None:  # somebody else was faster
            continue
        sent = case.offer.submission({"choice": "valid"})
        cases.decide(judge, sent, why="slip", now=timezone.now())
        done += 1
    return done


def confirm_until_none_is_left(member: Membership) -> int:
    done = 0
    while isinstance(
        case := verification.take_next(member, now=timezone.now()), verification.Verification
    ):
        of, now = case.first.submission, timezone.now()
        verification.confirm(member, case.offer.submission({}), of=of, now=now)
        done += 1
    return done


def test_every_case_is_decided_once() -> None:
    project = make_project(overlap=2)
    items = disputed(project, 12)
    judges = [make_member(project, "adjudicator") for _ in range(4)]
    done = at_once(*(lambda judge=judge: decide_until_none_is_left(judge) for judge in judges))
    assert sum(done) == len(items) == Label.objects.filter(stage=Stage.ADJUDICATE).count()
    assert Resolution.objects.current().filter(source="adjudicated").count() == len(items)


def test_every_item_is_verified_once() -> None:
    project = make_project(verify=True)
    first = make_member(project)
    for _ in range(16):
        make_item(project)
        say(first, take(first))
    people = [make_member(project) for _ in range(4)]
    at_once(*(lambda person=person: confirm_until_none_is_left(person) for person in people))
    for person in people:
        confirm_until_none_is_left(person)
    labels = Label.objects.counted().filter(stage=Stage.VERIFY)
    assert set(Counter(labels.values_list("item", flat=True)).values()) == {1}
    assert Resolution.objects.current().filter(rule="verified").count() == 16


@pytest.mark.parametrize("is_decided", [True, False])
def test_a_page_that_was_left_open_overrules_nobody(is_decided: bool) -> None:
    project = make_project(overlap=2)
    [item] = disputed(project, 1)
    late, judge = (make_member(project, "adjudicator") for _ in range(2))
    now = timezone.now()
    left = cases.open_case(late, item, now=now).offer
    now += timedelta(minutes=project.hold_minutes + 1)
    taken = cases.open_case(judge, item, now=now).offer
    assert left
    assert taken
    decide = [
        lambda: cases.decide(judge, taken.submission({"choice": "invalid"}), why="slip", now=now)
    ]
    if is_decided:
        decide.pop()()
    with pytest.raises(Stale, match="Somebody else"):
        cases.decide(late, left.submission({"choice": "valid"}), why="slip", now=now)
    for one in decide:
        one()
    assert Resolution.objects.current().get(item=item).member == judge
    assert Label.objects.get(stage=Stage.ADJUDICATE).counted


def test_a_late_confirmation_does_not_end_a_contest() -> None:
    project = make_project(verify=True)
    first, late, second = (make_member(project) for _ in range(3))
    item = make_item(project)
    say(first, take(first))
    now = timezone.now()
    left = verification.take_next(late, now=now)
    now += timedelta(minutes=project.hold_minutes + 1)
    taken = verification.take_next(second, now=now)
    assert isinstance(left, verification.Verification)
    assert isinstance(taken, verification.Verification)
    of = taken.first.submission
    contest = taken.offer.submission({"choice": "invalid"}, comment="Eight.")
    verification.contest(second, contest, of=of, now=now)
    verification.confirm(late, left.offer.submission({}), of=of, now=now)
    assert not Resolution.objects.current().filter(item=item).exists()
    assert Slot.objects.get(item=item, stage=Stage.ADJUDICATE).state == Slot.State.OPEN


def test_of_drafts_that_are_saved_at_once_no_more_are_kept_than_a_person_may_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(drafts, "MAX_DRAFTS", 3)
    member = make_member(make_project())
    shown = []
    for _ in range(8):
        make_item(member.project)
        shown.append(take(member).submission())
        queue.skip_item(member, shown[-1])

    def save(one: Submission) -> bool:
        try:
            return drafts.save_draft(member, one, {"comment": "Odd."}) is not None
        except Refused:
            return False

    assert sum(at_once(*(lambda one=one: save(one) for one in shown))) == 3
    assert Draft.objects.count() == 3


def test_a_gold_answer_is_mended_while_people_label() -> None:
    project = make_project()
    items = [make_item(project, cluster="spider") for _ in range(10)]
    judge = make_member(project, "adjudicator")
    people = [make_member(project) for _ in range(3)]

    def label(member: Membership) -> None:
        while isinstance(offer := queue.next_offer(member), queue.Offer):
            try:
                say(member, offer)
            except Stale:
                continue

    def mend(_: Membership) -> None:
        gold_correction.correct_gold(
            judge, item_key=items[0].key, revision=1, gold=["Eight."], now=timezone.now()
        )

    at_once(*(lambda one=one: label(one) for one in people), lambda: mend(judge))
    for member in people:
        label(member)
    assert set(Item.objects.values_list("revision_number", flat=True)) == {2}
    counted = Label.objects.counted()
    assert counted.count() == Slot.objects.filter(state="filled").count() == 10
    assert set(counted.values_list("revision__number", flat=True)) == {2}
    assert Resolution.objects.current().count() == 10
