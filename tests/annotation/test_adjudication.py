"""Cases: what people disagree on is decided, and the decision becomes the resolution."""

from typing import Any

import pytest
from django.utils import timezone

from annotation.errors import Refused
from annotation.labelling import adjudication, answer_key, cases, queue
from annotation.models import (
    Item,
    Label,
    Mark,
    Membership,
    Reason,
    Resolution,
    Slot,
    Stage,
)
from tests.builders import make_item, make_member, make_project, make_slot, say, take

pytestmark = pytest.mark.django_db


@pytest.fixture
def judge() -> Membership:
    return make_member(make_project(overlap=2), "adjudicator", "judge")


def disputed(judge: Membership, *choices: str, **values: Any) -> Item:
    """An item that two people label, the one valid and the other invalid."""
    item = make_item(judge.project, **values)
    for choice in choices or ("valid", "invalid"):
        member = make_member(judge.project)
        while (offer := take(member)).item != item:
            queue.skip_item(member, offer.submission())
        say(member, offer, choice, comment=f"It is {choice}.", seconds=12.0)
    return item


def shown(member: Membership, item: Item) -> cases.Case:
    return cases.open_case(member, Item.objects.get(pk=item.pk), now=timezone.now())


def decide(member: Membership, item: Item, choice: str = "valid", **values: Any) -> Label:
    case = shown(member, item)
    assert case.offer, case.barred
    comment = values.pop("comment", "The second label is right.")
    known = {"why": "slip", "now": timezone.now(), **values}
    return cases.decide(member, case.offer.submission({"choice": choice}, comment), **known)


def standing(item: Item) -> Resolution:
    return Resolution.objects.current().get(item=item)


def test_an_item_that_people_disagree_on_waits_for_a_decision(judge: Membership) -> None:
    item = disputed(judge)
    [row] = cases.list_waiting(judge, cases.waiting_slots(judge.project))
    assert (row.item, row.slot.reason, row.missing) == (item, Reason.DISPUTED, 0)


def test_the_labels_are_shown_side_by_side_which_is_noted(judge: Membership) -> None:
    item = disputed(judge)
    case = shown(judge, item)
    said = [(one.label.choice, one.label.comment, one.label.seconds) for one in case.said]
    assert said == [("valid", "It is valid.", 12.0), ("invalid", "It is invalid.", 12.0)]
    assert case.disagree
    assert Mark.objects.of_member(judge.pk, Mark.Kind.SEEN).of_item(item).exists()


def test_a_decision_becomes_the_resolution(judge: Membership) -> None:
    item = disputed(judge)
    label = decide(judge, item, "invalid", why="ambiguous")
    resolution = standing(item)
    assert (resolution.value, resolution.values) == ("invalid", {"choice": "invalid"})
    assert (resolution.source, resolution.member) == ("adjudicated", judge)
    assert (resolution.reason, resolution.comment) == ("ambiguous", "The second label is right.")
    assert (label.stage, label.counted, label.informed) == (Stage.ADJUDICATE, True, True)
    assert not cases.waiting_slots(judge.project).exists()


@pytest.mark.parametrize("why, needed", [("", "Choose why"), ("mood", "no reason")])
def test_a_decision_says_why_people_disagreed(judge: Membership, why: str, needed: str) -> None:
    item = disputed(judge)
    with pytest.raises(Refused, match=needed):
        decide(judge, item, why=why)
    assert not Resolution.objects.exists()


def test_where_people_agree_no_reason_is_needed(judge: Membership) -> None:
    item = disputed(judge, "valid", "valid")
    cases.request_decision(judge, item, now=timezone.now())
    decide(judge, item, "invalid", why="")
    assert standing(item).value == "invalid"


def test_a_new_decision_supersedes_the_old_one_which_is_kept(judge: Membership) -> None:
    item = disputed(judge)
    first = decide(judge, item, "valid")
    second = decide(judge, item, "invalid")
    assert second.supersedes == first
    ended = Resolution.objects.get(item=item, current=False)
    assert (ended.value, standing(item).value) == ("valid", "invalid")
    assert ended.ended_at


