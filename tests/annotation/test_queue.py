from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.errors import Refused, Stale
from annotation.labelling import queue
from annotation.labelling.queue import Waiting
from annotation.labelling.submissions import Submission
from annotation.models import Cursor, Event, Item, Label, Resolution, Revision, Slot
from tests.builders import (
    correct,
    make_guidelines,
    make_item,
    make_known,
    make_member,
    make_project,
    make_resolution,
    say,
    take,
)

pytestmark = pytest.mark.django_db

NOW = timezone.now()
LATER = NOW + timedelta(hours=1)


def counted(item: Item) -> list[str]:
    return sorted(Label.objects.counted().filter(item=item).values_list("choice", flat=True))


def resolution(item: Item) -> str | None:
    found = Resolution.objects.current().filter(item=item).first()
    return found.value if found else None


# ------------------------------------------------------------------------------------- next, label


def test_items_come_in_their_order_and_each_is_kept_until_it_is_labelled() -> None:
    member = make_member(make_project())
    first, second = make_item(member.project), make_item(member.project)
    assert take(member).item == take(member).item == first
    say(member, take(member))
    assert take(member).item == second


def test_two_people_never_hold_the_same_place() -> None:
    project = make_project()
    make_item(project), make_item(project)
    ana, ben = make_member(project), make_member(project)
    assert take(ana).item != take(ben).item


def test_with_overlap_two_each_item_gets_two_people_and_no_third() -> None:
    project = make_project(overlap=2)
    item = make_item(project)
    people = [make_member(project) for _ in range(3)]
    for person in people[:2]:
        say(person, take(person))
    assert isinstance(queue.next_offer(people[2]), Waiting)
    assert counted(item) == ["valid", "valid"]


def test_the_same_person_never_fills_two_places_of_an_item() -> None:
    member = make_member(make_project(overlap=2))
    item = make_item(member.project)
    say(member, take(member))
    waiting = queue.next_offer(member)
    assert isinstance(waiting, Waiting)
    assert (waiting.held_by_others, waiting.done) == (0, 1)
    assert counted(item) == ["valid"]


def test_higher_priority_comes_first_even_if_it_is_added_behind_the_cursor() -> None:
    member = make_member(make_project())
    make_item(member.project), make_item(member.project)
    say(member, take(member))
    urgent = make_item(member.project)
    Slot.objects.filter(item=urgent).update(priority=-1)
    Slot.objects.filter(item__in=Item.objects.exclude(pk=urgent.pk), state="open").delete()
    assert take(member).item == urgent


def test_waiting_for_others_is_not_all_done() -> None:
    project = make_project(hold_minutes=5)
    make_item(project)
    take(make_member(project), now=NOW)
    waiting = queue.next_offer(make_member(project), now=NOW + timedelta(minutes=1))
    assert isinstance(waiting, Waiting)
    assert waiting.held_by_others == 1
    assert waiting.next_free == NOW + timedelta(minutes=5)


def test_a_deleted_item_is_offered_to_nobody_not_even_to_its_holder() -> None:
    member = make_member(make_project())
    item = make_item(member.project)
    offer = take(member)
    Item.objects.filter(pk=item.pk).update(deleted_at=NOW)
    assert isinstance(queue.next_offer(member), Waiting)
    with pytest.raises(Refused, match="removed"):
        say(member, offer)


def test_a_label_pins_what_it_was_made_under() -> None:
    member = make_member(make_project())
    guidelines = make_guidelines(member.project)
    item = make_item(member.project, first_reply_at=NOW)
    made = say(member, take(member), comment="six!", seconds=2.5)
    assert (made.guidelines, made.task_type) == (guidelines, member.project.task_type)
    assert (made.evaluator_seen, made.comment, made.seconds) == (True, "six!", 2.5)
    assert Event.objects.get(kind="label").subject == item.key


# ------------------------------------------------------------------------------------- submissions


def test_the_same_key_twice_is_one_label() -> None:
    member = make_member(make_project())
    make_item(member.project)
    offer = take(member)
    assert say(member, offer) == say(member, offer, seconds=9.0)
    assert Label.objects.get().seconds is None


