"""Many people at once, as real threads on the database that the tests run on."""

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Barrier, Event
from typing import TypeVar

import pytest
from django.db import connection, transaction

from annotation.errors import Stale
from annotation.labelling import answer_key, queue
from annotation.labelling.queue import Offer
from annotation.models import Item, Label, Membership, Project, Resolution, Revision, Slot
from annotation.settings import project_settings
from tests.builders import correct, make_item, make_member, make_project, say, take

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = 8
Result = TypeVar("Result")


def at_once(*works: Callable[[], Result]) -> list[Result]:
    """Do all of it in threads that start together, each with a connection of its own."""
    start = Barrier(len(works))

    def work(one: Callable[[], Result]) -> Result:
        start.wait(timeout=10)
        try:
            return one()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(work, works))


def label_until_none_is_left(member: Membership) -> int:
    done = 0
    while isinstance(offer := queue.next_offer(member), Offer):
        say(member, offer)
        done += 1
    return done


@pytest.mark.parametrize("order", ["file", "random"])
@pytest.mark.parametrize("items, overlap", [(200, 1), (60, 2), (40, 3)])
def test_every_place_is_filled_once_and_no_label_is_lost(
    items: int, overlap: int, order: str
) -> None:
    project = make_project(
        overlap=overlap, order=order, order_seed=11, begun_first=order == "random"
    )
    for _ in range(items):
        make_item(project)
    people = [make_member(project) for _ in range(THREADS)]
    at_once(*(lambda person=person: label_until_none_is_left(person) for person in people))
    # Whoever found all free places locked by others for a moment comes back.
    for person in people:
        label_until_none_is_left(person)
    labels = Label.objects.counted()
    assert Label.objects.count() == labels.count() == items * overlap
    assert set(Counter(labels.values_list("item", flat=True)).values()) == {overlap}
    assert labels.values("item", "member").distinct().count() == items * overlap
    assert Slot.objects.filter(state="filled").count() == items * overlap
    assert Resolution.objects.current().count() == items


def test_one_person_who_presses_eight_times_at_once_gets_one_item() -> None:
    member = make_member(make_project())
    for _ in range(20):
        make_item(member.project)
    offers = at_once(*[lambda: take(member)] * THREADS)
    assert len({offer.item.key for offer in offers}) == 1
    assert Slot.objects.filter(state="held").count() == 1


def test_one_page_that_is_sent_eight_times_at_once_is_one_label() -> None:
    member = make_member(make_project())
    make_item(member.project)
    offer = take(member)
    labels = at_once(*[lambda: say(member, offer)] * THREADS)
    assert len({label.pk for label in labels}) == Label.objects.count() == 1


def test_eight_people_who_correct_and_label_one_item_never_wait_for_each_other_for_ever() -> None:
    project = make_project(overlap=THREADS)
    item = make_item(project)
    people = [make_member(project) for _ in range(THREADS)]
    offers = [take(person) for person in people]

    def submit(number: int) -> str:
        person, offer = people[number], offers[number]
        try:
            if number % 2:
                correct(person, offer, f"{number} legs.")
            else:
                say(person, offer)
        except Stale:
            return "stale"
        return "taken"

    at_once(*(lambda number=number: submit(number) for number in range(THREADS)))
    item = Item.objects.get()
    assert item.revision_number == Revision.objects.count() == 2
    assert not Label.objects.counted().exclude(revision__number=2).exists()