def test_a_decision_of_another_is_opened_again_on_request(judge: Membership) -> None:
    item, other = disputed(judge), make_member(judge.project, "adjudicator")
    decide(judge, item, "valid")
    case = shown(other, item)
    assert case.offer is None
    assert "judge has decided" in case.barred
    cases.request_decision(other, item, now=timezone.now())
    assert standing(item).value == "valid"  # until there is another decision
    decide(other, item, "invalid")
    assert (standing(item).value, standing(item).member) == ("invalid", other)


def test_labels_that_come_later_do_not_change_a_decision(judge: Membership) -> None:
    item = disputed(judge)
    make_slot(item, number=3)
    decide(judge, item, "invalid")
    say(member := make_member(judge.project), take(member), "valid")
    assert standing(item).source == "adjudicated"


def test_undoing_a_decision_brings_the_case_back(judge: Membership) -> None:
    item = disputed(judge)
    decide(judge, item)
    queue.undo_label(judge, stage=Stage.ADJUDICATE)
    assert not Resolution.objects.current().filter(item=item).exists()
    assert Slot.objects.get(item=item, stage=Stage.ADJUDICATE).state == "held"


def test_a_decision_that_anothers_took_the_place_of_is_not_taken_back(judge: Membership) -> None:
    item, other = disputed(judge), make_member(judge.project, "adjudicator")
    decide(judge, item, "valid")
    cases.request_decision(other, item, now=timezone.now())
    decide(other, item, "invalid")
    assert cases.last_decision(judge) is None
    assert cases.undo_decision(judge, now=timezone.now()) is None
    assert standing(item).value == "invalid"


def test_what_was_decided_and_taken_back_comes_back_with_its_reason(judge: Membership) -> None:
    item = disputed(judge)
    decide(judge, item, "invalid", why="ambiguous")
    assert cases.undo_decision(judge, now=timezone.now()) == item
    case = shown(judge, item)
    previous = case.offer and case.offer.previous
    assert previous
    assert (previous.choice, adjudication.disagreement_reason(previous)) == ("invalid", "ambiguous")


def test_a_case_is_one_persons_at_a_time(judge: Membership) -> None:
    item, other = disputed(judge), make_member(judge.project, "adjudicator")
    shown(judge, item)
    case = shown(other, item)
    assert case.offer is None
    assert "judge is deciding" in case.barred


def test_a_person_holds_one_case_at_a_time(judge: Membership) -> None:
    first, second = disputed(judge), disputed(judge)
    shown(judge, first), shown(judge, second)
    assert list(Slot.objects.held_by(judge.pk).values_list("item", flat=True)) == [second.pk]


def test_who_labelled_an_item_leaves_it_to_another(judge: Membership) -> None:
    item = make_item(judge.project)
    say(judge, take(judge), "valid")
    say(member := make_member(judge.project), take(member), "invalid")
    assert shown(judge, item).offer  # nobody else is there to decide it
    make_member(judge.project, "adjudicator", "second judge")
    assert "Leave it to second judge" in shown(judge, item).barred
    assert cases.next_case_key(judge, timezone.now()) is None


def test_a_stale_page_cannot_decide_for_who_labelled_it(judge: Membership) -> None:
    item = make_item(judge.project)
    say(judge, take(judge), "valid")
    say(member := make_member(judge.project), take(member), "invalid")
    case = shown(judge, item)
    assert case.offer
    make_member(judge.project, "adjudicator")
    sent = case.offer.submission({"choice": "valid"})
    with pytest.raises(Refused, match="Leave it to"):
        cases.decide(judge, sent, why="slip", now=timezone.now())


def test_a_site_admin_without_a_place_only_looks(judge: Membership) -> None:
    item = disputed(judge)
    nobody = Membership(project=judge.project, alias="admin", role="lead")
    assert "add yourself to the project" in shown(nobody, item).barred


def test_disputed_items_come_first_then_contested_expert_gold_and_requested(
    judge: Membership,
) -> None:
    reasons = [Reason.REQUESTED, Reason.GOLD_ERROR, Reason.DISPUTED, Reason.EXPERT]
    for reason in [*reasons, Reason.CONTESTED]:
        make_slot(make_item(judge.project, str(reason), slots=0), stage="adjudicate", reason=reason)
    order = ["disputed", "contested", "expert", "gold-error", "requested"]
    assert [slot.item.key for slot in cases.waiting_slots(judge.project)] == order
    assert list(cases.count_waiting(judge.project)) == order
    assert cases.next_case_key(judge, timezone.now()) == "disputed"
    assert [slot.item.key for slot in cases.waiting_slots(judge.project, "expert")] == ["expert"]


