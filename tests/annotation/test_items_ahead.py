"""Items ahead: shown while there is no connection, held by nobody, taken when their label comes."""

import base64
import random
import re
from collections.abc import Callable
from dataclasses import astuple, replace
from itertools import takewhile
from typing import Any, TypeGuard

import pytest
from django.core import signing
from django.db import transaction
from django.urls import reverse
from hypothesis import settings

from annotation.errors import Refused, Stale
from annotation.labelling import blind_names, control_items, qualification, queue, submissions
from annotation.labelling.queue import Offer
from annotation.models import Draft, Item, Label, Mark, Membership, Slot
from tests.builders import (
    browser_of,
    correct,
    make_item,
    make_known,
    make_member,
    make_project,
    say,
    take,
)

pytestmark = pytest.mark.django_db


def at_work(number: int = 12, **values: Any) -> Membership:
    """Somebody who holds two of so many items."""
    project = make_project(**values)
    for place in range(1, number + 1):
        make_item(project, f"item-{place:02}", cluster=f"cluster-{place % 2}")
    return hold_two(make_member(project)) if number else make_member(project)


def hold_two(member: Membership) -> Membership:
    take(member)
    queue.next_offer(member, ahead=True)
    return member


def keys(offers: list[Offer]) -> list[str]:
    return [offer.item.key for offer in offers]


def held(member: Membership) -> list[str]:
    slots = Slot.objects.held_by(member.pk).order_by("ahead", "item__position")
    return list(slots.values_list("item__key", flat=True))


def fetch(member: Membership) -> str:
    answer = browser_of(member).get(reverse("label-ahead", args=[member.project.slug]))
    assert answer.status_code == 200
    return answer.content.decode()


# ---------------------------------------------------------------------------------- what is sent


def test_the_items_after_the_held_ones_are_sent_and_held_by_nobody() -> None:
    member = at_work()
    assert keys(queue.list_ahead(member)) == [f"item-{place:02}" for place in range(3, 11)]
    assert held(member) == ["item-01", "item-02"]
    assert held(make_member(member.project)) == []


def test_each_item_is_sent_once_however_many_labels_it_needs() -> None:
    member = at_work(4, overlap=3)
    assert keys(queue.list_ahead(member)) == ["item-03", "item-04"]


def test_nothing_that_the_member_may_not_get_is_sent() -> None:
    member = at_work(6)
    three, four, five, six = Item.objects.order_by("position")[2:6]
    Mark.objects.create(member=member, item=three, kind=Mark.Kind.SKIP)
    Slot.objects.of_item(four).update(reserved_for=make_member(member.project))
    Item.objects.filter(pk=five.pk).update(deleted_at="2026-01-01T00:00:00Z")
    assert keys(queue.list_ahead(member)) == [six.key]


def test_of_long_texts_fewer_items_are_sent() -> None:
    """A page of eight of them took the server half a minute."""
    member = at_work(12)
    fifth = Item.objects.get(project=member.project, key="item-05")
    texts = fifth.revision().texts | {"perturbed": "long " * 100_000}
    fifth.revisions.update(texts=texts)
    assert keys(queue.list_ahead(member)) == ["item-03", "item-04"]


def test_urgent_items_come_first_and_those_behind_the_cursor_are_not_looked_for() -> None:
    member = at_work(5)
    Slot.objects.filter(item__key="item-05").update(returned=True)
    member.cursors.update(position=3)
    assert keys(queue.list_ahead(member)) == ["item-05", "item-04"]


def test_nothing_is_sent_to_who_has_to_qualify() -> None:
    member = make_member(make_project(practice_items=1, practice_pass=1))
    make_item(member.project), make_item(member.project)
    make_known(member.project, "known")
    take(member)
    assert qualification.is_due(member)
    assert queue.list_ahead(member) == []
    assert fetch(member) == ""


def test_nothing_is_sent_to_who_has_to_qualify_again_while_items_are_held() -> None:
    member = make_member(make_project(practice_items=1, practice_pass=1))
    make_known(member.project, "known")
    for _ in range(5):
        make_item(member.project)
    qualification.waive(member, lead=member)
    member = hold_two(Membership.objects.get(pk=member.pk))
    assert len(queue.list_ahead(member)) == 3
    qualification.start_new_round(member, lead=member)
    assert queue.list_ahead(Membership.objects.get(pk=member.pk)) == []