@pytest.mark.parametrize("change", [{"choice": "invalid"}, {"comment": "After all!"}])
def test_another_answer_from_a_page_that_was_sent_is_not_dropped_in_silence(
    change: dict[str, str],
) -> None:
    member = make_member(make_project())
    make_item(member.project)
    offer = take(member)
    say(member, offer)
    with pytest.raises(Refused, match="already sent this page, as 'valid'"):
        say(member, offer, **change)


def test_a_page_whose_label_was_taken_back_stores_nothing_and_says_so() -> None:
    member = make_member(make_project())
    item = make_item(member.project)
    offer = take(member)
    say(member, offer)
    queue.undo_label(member)
    with pytest.raises(Refused, match="was undone"):
        say(member, offer)
    assert counted(item) == []


def test_another_persons_key_is_refused_before_and_after_its_use() -> None:
    project = make_project()
    make_item(project), make_item(project)
    ana, ben = make_member(project), make_member(project)
    offer = take(ana)
    for _ in range(2):
        with pytest.raises(Refused, match="another user"):
            say(ben, offer)
        say(ana, offer)
    assert Label.objects.get().member == ana


@pytest.mark.parametrize("key", ["", "made-up", ".made-up:x:y", "\ud800", "é" * 300])
def test_a_key_that_was_not_made_here_is_refused(key: str) -> None:
    member = make_member(make_project())
    item = make_item(member.project)
    with pytest.raises(Refused, match="not valid"):
        queue.store_label(member, Submission(key, item.key, 1, {"choice": "valid"}))


@pytest.mark.parametrize("item_key, revision", [("other", 1), ("shown", 2)])
def test_what_the_page_did_not_show_is_refused(item_key: str, revision: int) -> None:
    member = make_member(make_project())
    make_item(member.project, "shown"), make_item(member.project, "other")
    offer = take(member)
    with pytest.raises(Refused, match="The page showed another item"):
        queue.store_label(member, Submission(offer.key, item_key, revision, {"choice": "valid"}))


@pytest.mark.parametrize("answers", [{}, {"choice": "maybe"}, {"choice": "valid", "mood": "good"}])
def test_answers_that_the_task_does_not_take_are_refused(answers: dict[str, object]) -> None:
    member = make_member(make_project())
    make_item(member.project)
    offer = take(member)
    with pytest.raises(Refused):
        queue.store_label(member, offer.submission(answers))
    assert Slot.objects.get().state == "held"


def test_a_changed_label_is_a_new_row_that_supersedes_the_old_one() -> None:
    member = make_member(make_project())
    item = make_item(member.project)
    first_page, second_page = take(member), take(member)
    first = say(member, first_page, "valid")
    second = say(member, second_page, "invalid")
    assert second.supersedes == first
    assert Label.objects.count() == 2
    assert counted(item) == ["invalid"]
    assert resolution(item) == "invalid"


# ------------------------------------------------------------------------------------ late labels


def lose_slot(overlap: int = 1) -> tuple[Any, Any, queue.Offer, queue.Offer]:
    """Ana's time ran out, and Ben has taken her place."""
    project = make_project(overlap=overlap)
    make_item(project, slots=1)
    ana, ben = make_member(project), make_member(project)
    hers = take(ana, now=NOW)
    return ana, ben, hers, take(ben, now=LATER)


def test_an_expired_place_goes_to_the_next_person_and_no_sooner() -> None:
    project = make_project(hold_minutes=30)
    make_item(project)
    ana, ben = make_member(project), make_member(project)
    take(ana, now=NOW)
    assert isinstance(queue.next_offer(ben, now=NOW + timedelta(minutes=29)), Waiting)
    assert take(ben, now=NOW + timedelta(minutes=30)).slot.member == ben


def test_a_late_label_still_counts_if_nobody_took_the_place() -> None:
    member = make_member(make_project())
    item = make_item(member.project)
    offer = take(member, now=NOW)
    assert say(member, offer, now=LATER).counted
    assert counted(item) == ["valid"]