def test_items_ahead_that_many_label_at_once_count_once_each_and_lose_no_label() -> None:
    """Everybody has the same items ahead and labels them, while others take them."""
    project = make_project()
    for _ in range(2 * THREADS + 8):
        make_item(project)
    people = [make_member(project) for _ in range(THREADS)]
    for person in people:
        queue.next_offer(person), queue.next_offer(person, ahead=True)
    ahead = [queue.list_ahead(person) for person in people]
    assert len({offer.item.key for offers in ahead for offer in offers}) == 8

    def work(number: int) -> None:
        if number % 4 == 3:
            label_until_none_is_left(people[number])
        else:
            for offer in ahead[number]:
                say(people[number], offer)

    at_once(*(lambda number=number: work(number) for number in range(THREADS)))
    labels = Label.objects.filter(item__in=[offer.item for offer in ahead[0]])
    assert labels.counted().count() == len(ahead[0])
    assert set(Counter(labels.counted().values_list("item", flat=True)).values()) == {1}
    for number, offers in enumerate(ahead):
        if number % 4 != 3:
            assert labels.filter(member=people[number]).count() == len(offers)
    filled = Slot.objects.filter(state="filled")
    counted = Label.objects.counted()
    assert set(filled.values_list("pk", "member")) == set(counted.values_list("slot", "member"))


def test_people_who_label_and_undo_at_once_leave_every_place_in_a_true_state() -> None:
    project = make_project(overlap=2)
    for _ in range(20):
        make_item(project)
    people = [make_member(project) for _ in range(THREADS)]

    def work(person: Membership) -> None:
        for number in range(8):
            offer = queue.next_offer(person)
            if isinstance(offer, Offer):
                say(person, offer)
            if number % 3 == 0:
                queue.undo_label(person)

    at_once(*(lambda person=person: work(person) for person in people))
    filled = Slot.objects.filter(state="filled")
    counted = Label.objects.counted()
    assert set(filled.values_list("pk", "member")) == set(counted.values_list("slot", "member"))
    assert counted.values("item", "member").distinct().count() == counted.count()


@pytest.mark.postgresql
def test_who_holds_two_items_waits_for_the_slots_of_a_lead_item_by_item() -> None:
    """A lead's change has locked the slot of the first item, and comes to that of the second."""
    project = make_project(overlap=1)
    for key in "ab":
        make_item(project, key)
    member = make_member(project)
    take(member)
    queue.next_offer(member, ahead=True)
    first, second = Slot.objects.order_by("item")
    Slot.objects.filter(pk=first.pk).update(ahead=True)
    Slot.objects.filter(pk=second.pk).update(ahead=False)

    def change_while(ask: Callable[[], object]) -> None:
        locked = Event()

        def ask_later() -> None:
            locked.wait(10)
            ask()

        def change() -> None:
            with transaction.atomic():
                Slot.objects.filter(pk=first.pk).lock_in_turn()
                locked.set()
                time.sleep(0.3)
                Slot.objects.filter(pk=second.pk).lock_in_turn()

        at_once(change, ask_later)

    change_while(lambda: queue.next_offer(member, ahead=True))
    change_while(lambda: queue.renew_holds(member))


@pytest.mark.postgresql
def test_an_item_that_is_released_while_a_lead_changes_the_settings_gets_the_new_places() -> None:
    """Its release waits for the item, which somebody has locked."""
    project = make_project(overlap=2)
    lead, item = make_member(project, role="lead"), make_item(project, "a")
    answer_key.set_answer(project, item, "probe", {"choice": "valid"}, "It is.", lead)
    stored = Project.objects.get(pk=project.pk)

    def count_waiting() -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(DISTINCT waiting.pid) FROM pg_locks waiting"
                " JOIN pg_locks here ON here.pid = waiting.pid"
                " JOIN pg_database d ON d.oid = here.database AND d.datname = current_database()"
                " WHERE NOT waiting.granted"
            )
            return int(cursor.fetchone()[0])

    def in_its_own_connection(step: Callable[[], object]) -> None:
        try:
            step()
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        begun: list[Future[None]] = []
        with transaction.atomic():
            Item.objects.locked().get(pk=item.pk)
            for step in (
                partial(answer_key.release_item, item, lead),
                partial(project_settings.apply_change, stored, lead, {"overlap": 3}),
            ):
                begun.append(pool.submit(in_its_own_connection, step))
                ends = time.monotonic() + 60
                while not begun[-1].done() and count_waiting() < len(begun):
                    assert time.monotonic() < ends, "the step neither waits nor ends"
        for one in begun:
            one.result(timeout=60)
    assert Slot.objects.filter(item=item, stage="label", state="open").count() == 3