def test_a_first_look_ahead_tells_no_more_than_one_that_is_held() -> None:
    member = at_work(0, blind_first=True)
    for number in range(1, 6):
        texts = {"claim": "Six for eight.", "gold": "Eight legs, as the reference has it."}
        make_item(member.project, f"number-errors-{number}", texts=texts)
    hold_two(member)
    sent = fetch(member)
    telling = r"number-errors|Number errors|factual|Factual|Perturbed|Six for eight|Sibling|sibling"
    assert re.search(telling, sent) is None
    assert "as the reference has it" not in sent
    assert sent.count('data-phase="blind"') == 3
    names = re.findall(r'data-item="([^"]*)"', sent)
    items = Item.objects.order_by("position")[2:]
    assert names == [blind_names.blind_name(member, item) for item in items]


def test_a_second_look_is_not_sent_ahead() -> None:
    member = at_work(4, blind_first=True)
    third, fourth = queue.list_ahead(member)
    look(member, third)
    Slot.objects.filter(item=third.item).update(state="open", member=None, held_until=None)
    assert keys(queue.list_ahead(member)) == [fourth.item.key]


def test_the_number_of_queries_does_not_depend_on_what_was_labelled(
    django_assert_num_queries: Callable[..., Any],
) -> None:
    member = at_work(60)
    costs = []
    for _ in range(2):
        with django_assert_num_queries(30, exact=False) as seen:
            assert len(queue.list_ahead(member)) == 8
        costs.append(len(seen))
        for _ in range(20):
            say(member, take(member))
        hold_two(member)
    assert costs[0] == costs[1]


# ------------------------------------------------------------------------------- control items


def with_control_items(number: int = 30) -> Membership:
    """Somebody who has both kinds of items ahead: normal ones (x) and control items (y)."""
    project = make_project(probe_every=3)
    for place in range(number):
        make_item(project, f"item-{place}-x")
        make_known(project, f"item-{place}-y", purpose="probe")
    for _ in range(50):  # nineteen of twenty members have
        member = hold_two(make_member(project))
        if {key[-1] for key in keys(queue.list_ahead(member))} == {"x", "y"}:
            return member
    raise AssertionError("no member has both kinds of items ahead")


def control_item_ahead(member: Membership) -> Offer:
    return next(one for one in queue.list_ahead(member) if one.item.purpose == "probe")


def test_control_items_are_sent_where_the_queue_has_them() -> None:
    member = with_control_items()
    seen = []
    for _ in range(20):
        coming = keys(queue.list_ahead(member))
        say(member, take(member))
        hold_two(member)
        assert held(member)[1] == coming[0]
        seen.append(coming[0][-1])
    assert {"x", "y"} == set(seen)


def test_control_items_keep_their_places_whatever_is_labelled_or_skipped_before_them() -> None:
    """Whoever takes the list again after items of it are done would see control items move."""
    project = make_project(probe_every=3)
    for place in range(24):
        make_item(project, f"item-{place}-x")
        make_known(project, f"item-{place}-y", purpose="probe")
    other, people = make_member(project), [make_member(project) for _ in range(25)]
    rng = random.Random(7)
    for number in range(settings().max_examples):
        with transaction.atomic():
            person = people[number % len(people)]
            control_items.remember_sent(person, [])
            play_with_the_list(hold_two(person), other, rng)
            transaction.set_rollback(True)


def play_with_the_list(member: Membership, other: Membership, rng: random.Random) -> None:
    """Do something with the items ahead, take the list again and compare both, some times."""
    before = queue.list_ahead(member)
    for _ in range(rng.randint(2, 6)):
        done: list[Offer] = []
        match rng.randrange(5):
            case 0 | 1:
                done = before[1:3]
                for offer in done:
                    queue.skip_item(member, offer.submission())
            case 2:
                done = [rng.choice(before)] if before else []
                for offer in done:
                    say(member, offer)
            case 3:  # somebody else labels what comes next
                say(other, take(other, draw=1))
            case _:
                say(member, take(member))
                done = [one for one in [queue.next_offer(member, ahead=True)] if is_offer(one)]
                assert keys(done) == keys(before[:1])
        after = queue.list_ahead(member)
        compare_lists(keys(before), keys(after), set(keys(done)))
        before = after


