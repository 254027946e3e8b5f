"""Where an item goes that somebody is not sure of."""

import pytest

from annotation.labelling import queue
from annotation.models import Membership, Reason, Resolution, Slot, Stage
from tests.builders import correct, make_item, make_member, make_project, say, take

pytestmark = pytest.mark.django_db


@pytest.fixture
def member() -> Membership:
    return make_member(make_project())


def unsure(member: Membership, why: str, item_key: str = "") -> None:
    offer = queue.reopen_item(member, item_key) if item_key else take(member)
    queue.store_label(member, offer.submission({"choice": "not-sure", "reason": why}))


def waiting() -> list[tuple[str, str]]:
    """The places where items wait for a decision: reason and state."""
    slots = Slot.objects.filter(stage=Stage.ADJUDICATE).order_by("pk")
    return [(slot.reason, slot.state) for slot in slots]


def standing() -> Resolution | None:
    return Resolution.objects.current().first()


@pytest.mark.parametrize(
    "why, reason", [("needs-expert", Reason.EXPERT), ("gold-wrong", Reason.GOLD_ERROR)]
)
def test_an_item_goes_to_whom_it_needs(member: Membership, why: str, reason: str) -> None:
    make_item(member.project)
    unsure(member, why)
    assert waiting() == [(reason, "open")]


def test_a_page_that_is_in_the_way_sends_the_item_nowhere(member: Membership) -> None:
    make_item(member.project)
    unsure(member, "tool-trouble")
    assert waiting() == []


def test_undoing_the_label_takes_the_item_back(member: Membership) -> None:
    make_item(member.project)
    unsure(member, "needs-expert")
    queue.undo_label(member)
    assert waiting() == [(Reason.EXPERT, "closed")]


def test_another_label_instead_takes_the_item_back(member: Membership) -> None:
    item = make_item(member.project)
    unsure(member, "needs-expert")
    say(member, queue.reopen_item(member, item.key))
    assert waiting() == [(Reason.EXPERT, "closed")]


def test_sent_again_it_waits_at_the_same_place(member: Membership) -> None:
    item = make_item(member.project)
    unsure(member, "needs-expert")
    say(member, queue.reopen_item(member, item.key))
    unsure(member, "gold-wrong", item.key)
    assert waiting() == [(Reason.GOLD_ERROR, "open")]


def test_an_item_goes_where_any_of_two_people_send_it(member: Membership) -> None:
    other = make_member(member.project)
    make_item(member.project, slots=2)
    unsure(member, "needs-expert")
    unsure(other, "needs-expert")
    queue.undo_label(other)
    assert waiting() == [(Reason.EXPERT, "open")]


def test_what_somebody_has_begun_to_decide_stays_theirs(member: Membership) -> None:
    expert = make_member(member.project, "adjudicator")
    make_item(member.project)
    unsure(member, "needs-expert")
    take(expert, stage=Stage.ADJUDICATE)
    queue.undo_label(member)
    assert waiting() == [(Reason.EXPERT, "held")]


def test_an_unclear_question_takes_the_item_out(member: Membership) -> None:
    item = make_item(member.project, slots=3)
    unsure(member, "question-unclear")
    resolution = standing()
    assert resolution
    assert (resolution.value, resolution.rule, resolution.source) == (
        "not-sure",
        "excluded",
        "labels",
    )
    assert sorted(item.slots.values_list("state", flat=True)) == ["closed", "closed", "filled"]


def test_another_label_instead_takes_the_item_in_again(member: Membership) -> None:
    item = make_item(member.project, slots=1)
    unsure(member, "question-unclear")
    say(member, queue.reopen_item(member, item.key))
    resolution = standing()
    assert resolution
    assert (resolution.value, resolution.rule) == ("valid", "first label")


def test_undoing_an_exclusion_gives_its_places_back(member: Membership) -> None:
    member.project.overlap = 3
    member.project.save()
    item = make_item(member.project)
    unsure(member, "question-unclear")
    queue.undo_label(member)
    assert standing() is None
    assert sorted(item.slots.values_list("state", flat=True)) == ["held", "open", "open"]


def test_what_others_say_later_does_not_bring_an_item_back_that_is_out(
    member: Membership,
) -> None:
    other = make_member(member.project)
    make_item(member.project, slots=2)
    held = take(other)
    unsure(member, "question-unclear")
    say(other, held, "valid")
    resolution = standing()
    assert resolution
    assert resolution.rule == "excluded"
    assert waiting() == []


def test_a_correction_ends_a_route_with_the_label_that_asked_for_it(member: Membership) -> None:
    other = make_member(member.project)
    make_item(member.project, slots=2)
    unsure(member, "needs-expert")
    correct(other, take(other))
    assert waiting() == [(Reason.EXPERT, "closed")]


def test_who_is_sure_now_and_disagrees_leaves_the_item_to_an_adjudicator(
    member: Membership,
) -> None:
    member.project.overlap = 2
    member.project.save()
    other, item = make_member(member.project), make_item(member.project, slots=2)
    say(other, take(other), "invalid")
    unsure(member, "needs-expert")
    say(member, queue.reopen_item(member, item.key), "valid")
    assert (standing(), waiting()[-1][1]) == (None, "open")


def test_a_correction_of_an_item_that_was_out_gives_it_all_its_places_again(
    member: Membership,
) -> None:
    member.project.overlap = 2
    member.project.save()
    item = make_item(member.project, slots=2)
    unsure(member, "question-unclear")
    other = make_member(member.project)
    correct(member, queue.reopen_item(member, item.key))
    slots = Slot.objects.filter(item=item, stage=Stage.LABEL).exclude(state="closed")
    assert slots.count() == 2
    say(member, take(member))
    say(other, take(other))
    assert standing()