def test_a_label_after_its_place_was_given_away_is_kept_as_extra() -> None:
    ana, ben, hers, his = lose_slot()
    late = say(ana, hers, "invalid", now=LATER)
    assert (late.counted, late.slot) == (False, None)
    assert say(ben, his, now=LATER).counted
    assert counted(his.item) == ["valid"]
    assert resolution(his.item) == "valid"


def test_a_late_label_fills_another_free_place_of_its_item() -> None:
    ana, ben, hers, his = lose_slot(overlap=2)
    Slot.objects.create(project=ana.project, item=hers.item, number=2, position=1)
    assert say(ana, hers, now=LATER).slot.number == 2
    assert say(ben, his, now=LATER).slot.number == 1
    assert isinstance(queue.next_offer(ana, now=LATER), Waiting)


def test_a_late_label_counts_if_the_other_persons_time_ran_out_too() -> None:
    ana, _, hers, _ = lose_slot()
    assert say(ana, hers, now=LATER + timedelta(hours=1)).counted


# ------------------------------------------------------------------------------------- correct


def test_a_correction_is_a_new_revision_and_keeps_its_authors_place() -> None:
    member = make_member(make_project())
    item = make_item(member.project)
    shown = correct(member, take(member), "Seven.", note="one leg more")
    assert (shown.revision.number, shown.revision.texts["perturbed"]) == (2, "Seven.")
    assert shown.revision.author == member
    assert item.revisions.get(number=1).texts["perturbed"] == "A spider has six legs."
    assert say(member, shown).revision == shown.revision


def test_others_labels_of_the_old_texts_stop_counting_and_their_places_reopen() -> None:
    project = make_project(overlap=2)
    item = make_item(project)
    ana, ben = make_member(project), make_member(project)
    say(ana, take(ana))
    correct(ben, take(ben))
    assert counted(item) == []
    assert take(ana).revision.number == 2
    assert Label.objects.get().choice == "valid"


def test_a_correction_ends_the_resolution_of_the_old_texts() -> None:
    member = make_member(make_project())
    item = make_item(member.project)
    make_resolution(item)
    correct(member, take(member))
    assert resolution(item) is None
    assert Resolution.objects.get().ended_at


def test_a_page_with_the_old_texts_is_stale_for_label_and_correction() -> None:
    project = make_project(overlap=2)
    make_item(project)
    ana, ben = make_member(project), make_member(project)
    old = take(ana)
    correct(ben, take(ben))
    with pytest.raises(Stale):
        say(ana, old)
    with pytest.raises(Stale):
        correct(ana, old, "Nine.")
    assert not Label.objects.exists()
    assert Revision.objects.count() == 2


def test_the_same_correction_sent_twice_is_one_revision() -> None:
    member = make_member(make_project())
    make_item(member.project)
    offer = take(member)
    assert correct(member, offer).revision == correct(member, offer).revision
    assert Revision.objects.count() == 2


def test_unchanged_texts_make_no_revision() -> None:
    member = make_member(make_project())
    make_item(member.project)
    offer = take(member)
    assert correct(member, offer, offer.revision.texts["perturbed"]).revision == offer.revision


def test_a_correction_keeps_the_line_breaks_that_a_page_cannot_hand_back() -> None:
    member = make_member(make_project())
    make_item(member.project, texts={"prompt": "?", "gold": "A\r\nb", "perturbed": "A\r\nc"})
    offer = correct(member, take(member), text="A\nd")
    assert offer.revision.texts["perturbed"] == "A\r\nd"


def test_after_a_correction_of_an_item_labelled_before_comes_the_one_held_since() -> None:
    member = make_member(make_project())
    make_item(member.project), make_item(member.project)
    labelled = take(member)
    say(member, labelled)
    held_since = take(member)
    correct(member, labelled)
    assert take(member).item == labelled.item
    assert Slot.objects.get(item=held_since.item).ahead


def test_who_lost_the_place_cannot_correct() -> None:
    ana, _, hers, _ = lose_slot()
    with pytest.raises(Stale, match="reassigned"):
        correct(ana, hers)