def is_offer(found: object) -> TypeGuard[Offer]:
    return isinstance(found, Offer)


def compare_lists(before: list[str], after: list[str], done: set[str]) -> None:
    """What was sent keeps its order, no control item (y) is gone, and what is new comes behind."""
    kept = [key for key in before if key in after]
    assert after[: len(kept)] == kept
    assert not done & set(after)
    assert {key for key in before if key.endswith("y")} - done <= set(after)


def test_a_control_item_that_was_sent_is_sent_and_offered_though_no_other_item_is_left() -> None:
    """Otherwise it would vanish from the list as the last items in front of it are done."""
    member = with_control_items(6)
    sent = queue.list_ahead(member)
    for offer in sent:
        if offer.item.purpose != "probe":
            queue.skip_item(member, offer.submission())
    Slot.objects.filter(state="open").update(state="closed")
    controls = [key for key in keys(sent) if key.endswith("y")]
    assert keys(queue.list_ahead(member)) == controls
    say(member, take(member)), say(member, take(member))
    assert take(member).item.key == controls[0]


def test_urgent_items_come_before_those_that_were_sent_and_move_none_of_them() -> None:
    member = with_control_items()
    sent = keys(queue.list_ahead(member))
    last = Slot.objects.filter(stage="label", state="open").order_by("position").last()
    assert last
    Slot.objects.filter(pk=last.pk).update(returned=True)
    first = list(takewhile(lambda key: key.endswith("y"), sent))
    expected = [*first, last.item.key, *sent[len(first) :]]
    assert keys(queue.list_ahead(member)) == expected[:8]
    Slot.objects.filter(pk=last.pk).update(state="closed")
    assert keys(queue.list_ahead(member)) == sent


def test_an_item_that_is_held_no_more_comes_before_those_that_were_sent() -> None:
    """A correction of an item ahead, which is held from then on, releases the second held one."""
    project, kinds = with_control_items().project, set()
    for member in [make_member(project) for _ in range(40)]:
        if kinds == {"x", "y"}:  # one in three is a control item
            return
        with transaction.atomic():
            hold_two(member)
            second, sent = held(member)[1], queue.list_ahead(member)
            corrected = next(one for one in sent if one.item.purpose == "test")
            correct(member, corrected)
            rest = [key for key in keys(sent) if key != corrected.item.key]
            assert keys(queue.list_ahead(member)) == [second, *rest]
            for _ in range(2):
                say(member, take(member))
            assert take(member).item.key == second
            kinds.add(second[-1])
            transaction.set_rollback(True)
    raise AssertionError("no member held both kinds of items second")


def test_places_sent_cost_no_query_without_control_items_and_one_with_them(
    django_assert_num_queries: Callable[..., Any],
) -> None:
    costs = []
    for values in ({}, {"probe_every": 30_000}):
        member = at_work(20, **values)
        make_known(member.project, "known", purpose="probe")
        for _ in range(2):
            with django_assert_num_queries(20, exact=False) as seen:
                take(member)
            costs.append(len(seen))
            queue.list_ahead(member)
    assert costs == [costs[0]] * 3 + [costs[0] + 1]


def test_about_one_item_in_so_many_is_a_control_item() -> None:
    member = make_member(make_project(probe_every=4))
    draws = [control_items.draw_after(member, item) for item in range(4000)]
    assert all(0 <= draw < 1 for draw in draws)
    assert 900 < sum(draw * 4 < 1 for draw in draws) < 1100


def test_a_control_item_ahead_looks_like_any_other_item() -> None:
    member = with_control_items()
    panels = fetch(member).split("<section id=")[1:]
    kinds = {re.findall(r'data-item="item-\d+-(.)"', panel)[0]: panel for panel in panels}
    assert set(kinds) == {"x", "y"}
    work, control = (
        re.sub(r'item-\d+-.|value="[\w:.=-]{40,}"', "", kinds[of]).strip() for of in "xy"
    )
    assert work == control
    assert not Slot.objects.filter(stage="control").exclude(state="held").exists()


def test_the_key_of_an_item_ahead_names_no_slot() -> None:
    """A slot's number would give control items away, since their slots are the newest."""
    member = with_control_items()
    tokens = [submissions.read_token(offer.key, member) for offer in queue.list_ahead(member)]
    assert {token.slot_id for token in tokens} == {0}
    held = submissions.read_token(take(member).key, member)
    assert (bool(held.slot_id), held.item_id) == (True, 0)  # its label needs no search


