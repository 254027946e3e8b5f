"""The queue as the label screen uses it: the item after, going back, skipping, flagging, blind."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotation import tasktypes
from annotation.errors import Refused
from annotation.labelling import drafts, queue
from annotation.labelling.queue import Offer, Waiting
from annotation.models import Comment, Draft, Item, Label, Mark, Membership, Slot
from tests.builders import make_item, make_member, make_project, make_slot, say, take

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def people(
    number: int = 1, items: int = 3, **values: object
) -> tuple[list[Membership], list[Item]]:
    project = make_project(**values)
    return [make_member(project) for _ in range(number)], [make_item(project) for _ in range(items)]


def ahead(member: Membership) -> Offer | Waiting:
    return queue.next_offer(member, ahead=True)


# ----------------------------------------------------------------------------------- the one after


def test_at_most_the_current_item_and_the_next_are_held() -> None:
    [ana], items = people(items=4)
    current, after = take(ana), ahead(ana)
    assert isinstance(after, Offer)
    assert [current.item, after.item] == items[:2]
    again = ahead(ana)
    assert isinstance(again, Offer)
    assert (take(ana).item, again.item) == (current.item, after.item)
    assert Slot.objects.filter(state="held").count() == 2


def test_once_the_current_item_is_labelled_the_one_held_ahead_is_current() -> None:
    [ana], items = people()
    current, after = take(ana), ahead(ana)
    assert isinstance(after, Offer)
    say(ana, current)
    assert take(ana).item == items[1]
    say(ana, after)  # the key of the page that was fetched ahead is good
    assert Label.objects.counted().count() == 2


def test_a_page_that_asks_for_the_item_after_makes_the_one_held_ahead_current() -> None:
    [ana], items = people(items=4)
    say(ana, take(ana))
    say(ana, take(ana))  # the first two; nothing is held
    assert isinstance(ahead(ana), Waiting)
    current = take(ana)
    after = ahead(ana)
    say(ana, current)
    third = ahead(ana)  # the page is at `after` by now and wants what follows it
    assert isinstance(after, Offer)
    assert isinstance(third, Waiting)
    assert take(ana).item == after.item == items[3]


def test_two_people_who_look_ahead_get_four_items() -> None:
    [ana, ben], _ = people(2, items=4)
    offers = [take(ana), ahead(ana), take(ben), ahead(ben)]
    assert len({offer.item.key for offer in offers if isinstance(offer, Offer)}) == 4


def test_renewing_holds_on_to_both_and_names_them() -> None:
    [ana], items = people(hold_minutes=10)
    take(ana), ahead(ana)
    later = timezone.now() + timedelta(minutes=9)
    assert queue.renew_holds(ana, now=later) == {items[0].key, items[1].key}
    assert min(Slot.objects.filter(state="held").values_list("held_until", flat=True)) > later


def test_what_went_to_somebody_else_is_not_renewed() -> None:
    [ana, ben], [item] = people(2, items=1, hold_minutes=10)
    take(ana)
    late = timezone.now() + timedelta(minutes=11)
    assert isinstance(queue.next_offer(ben, now=late), Offer)
    assert queue.renew_holds(ana, now=late) == frozenset()
    assert queue.renew_holds(ben, now=late) == {item.key}


# ------------------------------------------------------------------------------ skip, flag, reopen


def test_a_skipped_item_comes_no_more_until_it_is_taken_back() -> None:
    [ana], [first, second] = people(items=2)
    queue.skip_item(ana, take(ana).submission(), note="later")
    assert take(ana).item == second
    say(ana, take(ana))
    assert isinstance(queue.next_offer(ana), Waiting)
    assert queue.reopen_item(ana, first.key).item == first
    assert not Mark.objects.in_force().exists()
    assert Mark.objects.get().note == "later"
    assert take(ana).item == first


def test_others_get_what_somebody_skipped() -> None:
    [ana, ben], [item] = people(2, items=1)
    queue.skip_item(ana, take(ana).submission())
    assert take(ben).item == item


def test_skipping_the_same_page_twice_is_skipping_once() -> None:
    [ana], _ = people(items=2)
    offer = take(ana)
    queue.skip_item(ana, offer.submission())
    queue.skip_item(ana, offer.submission())
    assert Mark.objects.count() == 1


def test_what_is_labelled_cannot_be_skipped() -> None:
    [ana], _ = people(items=1)
    offer = take(ana)
    say(ana, offer)
    with pytest.raises(Refused, match="have labelled"):
        queue.skip_item(ana, offer.submission())
    assert Label.objects.counted().count() == 1


def test_a_flag_is_set_and_taken_back_and_stays_on_record() -> None:
    [ana], [item] = people(items=1)
    take(ana)
    assert queue.toggle_flag(ana, item.key, note="odd") is True
    assert queue.toggle_flag(ana, item.key) is False
    assert [mark.ended_at is None for mark in Mark.objects.all()] == [False]


def test_an_item_that_one_was_never_shown_cannot_be_flagged_or_opened() -> None:
    [ana], items = people()
    with pytest.raises(Refused):
        queue.toggle_flag(ana, items[2].key)
    with pytest.raises(Refused):
        queue.reopen_item(ana, items[2].key)
    with pytest.raises(Refused):
        queue.reopen_item(ana, "no-such-key")


def test_a_reopened_label_is_shown_and_superseded_by_a_new_one() -> None:
    [ana], [first, second, _] = people()
    say(ana, take(ana), "valid")
    current = take(ana)
    again = queue.reopen_item(ana, first.key)
    assert again.previous
    assert again.previous.choice == "valid"
    changed = say(ana, again, "invalid")
    assert changed.supersedes == again.previous
    assert [label.choice for label in Label.objects.counted()] == ["invalid"]
    assert take(ana).item == current.item == second
    ana.refresh_from_db()
    assert ana.labelled == 1


def test_a_draft_whose_place_went_to_another_is_opened_all_the_same() -> None:
    [ana, ben], [item] = people(2, items=1, hold_minutes=10)
    take(ana)
    Draft.objects.create(member=ana, item=item, revision=1, data={"comment": "hm"})
    late = timezone.now() + timedelta(minutes=11)
    offer = queue.next_offer(ben, now=late)
    assert isinstance(offer, Offer)
    say(ben, offer)
    made = say(ana, queue.reopen_item(ana, item.key))
    assert (made.counted, made.slot) == (False, None)


def test_a_label_ends_its_draft_but_for_a_correction_that_was_not_sent() -> None:
    [ana], [_, second] = people(items=2)
    correction = {"text": "A spider has ten legs.", "note": "counted"}
    for begun in ({}, correction):
        offer = take(ana)
        drafts.save_draft(ana, offer.submission(), {"comment": "hm"} | begun)
        say(ana, offer)
    assert [(draft.item, draft.data) for draft in Draft.objects.all()] == [(second, correction)]


# ------------------------------------------------------------------------------------ undo, recent


def test_after_an_undo_comes_the_item_that_one_had_looked_at() -> None:
    [ana], items = people(items=4)
    say(ana, take(ana))
    take(ana), ahead(ana)
    undone = queue.undo_label(ana)
    assert undone
    assert undone.previous
    assert undone.previous.choice == "valid"
    after = ahead(ana)
    assert isinstance(after, Offer)
    assert [undone.item, after.item] == items[:2]
    assert Slot.objects.get(item=items[2]).returned


def test_undo_goes_ten_deep_and_the_count_follows() -> None:
    [ana], items = people(items=10)
    for _ in items:
        say(ana, take(ana))
    assert [queue.undo_label(ana).item for _ in items] == items[::-1]  # type: ignore[union-attr]
    ana.refresh_from_db()
    assert ana.labelled == 0
    assert Slot.objects.filter(state="held").count() == 2


def test_the_strip_shows_the_last_ten_labels_in_force_the_latest_first() -> None:
    [ana], items = people(items=12)
    for _ in items:
        say(ana, take(ana))
    queue.undo_label(ana)
    assert [label.item for label in queue.recent_labels(ana)] == items[10:0:-1]


# ---------------------------------------------------------------------------------------- blind


def blind_answers(member: Membership) -> dict[str, object]:
    """An answer to each question that is asked before the diff is shown."""
    blind = tasktypes.load_task_type(member.project).blind
    assert blind
    first = blind.fields[0]
    return {first.name: first.options[-1].value}


def test_blind_first_asks_twice_and_stores_both() -> None:
    [ana], [item] = people(items=1, blind_first=True)
    first = take(ana)
    assert first.phase == "blind"
    said = queue.store_label(ana, first.submission(blind_answers(ana)))
    assert (said.stage, said.counted) == ("blind", True)
    second = take(ana)
    assert (second.phase, second.blind) == ("label", said)
    say(ana, second)
    assert sorted(Label.objects.counted().values_list("stage", flat=True)) == ["blind", "label"]
    assert item.resolutions.get().value == "valid"


def test_before_the_blind_answer_nothing_can_be_labelled_or_corrected() -> None:
    [ana], _ = people(items=1, blind_first=True)
    offer = take(ana)
    with pytest.raises(Refused):
        say(ana, offer)
    with pytest.raises(Refused, match="first"):
        queue.store_correction(ana, offer.submission(), {"perturbed": "other"})
    assert not Label.objects.exists()


def test_a_blind_answer_is_asked_once_also_after_an_undo() -> None:
    [ana], _ = people(items=1, blind_first=True)
    queue.store_label(ana, take(ana).submission(blind_answers(ana)))
    say(ana, take(ana))
    undone = queue.undo_label(ana)
    assert undone
    assert (undone.phase, undone.blind is not None) == ("label", True)


def test_a_first_look_is_not_replaced_from_a_page_of_before_the_second() -> None:
    [ana], _ = people(items=1, blind_first=True)
    shown, elsewhere = take(ana), take(ana)
    said = queue.store_label(ana, shown.submission(blind_answers(ana)))
    with pytest.raises(Refused, match="second one"):
        queue.store_label(ana, elsewhere.submission({"error": "no"}))
    assert Label.objects.get(current=True) == said
    assert queue.store_label(ana, shown.submission(blind_answers(ana))) == said


# ------------------------------------------------------------------------------------- informed


def test_who_saw_what_others_say_is_informed_from_then_on() -> None:
    [ana], [item, _] = people(items=2)
    before = say(ana, take(ana))
    Comment.objects.create(item=item, member=ana, text="Is this one valid?")
    Mark.objects.create(member=ana, item=item, kind="seen")
    after = say(ana, queue.reopen_item(ana, item.key), "invalid")
    assert (before.informed, after.informed) == (False, True)


# ------------------------------------------------------------------------------------- desks


@pytest.mark.parametrize("stage", ["verify", "adjudicate"])
def test_a_key_of_another_desk_is_refused_at_the_label_screen(stage: str) -> None:
    [ana], [item] = people(items=1)
    make_slot(item, stage=stage, number=1)
    offer = queue.next_offer(ana, stage=stage)
    assert isinstance(offer, Offer)
    with pytest.raises(Refused, match="another member"):
        queue.store_label(ana, offer.submission({"choice": "valid"}))
    with pytest.raises(Refused, match="another member"):
        queue.store_correction(ana, offer.submission(), {"perturbed": "other"})
    with pytest.raises(Refused, match="another member"):
        queue.skip_item(ana, offer.submission())
    assert (Label.objects.count(), item.revisions.count()) == (0, 1)


def test_a_page_that_was_sent_as_a_label_is_no_decision_when_it_comes_again() -> None:
    [ana], _ = people(items=1)
    offer = take(ana)
    say(ana, offer)
    with pytest.raises(Refused, match="another member"):
        queue.store_label(ana, offer.submission({"choice": "valid"}), stage="adjudicate")


def test_a_nul_opens_and_flags_nothing() -> None:
    [ana], _ = people(items=1)
    with pytest.raises(Refused):
        queue.reopen_item(ana, "a\0b")
    with pytest.raises(Refused):
        queue.toggle_flag(ana, "a\0b")
