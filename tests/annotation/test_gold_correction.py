"""A wrong gold answer is mended in every item of the source question that has it."""

from typing import Any

import pytest
from django.utils import timezone

from annotation.errors import Refused, Stale
from annotation.items.diffing import difference, merging
from annotation.items.diffing.difference import FORMER_ALGORITHM, Difference
from annotation.labelling import cases, gold_correction, queue
from annotation.labelling.queue import offers
from annotation.models import (
    Diff,
    Event,
    Item,
    Label,
    Membership,
    Resolution,
    Revision,
    Slot,
    Stage,
)
from tests.annotation.spans import passage, with_spans
from tests.builders import TEXTS, make_item, make_member, make_project, make_resolution, say, take

pytestmark = pytest.mark.django_db

MENDED = "A spider has eight legs, an insect six."


@pytest.fixture
def judge() -> Membership:
    return make_member(make_project(), "adjudicator", "judge")


@pytest.fixture
def member(judge: Membership) -> Membership:
    return make_member(judge.project)


def make(judge: Membership, key: str, **values: Any) -> Item:
    return make_item(judge.project, key, **{"cluster": "spider", **values})


def complain(member: Membership) -> Label:
    answers = {"choice": "not-sure", "reason": "gold-wrong"}
    return queue.store_label(member, take(member).submission(answers))


def mend(
    judge: Membership, item: Item, *gold: str, **values: Any
) -> gold_correction.CorrectionResult:
    return gold_correction.correct_gold(
        judge,
        item_key=item.key,
        revision=values.pop("revision", 1),
        gold=gold or (MENDED,),
        now=timezone.now(),
        **values,
    )


def gold(item: Item) -> Any:
    return Item.objects.get(pk=item.pk).revision().texts["gold"]


def texts(item: Item) -> dict[str, Any]:
    return Item.objects.get(pk=item.pk).revision().texts


def standing(item: Item) -> list[str]:
    return list(Resolution.objects.current().filter(item=item).values_list("value", flat=True))


def test_a_fix_reaches_all_items_of_the_question_with_the_same_gold_answer(
    judge: Membership,
) -> None:
    item, twin = make(judge, "a"), make(judge, "b", texts={"perturbed": "Nine."})
    other_gold = make(judge, "c", texts={"gold": "Eight."})
    other_question = make(judge, "d", cluster="beetle")
    assert mend(judge, item, note="Insects too.").items == ("a", "b")
    assert gold(item) == gold(twin) == MENDED
    assert (gold(other_gold), gold(other_question)) == ("Eight.", TEXTS["gold"])
    revision = Revision.objects.get(item=twin, number=2)
    assert (revision.author, revision.note) == (judge, "Insects too.")


def test_labels_of_the_old_texts_stop_counting_and_their_places_open_again(
    judge: Membership, member: Membership
) -> None:
    item, twin = make(judge, "a"), make(judge, "b")
    complain(member)
    say(member, take(member))
    mend(judge, item)
    assert not Label.objects.counted().exists()
    assert standing(twin) == []
    assert set(Slot.objects.at_work().values_list("state", flat=True)) == {"open"}
    assert take(member).item == item


def test_a_label_of_who_mends_it_opens_its_place_too(judge: Membership) -> None:
    item, twin = make(judge, "a"), make(judge, "b")
    say(judge, take(judge)), say(judge, take(judge))
    mend(judge, item)
    assert {take(judge).item for _ in range(1)} <= {item, twin}
    assert set(Slot.objects.at_work().values_list("state", flat=True)) == {"open", "held"}


def test_labels_that_are_carried_over_count_for_the_new_texts(
    judge: Membership, member: Membership
) -> None:
    item, twin = make(judge, "a"), make(judge, "b")
    complain(member)
    label = say(member, take(member), "invalid", comment="Broken.", seconds=8.0)
    assert mend(judge, item, carry=True).carried == 1
    label.refresh_from_db()
    carried = Label.objects.counted().get(item=twin)
    assert (carried.supersedes, carried.revision.number) == (label, 2)
    assert (carried.choice, carried.comment, carried.seconds) == ("invalid", "Broken.", 8.0)
    assert (carried.member, carried.created_at) == (member, label.created_at)
    assert (label.current, label.counted) == (False, False)
    assert standing(twin) == ["invalid"]
    event = Event.objects.get(kind="mend gold", subject="b")
    assert (event.member, event.data["carried"]) == (judge, [carried.submission])