def test_nobody_reads_from_a_key_what_the_page_does_not_say() -> None:
    """The number of a held slot would tell control items too, and where an item stood in the file
    would tell its category at a first look."""
    member = with_control_items()
    ticket = submissions.SubmissionToken(987654321, member.pk, 1, item_id=123456789)
    key = submissions.issue_token(ticket)
    part = key.partition(":")[0]
    plain = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    assert not re.search(rb"987654321|123456789", key.encode() + plain)
    assert submissions.read_token(key, member) == ticket
    assert len(key) <= 400  # the length that forms and the API take


def test_the_length_of_a_key_does_not_tell_how_long_the_number_of_its_slot_is() -> None:
    keys = [
        submissions.issue_token(submissions.SubmissionToken(10**digits, 1, 1, diff=""))
        for digits in range(19)
    ]
    assert len({len(key) for key in keys}) == 1


def test_a_page_from_before_keys_were_encrypted_still_sends_its_label() -> None:
    member = at_work()
    offer = take(member)
    parts = [*astuple(submissions.read_token(offer.key, member)), "0123456789abcdef"]
    former = replace(offer, key=signing.dumps(parts, salt=submissions.SALT))
    assert say(member, former).counted


def test_a_label_of_a_control_item_ahead_is_a_control_label() -> None:
    member = with_control_items()
    label = say(member, control_item_ahead(member))
    assert (label.stage, label.counted) == ("control", True)


def test_a_control_item_ahead_is_corrected_like_any_other_item() -> None:
    member = with_control_items()
    ahead = control_item_ahead(member)
    assert correct(member, ahead).revision.number == 2
    with pytest.raises(Stale):
        say(member, ahead)


# ------------------------------------------------------------------------- taken at submission


def test_a_label_takes_its_slot_when_it_arrives() -> None:
    member = at_work()
    third = queue.list_ahead(member)[0]
    label = say(member, third)
    slot = Slot.objects.get(item=third.item)
    assert (label.counted, label.slot, slot.state, slot.member) == (True, slot, "filled", member)
    assert member.labelled == 1
    assert held(member) == ["item-01", "item-02"]


def test_the_same_key_twice_is_one_label() -> None:
    member = at_work()
    third = queue.list_ahead(member)[0]
    assert say(member, third) == say(member, third)
    assert Label.objects.count() == 1


def test_two_lists_give_one_label_that_counts() -> None:
    member = at_work()
    first, second = queue.list_ahead(member)[0], queue.list_ahead(member)[0]
    assert first.key != second.key
    say(member, first)
    say(member, second, "invalid")
    assert Label.objects.counted().get().choice == "invalid"
    assert Slot.objects.filter(state="filled").count() == 1


@pytest.mark.parametrize("labelled", [False, True])
def test_a_label_of_an_item_that_somebody_else_took_is_kept_as_extra_and_said_so(
    labelled: bool,
) -> None:
    member = at_work(3)
    third = queue.list_ahead(member)[0]
    theirs = take(make_member(member.project))
    assert theirs.item == third.item
    if labelled:
        say(theirs.slot.member, theirs, "invalid")
    sent = {"key": third.key, "item": third.name, "revision": 1, "choice": "valid"}
    address = reverse("label-submit", args=[member.project.slug])
    headers = {"HX-Request": "true", "Label-Next": "here"}
    answer = browser_of(member).post(address, sent, headers=headers)
    assert "saved as an extra one" in answer.content.decode()
    assert answer["Label-Counted"] == "no"
    label = Label.objects.get(member=member)
    assert (label.counted, label.slot) == (False, None)
    assert Slot.objects.get(item=third.item).member == theirs.slot.member


def test_a_label_of_an_item_that_needs_no_label_any_more_is_kept_as_extra() -> None:
    member = at_work(3)
    third = queue.list_ahead(member)[0]
    Slot.objects.get(item=third.item).close()
    assert not say(member, third).counted