def test_the_list_tells_how_many_labels_are_still_missing(judge: Membership) -> None:
    item = make_item(judge.project, slots=3)
    say(member := make_member(judge.project), take(member), "valid")
    cases.request_decision(judge, item, now=timezone.now())
    [row] = cases.list_waiting(judge, cases.waiting_slots(judge.project))
    assert row.missing == 2


def test_a_request_can_be_taken_back_until_somebody_begins(judge: Membership) -> None:
    item = disputed(judge, "valid", "valid")
    cases.request_decision(judge, item, now=timezone.now())
    assert cases.withdraw_request(judge, item)
    cases.request_decision(judge, item, now=timezone.now())
    assert Slot.objects.filter(item=item, stage=Stage.ADJUDICATE).count() == 1
    shown(judge, item)
    assert not cases.withdraw_request(judge, item)


def test_an_item_that_waits_for_a_decision_gets_no_known_answer(judge: Membership) -> None:
    """The decision would replace it."""
    item = disputed(judge, "valid", "valid")
    cases.request_decision(judge, item, now=timezone.now())
    with pytest.raises(Refused, match="waits for a decision"):
        answer_key.set_answer(judge.project, item, "probe", {"choice": "invalid"}, "", judge)
    decide(judge, item)
    answer_key.set_answer(judge.project, item, "probe", {"choice": "invalid"}, "", judge)
    assert standing(item).source == Resolution.Source.KNOWN


def test_a_known_answer_is_not_replaced_by_a_page_that_stayed_open(judge: Membership) -> None:
    item = disputed(judge)
    decide(judge, item)
    offer = shown(judge, item).offer
    assert offer
    answer_key.set_answer(judge.project, item, "probe", {"choice": "invalid"}, "", judge)
    sent = offer.submission({"choice": "valid"})
    with pytest.raises(Refused, match="known correct answer"):
        cases.decide(judge, sent, why="slip", now=timezone.now())
    assert standing(item).value == "invalid"
    assert shown(judge, item).offer is None


def test_a_decision_that_was_undone_does_not_come_back_with_the_item(judge: Membership) -> None:
    """It was undone while the item had a known answer."""
    item = disputed(judge)
    decide(judge, item, "score-invariant")
    answer_key.set_answer(judge.project, item, "probe", {"choice": "invalid"}, "", judge)
    cases.undo_decision(judge, now=timezone.now())
    assert standing(item).value == "invalid"
    answer_key.release_item(Item.objects.get(), judge)
    assert not Resolution.objects.current().exists()
    assert decide(judge, item, "valid").choice == standing(item).value


@pytest.mark.parametrize("purpose", ["practice", "probe"])
def test_what_is_known_of_an_item_is_not_decided(judge: Membership, purpose: str) -> None:
    item = make_item(judge.project, purpose=purpose, slots=0)
    with pytest.raises(Refused, match="known correct answer"):
        cases.request_decision(judge, item, now=timezone.now())


def test_blind_answers_stand_beside_the_label(judge: Membership) -> None:
    judge.project.blind_first = True
    judge.project.save()
    item = make_item(judge.project)
    member = make_member(judge.project)
    queue.store_label(member, take(member).submission({"error": "no"}))
    say(member, take(member), "valid")
    cases.request_decision(judge, item, now=timezone.now())
    [said] = shown(judge, item).said
    assert said.blind
    assert said.blind.answers == {"error": False}


def test_a_decision_is_not_asked_again_by_a_route(judge: Membership) -> None:
    item = make_item(judge.project, slots=3)
    say(member := make_member(judge.project), take(member), "valid")
    cases.request_decision(judge, item, now=timezone.now())
    decide(judge, item, "valid")
    other = make_member(judge.project)
    say(other, take(other), "not-sure")
    assert not cases.waiting_slots(judge.project).exists()


def test_a_request_that_is_taken_back_leaves_a_disagreement_to_be_decided(
    judge: Membership,
) -> None:
    item = disputed(judge, "valid", "invalid")
    cases.request_decision(judge, item, now=timezone.now())
    cases.withdraw_request(judge, item)
    slots = Slot.objects.filter(item=item, stage=Stage.ADJUDICATE, state="open")
    assert [slot.reason for slot in slots] == [Reason.DISPUTED]