@pytest.mark.parametrize("texts", [{}, {"gold": "x"}, {"perturbed": " "}])
def test_only_the_correctable_text_can_be_corrected_and_not_to_nothing(
    texts: dict[str, str],
) -> None:
    member = make_member(make_project())
    make_item(member.project)
    offer = take(member)
    with pytest.raises(Refused):
        queue.store_correction(member, offer.submission(), texts)


# ------------------------------------------------------------------------------------- undo


def test_undo_brings_the_item_back_and_keeps_the_label_on_record() -> None:
    member = make_member(make_project())
    first = make_item(member.project)
    make_item(member.project)
    say(member, take(member))
    after = take(member)
    again = queue.undo_label(member)
    assert again
    assert again.item == first
    assert (counted(first), resolution(first)) == ([], None)
    assert Label.objects.get().withdrawn_at
    assert Slot.objects.get(item=after.item).ahead
    say(member, again, "invalid")
    assert take(member).item == after.item
    assert counted(first) == ["invalid"]


def test_undo_goes_back_label_by_label_until_there_is_none() -> None:
    member = make_member(make_project())
    items = [make_item(member.project), make_item(member.project)]
    for _ in items:
        say(member, take(member))
    undone = [queue.undo_label(member), queue.undo_label(member)]
    assert [offer and offer.item for offer in undone] == items[::-1]
    assert queue.undo_label(member) is None


def test_an_undo_that_comes_twice_undoes_one_label() -> None:
    """As after a double click, or if the answer to the first was lost."""
    member = make_member(make_project())
    for _ in range(2):
        make_item(member.project)
        offer = take(member)
        last = say(member, offer)
    for shown in (last.submission, offer.key):
        again = queue.undo_label(member, shown=shown)
        assert again
        assert (again.item, again.previous) == (offer.item, last)
    assert Label.objects.filter(withdrawn_at=None).count() == 1
    say(member, again)
    with pytest.raises(Refused, match="undone already"):
        queue.undo_label(member, shown=last.submission)
    assert queue.undo_label(member, shown="\0")  # as if it were unknown


def test_undo_of_a_label_whose_place_went_to_another_still_shows_its_item() -> None:
    ana, ben, hers, his = lose_slot()
    say(ana, hers, now=LATER)
    again = queue.undo_label(ana, now=LATER)
    assert again
    assert again.item == hers.item
    assert Slot.objects.get().member == ben
    assert not say(ana, again, now=LATER).counted
    assert say(ben, his, now=LATER).counted


def test_undo_of_an_item_that_was_deleted_offers_nothing() -> None:
    member = make_member(make_project())
    make_item(member.project)
    say(member, take(member))
    Item.objects.update(deleted_at=NOW)
    assert queue.undo_label(member) is None
    assert Label.objects.get().withdrawn_at
    Item.objects.update(deleted_at=None)
    assert isinstance(queue.next_offer(make_member(member.project)), queue.Offer)


# ------------------------------------------------------------------------------------- resolving


@pytest.mark.parametrize(
    "choices, value",
    [
        (["valid"], None),
        (["valid", "valid"], "valid"),
        (["valid", "invalid"], None),
        (["valid", "invalid", "valid"], "valid"),
        (["valid", "invalid", "not-sure"], None),
    ],
)
def test_with_three_places_the_choice_of_more_than_half_of_them_decides(
    choices: list[str], value: str | None
) -> None:
    project = make_project(overlap=3)
    item = make_item(project)
    for choice in choices:
        member = make_member(project)
        say(member, take(member), choice)
    assert resolution(item) == value


def test_a_changed_mind_ends_one_resolution_and_makes_another() -> None:
    member = make_member(make_project())
    item = make_item(member.project)
    say(member, take(member))
    again = queue.undo_label(member)
    assert again
    say(member, again, "not-relevant")
    assert resolution(item) == "not-relevant"
    assert Resolution.objects.count() == 2


def test_labels_do_not_move_what_was_decided_otherwise() -> None:
    member = make_member(make_project())
    item = make_item(member.project)
    make_resolution(item, "score-invariant")
    say(member, take(member), "valid")
    assert resolution(item) == "score-invariant"