def test_a_label_of_texts_that_were_corrected_meanwhile_is_refused_and_kept_as_a_draft() -> None:
    member = at_work(3)
    third = queue.list_ahead(member)[0]
    other = make_member(member.project)
    correct(other, take(other))
    sent = {"key": third.key, "item": third.name, "revision": 1, "choice": "valid"}
    address = reverse("label-submit", args=[member.project.slug])
    answer = browser_of(member).post(address, sent | {"comment": "Odd."})
    assert answer.status_code == 409
    draft = Draft.objects.get(member=member, item=third.item)
    assert (draft.data["comment"], draft.data["answers"]) == ("Odd.", {"choice": ["valid"]})
    assert not Label.objects.exists()


def test_a_removed_item_takes_no_label() -> None:
    member = at_work(3)
    third = queue.list_ahead(member)[0]
    Item.objects.filter(pk=third.item.pk).update(deleted_at="2026-01-01T00:00:00Z")
    with pytest.raises(Refused, match="removed from the project"):
        say(member, third)


def test_another_persons_key_is_refused() -> None:
    member = at_work(3)
    third = queue.list_ahead(member)[0]
    with pytest.raises(Refused):
        say(make_member(member.project), third)


def test_an_item_ahead_is_skipped_and_corrected_like_any_other() -> None:
    member = at_work(4)
    third, fourth = queue.list_ahead(member)
    queue.skip_item(member, third.submission())
    assert Mark.objects.get().item == third.item
    assert correct(member, fourth).revision.number == 2
    assert len(held(member)) == 2


def test_the_item_that_a_page_shows_is_held_once_it_has_a_connection_again() -> None:
    member = at_work(5)
    third = queue.list_ahead(member)[0]
    address = reverse("label-next", args=[member.project.slug])
    browser_of(member).get(address, headers={"label-shown": third.key})
    assert held(member) == ["item-01", "item-02"]  # no more than two
    say(member, take(member)), say(member, take(member))
    browser_of(member).get(address, headers={"label-shown": third.key})
    assert held(member) == ["item-03", "item-04"]


def test_what_somebody_else_holds_is_neither_taken_nor_corrected() -> None:
    member = at_work(3)
    third = queue.list_ahead(member)[0]
    say(member, take(member)), say(member, take(member))
    other = make_member(member.project)
    assert take(other).item == third.item
    address = reverse("label-next", args=[member.project.slug])
    browser_of(member).get(address, headers={"label-shown": third.key})
    with pytest.raises(Stale, match="Your text is still on this page"):
        correct(member, third)
    assert (held(member), held(other)) == ([], ["item-03"])


def test_a_control_item_that_a_page_shows_is_held_only_if_there_is_room() -> None:
    member = at_work(6)
    project = member.project
    make_known(project, "probe-1")
    Item.objects.filter(key="probe-1").update(purpose="probe")
    project.probe_every = 1
    project.save()
    ahead = {one.item.key: one for one in queue.list_ahead(member)}
    before = held(member)
    address = reverse("label-next", args=[project.slug])
    browser_of(member).get(address, headers={"label-shown": ahead["probe-1"].key})
    assert held(member) == before
    assert not Slot.objects.filter(stage="control").exists()


# ----------------------------------------------------------------------------------- first looks


def look(member: Membership, offer: Offer) -> Label:
    return queue.store_label(member, offer.submission({"error": False}))


def test_the_second_look_comes_once_the_first_has_arrived() -> None:
    member = at_work(5, blind_first=True)
    third, fourth, _ = queue.list_ahead(member)
    for offer in (take(member), queue.next_offer(member, ahead=True), third, fourth):
        assert isinstance(offer, Offer)
        assert look(member, offer).stage == "blind"
    assert held(member) == ["item-01", "item-02"]
    met = []
    for _ in range(5):
        offer = take(member)
        met.append((offer.item.key, offer.phase))
        if offer.phase == "blind":
            look(member, offer)
            offer = take(member)
        say(member, offer)
    phases = ["label", "label", "label", "label", "blind"]
    assert met == [(f"item-{place:02}", phase) for place, phase in enumerate(phases, 1)]


def test_the_item_of_a_first_look_is_held_if_there_is_room() -> None:
    member = at_work(5, blind_first=True)
    third = queue.list_ahead(member)[0]
    for offer in (take(member), queue.next_offer(member, ahead=True)):
        assert isinstance(offer, Offer)
        queue.skip_item(member, offer.submission())
    look(member, third)
    assert held(member) == ["item-03"]