def test_a_label_that_is_undone_while_it_is_carried_over_is_undone(
    judge: Membership, member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = make(judge, "a")
    say(member, take(member))
    find = offers.last_label

    def find_before_correction(*given: Any) -> Label | None:
        found = find(*given)
        if gold(item) != MENDED:
            mend(judge, item, carry=True)
        return found

    monkeypatch.setattr(offers, "last_label", find_before_correction)
    assert queue.undo_label(member)
    assert not Label.objects.current().exists()
    assert standing(item) == []
    assert Membership.objects.get(pk=member.pk).labelled == 0


def test_a_complaint_of_the_gold_answer_is_not_carried_and_leaves_the_queue(
    judge: Membership, member: Membership
) -> None:
    item = make(judge, "a")
    complain(member)
    assert cases.open_case(judge, item, now=timezone.now()).offer
    mend(judge, item, carry=True)
    assert not Label.objects.counted().exists()
    assert not cases.waiting_slots(judge.project).exists()
    assert take(member).item == item


def test_decisions_are_carried_over_with_the_labels(judge: Membership, member: Membership) -> None:
    item, twin = make(judge, "a"), make(judge, "b")
    complain(member)
    say(member, take(member))
    cases.request_decision(judge, twin, now=timezone.now())
    case = cases.open_case(judge, twin, now=timezone.now())
    assert case.offer
    cases.decide(judge, case.offer.submission({"choice": "invalid"}), now=timezone.now())
    mend(judge, item, carry=True)
    resolution = Resolution.objects.current().get(item=twin)
    assert (resolution.value, resolution.source) == ("invalid", "adjudicated")
    assert resolution.revision.number == 2
    decided = Resolution.objects.get(item=twin, current=False, source="adjudicated")
    assert resolution.created_at == decided.created_at


def test_what_was_accepted_or_known_from_outside_stands(judge: Membership) -> None:
    item = make(judge, "a")
    imported, known = make(judge, "b", slots=0), make(judge, "c", slots=0, purpose="practice")
    make_resolution(imported)
    make_resolution(known, "invalid", source="known", rule="known answer")
    mend(judge, item)
    assert (standing(imported), standing(known)) == (["valid"], ["invalid"])


def test_whoever_looks_at_the_old_texts_is_told(judge: Membership, member: Membership) -> None:
    item = make(judge, "a")
    offer = take(member)
    mend(judge, item)
    with pytest.raises(Stale):
        say(member, offer)


@pytest.mark.parametrize(
    "gold, needed",
    [((" ",), "is empty"), ((TEXTS["gold"],), "is unchanged"), (("a\0b",), "NUL")],
)
def test_a_text_that_cannot_be_is_refused(
    judge: Membership, gold: tuple[str, ...], needed: str
) -> None:
    with pytest.raises(Refused, match=needed):
        mend(judge, make(judge, "a"), *gold)


def test_texts_that_changed_meanwhile_are_not_mended(judge: Membership) -> None:
    item = make(judge, "a")
    mend(judge, item)
    with pytest.raises(Stale):
        mend(judge, item, "Another.")


def test_line_breaks_stay_as_they_were(judge: Membership) -> None:
    item = make(judge, "a", texts={"gold": "one\r\ntwo"})
    mend(judge, item, "one\nthree")
    assert gold(item) == "one\r\nthree"


def test_of_several_gold_answers_all_are_mended(judge: Membership) -> None:
    item = make(judge, "a", texts={"gold": ["one", "two"]})  # type: ignore[dict-item]
    mend(judge, item, "one", "three", "four")
    assert gold(item) == ["one", "three", "four"]


def test_the_perturbed_answer_gets_the_correction_unless_its_own_change_is_there(
    judge: Membership, member: Membership
) -> None:
    item, clash = make(judge, "a"), make(judge, "b", texts={"perturbed": "A spider has eight."})
    for _ in range(2):
        say(member, take(member))
    assert mend(judge, item, carry=True).carried == 1
    assert texts(item)["perturbed"] == "A spider has six legs, an insect six."
    assert (texts(clash)["gold"], texts(clash)["perturbed"]) == (MENDED, "A spider has eight.")
    assert (standing(item), standing(clash)) == (["valid"], [])
    assert take(member).item == clash
    sent = Event.objects.filter(kind="mend gold").order_by("subject")
    assert [one.data["perturbed"] for one in sent] == [True, False]


def test_an_accepted_item_whose_change_clashes_is_labelled(
    judge: Membership, member: Membership
) -> None:
    clash = {"perturbed": "A spider has eight."}
    item = make(judge, "a", slots=0, texts=clash)
    known = make(judge, "b", slots=0, texts=clash, purpose="practice")
    make_resolution(item)
    make_resolution(known, source="known", rule="known answer")
    mend(judge, item)
    assert (standing(item), standing(known)) == ([], ["valid"])
    assert take(member).item == item


def test_a_preview_says_what_a_correction_would_do(judge: Membership) -> None:
    item = make(judge, "a")
    clash = make(judge, "b", texts={"perturbed": "A spider has eight."}, purpose="practice")
    make(judge, "c", category="score-invariant", texts={"perturbed": "A spider has\neight legs."})
    make_resolution(make(judge, "d"))
    preview = gold_correction.preview_correction(item, revision=1, gold=[MENDED])
    assert (preview.both, preview.gold_only, preview.unpaired) == (("a", "c", "d"), ("b",), ())
    assert (preview.accepted, preview.score_invariant) == (("d",), ("c",))
    assert preview.known == (clash.key,)
    assert Revision.objects.count() == 4
    again = gold_correction.preview_correction(item, revision=1, gold=["Eight."])
    assert again.digest != preview.digest
    make(judge, "e")
    with pytest.raises(Stale, match="changed since the preview"):
        mend(judge, item, preview=preview.digest)
    assert Revision.objects.count() == 5
    now = gold_correction.preview_correction(item, revision=1, gold=[MENDED])
    assert mend(judge, item, preview=now.digest).items == ("a", "b", "c", "d", "e")


def test_an_item_that_keeps_its_labels_keeps_its_final_label_whatever_the_settings(
    judge: Membership, member: Membership
) -> None:
    item = make(judge, "a")
    say(member, take(member), "invalid")
    judge.project.verify = True
    judge.project.save()
    mend(judge, item, carry=True)
    assert standing(item) == ["invalid"]
    assert not Slot.objects.at_stage(Stage.VERIFY).exists()


def test_a_verified_item_stays_so_if_its_labels_are_carried_over(judge: Membership) -> None:
    judge.project.verify = True
    judge.project.save()
    item = make(judge, "a")
    say(judge, take(judge))
    second = make_member(judge.project)
    offer = take(second, stage=Stage.VERIFY)
    say(second, offer)
    assert standing(item) == ["valid"]
    mend(judge, item, carry=True)
    resolution = Resolution.objects.current().get(item=item)
    assert (resolution.rule, resolution.revision.number) == ("verified", 2)


def test_passages_are_carried_to_their_new_places_and_corrected_ones_are_not(
    judge: Membership, member: Membership
) -> None:
    with_spans(judge.project)
    item, twin = make(judge, "a"), make(judge, "b")
    several = make(judge, "c", texts={"gold": ["Eight.", "Eight legs."]})  # type: ignore[dict-item]
    for spans in (
        [passage("gold", 0, "A spider"), passage("perturbed", 13, "six legs")],
        [passage("gold", 2, "spider has")],
        [passage("gold", 6, "legs", alternative=2)],
    ):
        offer = take(member)
        queue.store_label(member, offer.submission({"choice": "valid", "spans": spans}))
    asked = gold_correction.preview_correction(
        item, revision=1, gold=["A spider always has eight legs."]
    )
    assert (asked.both, asked.ended) == (("a", "b"), ("b",))
    assert mend(judge, item, "A spider always has eight legs.", carry=True).carried == 1
    assert Label.objects.counted().get(item=item).answers["spans"] == [
        passage("gold", 0, "A spider"),
        passage("perturbed", 20, "six legs"),
    ]
    assert Label.objects.get(item=item, current=False).answers["spans"][1]["start"] == 13
    assert not Label.objects.counted().filter(item=twin).exists()
    mend(judge, several, "Eight.", "It has eight legs.", carry=True)
    carried = Label.objects.counted().get(item=several)
    assert carried.answers["spans"] == [passage("gold", 13, "legs", alternative=2)]
    mend(judge, several, "Eight legs.", revision=2, carry=True)
    assert not Label.objects.counted().filter(item=several).exists()
    assert take(member).item == twin


def test_answers_to_single_changes_are_carried_with_their_diff(judge: Membership) -> None:
    judge.project.claim_check = True
    judge.project.save()
    item, twin = make(judge, "a"), make(judge, "b")
    member = make_member(judge.project)
    answers = {"choice": "valid", "claim_check": {"1": "explained"}}
    for _ in range(2):
        queue.store_label(member, take(member).submission(answers))
    Diff.objects.filter(revision__item=twin).update(algorithm=FORMER_ALGORITHM)
    assert mend(judge, item, carry=True).carried == 1
    assert Label.objects.counted().get().answers == answers
    assert Diff.objects.get(revision__item=item, revision__number=2).pinned


def test_texts_are_compared_once_for_all_passages_of_a_label(
    judge: Membership, member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of two hundred passages was looked for in a comparison of its own."""
    with_spans(judge.project)
    item = make(judge, "a")
    spans = [passage("gold", start, "e") for start in (6, 13, 20)]
    spans += [passage("perturbed", start, "e") for start in (6, 18)]
    queue.store_label(member, take(member).submission({"choice": "valid", "spans": spans}))
    made: list[tuple[str, str]] = []

    def compare(*texts: str) -> Difference:
        made.append((texts[0], texts[1]))
        return difference.compare(*texts)

    monkeypatch.setattr(merging, "compare", compare)
    new = "So A spider has eight legs."
    assert mend(judge, item, new, carry=True).carried == 1
    # Once for the correction of the perturbed answer, and once for the passages.
    assert made.count((TEXTS["gold"], new)) == 2
    assert made.count((TEXTS["perturbed"], texts(item)["perturbed"])) == 1


def test_an_item_that_is_excluded_at_the_same_moment_is_no_error(
    judge: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    item, locked = make(judge, "a"), Item.objects.locked

    def exclude() -> Any:
        Item.objects.filter(pk=item.pk).update(deleted_at=timezone.now())
        return locked()

    monkeypatch.setattr(Item.objects, "locked", exclude)
    with pytest.raises(Refused, match="no longer in the project"):
        mend(judge, item)