def test_progress_counts_items_without_repeats() -> None:
    member = make_member(make_project())
    first = make_item(member.project)
    make_item(member.project)
    make_item(member.project, duplicate_of=first, slots=0)
    say(member, take(member))
    assert queue.load_progress(member) == queue.MemberProgress(
        mine=1, resolved=1, total=2, left=1, todo=1
    )


def test_an_item_that_lacks_a_label_needs_another_annotator() -> None:
    member = make_member(make_project(overlap=2))
    make_item(member.project)
    say(member, take(member))
    assert queue.load_open_items(member) == queue.OpenItems(labels=1)


def test_an_item_with_all_its_labels_waits_for_verification() -> None:
    member = make_member(make_project(verify=True))
    make_item(member.project)
    say(member, take(member))
    assert queue.load_open_items(member) == queue.OpenItems(verification=1)


def test_an_item_whose_annotators_disagree_waits_for_adjudication() -> None:
    member = make_member(make_project(overlap=2))
    other = make_member(member.project)
    make_item(member.project)
    say(member, take(member), "valid"), say(other, take(other), "invalid")
    assert queue.load_open_items(member) == queue.OpenItems(adjudication=1)


def test_an_item_that_needs_a_label_and_an_expert_counts_once_with_the_labels() -> None:
    member = make_member(make_project(overlap=2))
    make_item(member.project)
    say(member, take(member), "not-sure")
    assert queue.load_open_items(member) == queue.OpenItems(labels=1)


def test_items_that_need_nothing_are_not_counted_as_open() -> None:
    member = make_member(make_project(overlap=2))
    make_resolution(make_item(member.project))
    first = make_item(member.project, deleted_at=NOW)
    make_item(member.project, duplicate_of=first)
    make_known(member.project, purpose="probe")
    assert queue.load_open_items(member) == queue.OpenItems()


def test_open_items_are_counted_in_one_query_however_many_there_are() -> None:
    member = make_member(make_project())
    for _ in range(5):
        make_item(member.project)
    queue.load_open_items(member)  # the size of the project is remembered from now on
    with CaptureQueriesContext(connection) as captured:
        assert queue.load_open_items(member).labels == 5
    assert len(captured) == 1


@pytest.mark.parametrize(
    ("open_items", "sentence"),
    [
        (
            queue.OpenItems(22, 24, 1300),
            "22 items need another annotator, 24 wait for verification, "
            "1,300 wait for adjudication.",
        ),
        (
            queue.OpenItems(1, 1, 1),
            "1 item needs another annotator, 1 waits for verification, 1 waits for adjudication.",
        ),
        (queue.OpenItems(verification=2), "2 items wait for verification."),
        (queue.OpenItems(adjudication=1), "1 item waits for adjudication."),
        (queue.OpenItems(), ""),
    ],
)
def test_a_sentence_says_what_open_items_wait_for(
    open_items: queue.OpenItems, sentence: str
) -> None:
    assert str(open_items) == sentence


# ------------------------------------------------------------------------------------- cost


def test_next_and_label_cost_the_same_at_the_start_and_after_many(
    django_assert_num_queries: Callable[..., Any],
) -> None:
    member = make_member(make_project())
    for _ in range(30):
        make_item(member.project)
    say(member, take(member))
    costs = []
    for _ in range(2):
        with django_assert_num_queries(32, exact=False) as seen:
            say(member, take(member))
        costs.append(len(seen))
        for _ in range(10):
            say(member, take(member))
    assert costs[0] == costs[1]


def test_a_label_reads_none_of_the_texts(django_assert_num_queries: Callable[..., Any]) -> None:
    member = make_member(make_project())
    make_item(member.project)
    offer = take(member)
    with django_assert_num_queries(32, exact=False) as seen:
        say(member, offer)
    assert [query["sql"] for query in seen if "texts" in query["sql"]] == []


def test_the_cursor_passes_a_fresh_item_when_it_is_taken() -> None:
    member = make_member(make_project())
    make_item(member.project), make_item(member.project)
    slot = Slot.objects.get(item=take(member).item)
    [cursor] = Cursor.objects.filter(member=member)
    assert (cursor.priority, cursor.position) == (slot.priority, slot.position)
