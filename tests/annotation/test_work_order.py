"""In which order people get the items: random, as in the file or by a field, begun ones first."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from annotation import importing, tasktypes
from annotation.items import taxonomy
from annotation.labelling import queue, work_order
from annotation.labelling.queue import Offer, Waiting, claims
from annotation.models import Cursor, Item, Job, Membership, Project, Slot
from annotation.projects import creation
from annotation.settings import project_settings
from formats.rows import Row
from operation.integrity import CHECKS
from tests.builders import TEXTS, make_account, make_item, make_member, make_project, say, take

pytestmark = pytest.mark.django_db


def in_random_order(items: int = 0, clusters: int = 0, **values: Any) -> Project:
    project = make_project(order="random", order_seed=7, **values)
    for number in range(items):
        cluster = f"cluster-{number % clusters if clusters else number}"
        make_item(project, f"item-{number:03}", cluster=cluster)
    return project


def shown(member: Membership, most: int = 1_000) -> list[str]:
    """The keys of the items that the member gets one after the other, as the label screen asks."""
    keys: list[str] = []
    offer = queue.next_offer(member, draw=1)
    while isinstance(offer, Offer) and len(keys) < most:
        keys.append(offer.item.key)
        ahead = queue.next_offer(member, ahead=True, draw=1)
        say(member, offer)
        offer = ahead if isinstance(ahead, Offer) else queue.next_offer(member, draw=1)
    return keys


def places(project: Project) -> list[str]:
    """The keys of the items by their places in the queue."""
    return [
        *Item.objects.filter(project=project)
        .order_by("slots__position")
        .values_list("key", flat=True)
    ]


def set_order(project: Project, **values: Any) -> None:
    lead = Membership.objects.filter(project=project, role="lead").first() or make_member(
        project, "lead"
    )
    asked = {"order": project.order, "order_field": "", "begun_first": project.begun_first}
    assert project_settings.find_problems(project, asked | values) == []
    project_settings.apply_change(project, lead, asked | values)
    project.refresh_from_db()


# ------------------------------------------------------------------------------------------ random


def test_everybody_goes_round_from_a_place_of_their_own_and_gets_each_item_once() -> None:
    project = in_random_order(40, overlap=3)
    # Of any two members, one pair in forty would start at the same item.
    ana, ben = make_member(project, id=1_000_001), make_member(project, id=1_000_002)
    round_of = {member: shown(member) for member in (ana, ben)}
    order = places(project)[::3]
    for member, keys in round_of.items():
        first = order.index(keys[0])
        assert keys == order[first:] + order[:first]
        begin = work_order.start_position(project, member.pk)
        before = Slot.objects.filter(project=project, position__lte=begin, number=1).count()
        assert first == before % 40
    assert round_of[ana][0] != round_of[ben][0]


def test_nobody_turns_back_where_the_place_they_reached_was_stored_long_ago() -> None:
    """More slots lie between than a search looks at: of twelve items, two slots each."""
    project = in_random_order(40, overlap=3)
    order = places(project)[::3]
    stored = [
        slot.position % claims.RANDOM_STRIDE == 0
        for slot in Slot.objects.filter(project=project, number=1).order_by("position")
    ]
    assert not any(stored[9:22])
    begins = Slot.objects.get(item__key=order[7], number=1).position
    begins_there = (
        number
        for number in range(1, 10_000)
        if begins <= work_order.start_position(project, number) < begins + 2**25
    )
    assert shown(make_member(project, id=next(begins_there))) == order[8:] + order[:8]


@given(seed=st.integers(0, 2**31 - 1), member=st.integers(1, 10**6), position=st.integers(1, 10**7))
def test_the_order_depends_on_seed_and_member_alone(seed: int, member: int, position: int) -> None:
    def drawn() -> tuple[int, int]:
        project = Project(order="random", order_seed=seed)
        return work_order.queue_position(project, position), work_order.start_position(
            project, member
        )

    assert drawn() == drawn()
    assert all(0 <= place < 2**31 for place in drawn())
    in_file = Project(order="file", order_seed=seed)
    assert work_order.queue_position(in_file, position) == position
    assert work_order.start_position(in_file, member) == -1


def test_two_seeds_give_two_orders_of_which_neither_is_that_of_the_file() -> None:
    orders = []
    for seed in (1, 2):
        project = Project(order="random", order_seed=seed)
        orders.append(sorted(range(1, 101), key=lambda n: work_order.queue_position(project, n)))
    assert orders[0] != orders[1]
    assert [*range(1, 101)] not in orders


def test_two_items_of_one_question_follow_each_other_only_if_no_other_is_left() -> None:
    project = in_random_order(60, clusters=6)
    keys = shown(make_member(project))
    clusters = dict(Item.objects.values_list("key", "cluster"))
    row = [clusters[key] for key in keys]
    assert Counter(row) == {f"cluster-{n}": 10 for n in range(6)}
    again = [place for place, (one, other) in enumerate(pairwise(row)) if one == other]
    # What was passed over comes in the end.
    assert [place for place in again if place < 45] == []
    by_place = [clusters[key] for key in places(project)]
    assert any(one == other for one, other in pairwise(by_place))


def test_a_new_project_is_in_random_order_and_one_that_was_there_keeps_its_own() -> None:
    made = creation.create_led_project(make_account(), "Reviews")
    assert (made.order, made.begun_first) == ("random", True)
    assert creation.create_led_project(make_account(), "Others").order_seed != made.order_seed
    assert (make_project().order, make_project().begun_first) == ("file", False)


def test_imported_items_get_the_places_of_the_project() -> None:
    project = make_project(order="random", order_seed=3)
    texts = {name: f"{name} text" for name in TEXTS}
    rows = [
        Row("x.jsonl", n, {"key": f"k{n}", "category": "number-errors", **texts, "prompt": f"{n}?"})
        for n in range(1, 6)
    ]
    task, known = tasktypes.load_task_type(project), taxonomy.load_taxonomy(project)
    report = importing.store_items(project, importing.parse_items(rows, task, known))
    assert report.new == 5
    stored = dict(Slot.objects.values_list("item__position", "position"))
    assert stored == {n: work_order.queue_position(project, n) for n in range(1, 6)}


# ------------------------------------------------------------------------------------- begun first


@pytest.mark.parametrize("order", ["file", "random"])
def test_an_item_that_somebody_has_labelled_comes_before_the_others(order: str) -> None:
    project = make_project(order=order, order_seed=5, overlap=2, begun_first=True)
    for number in range(30):
        make_item(project, f"item-{number:03}")
    ana, ben, cleo = (make_member(project) for _ in range(3))
    first = shown(ana, 6)
    assert sorted(shown(ben, 6)) == sorted(first)
    assert not {*shown(cleo, 4)} & {*first}
    left = Slot.objects.filter(begun=True, state="open").values_list("item__key", flat=True)
    third = {*left}
    assert third
    # The one that ben's page held already, then hers.
    assert third < {*shown(ben, 5)}


def test_without_the_setting_everybody_goes_their_own_way() -> None:
    project = in_random_order(30, overlap=2)
    ana, ben = make_member(project, id=1_000_001), make_member(project, id=1_000_003)
    assert {*shown(ana, 3)} != {*shown(ben, 3)}
    assert not Slot.objects.filter(begun=True).exists()


def test_an_undone_label_leaves_no_begun_item() -> None:
    project = in_random_order(3, overlap=2, begun_first=True)
    ana = make_member(project)
    say(ana, take(ana))
    assert Slot.objects.filter(begun=True).count() == 1
    queue.undo_label(ana)
    assert not Slot.objects.filter(begun=True, state="open").exists()


def test_a_begun_item_is_labelled_as_often_as_the_others() -> None:
    project = in_random_order(5, overlap=2, begun_first=True)
    for person in (make_member(project) for _ in range(4)):
        shown(person)
    filled = Slot.objects.filter(state="filled").values_list("item__key", flat=True)
    assert Counter(filled) == {f"item-{n:03}": 2 for n in range(5)}
    assert isinstance(queue.next_offer(make_member(project)), Waiting)


def test_own_begun_items_in_great_number_hide_neither_fresh_ones_nor_those_of_others() -> None:
    project = in_random_order(200, overlap=3, begun_first=True)
    ana, ben = make_member(project), make_member(project)
    assert len(shown(ana, 150)) == 150
    first = {*shown(ben, 3)}
    assert first < {*Slot.objects.filter(member=ana).values_list("item__key", flat=True)}
    assert len(shown(ana)) == 50
    assert len(shown(ben)) == 197


def test_labels_asked_for_later_do_not_hide_begun_items() -> None:
    project = in_random_order(30, begun_first=True)
    lead, ana, ben = make_member(project, "lead"), make_member(project), make_member(project)
    project_settings.apply_change(project, lead, {"overlap": 2})
    ana, ben = (Membership.objects.select_related("project").get(pk=one.pk) for one in (ana, ben))
    first = shown(ana, 6)
    assert {*first[:5]} < {*shown(ben, 7)}
    for number in range(30, 40):
        make_item(project, f"item-{number:03}")
    left = Slot.objects.filter(begun=True, state="open").exclude(item__slots__member=ana)
    wanted = {*left.values_list("item__key", flat=True)}
    assert wanted <= {*shown(ana, len(wanted) + 1)}


def test_nearly_every_slot_is_found_by_one_statement_of_six_searches() -> None:
    project = in_random_order(30, overlap=2, begun_first=True)
    ana, ben = make_member(project), make_member(project)
    shown(ana, 10)
    asked: list[str] = []

    def note(execute: Any, statement: str, *rest: Any) -> Any:
        asked.append(statement)
        return execute(statement, *rest)

    for _ in range(30):
        with connection.execute_wrapper(note):
            offer = queue.next_offer(ben, draw=1)
        say(ben, offer)
    searches = [statement for statement in asked if "found AS" in statement]
    assert searches[0].count("LIMIT 1 OFFSET 0") == 2 * 6
    # Twice at the end of the items, where ben goes on with the first one.
    assert len(searches) <= 31


# --------------------------------------------------------------------------------------- the cursor


def test_who_looked_before_there_were_items_still_starts_at_a_place_of_their_own() -> None:
    project = in_random_order()
    people = [make_member(project, id=number) for number in (1_000_001, 1_000_003)]
    for person in people:
        assert isinstance(queue.next_offer(person), Waiting)
    for number in range(40):
        make_item(project, f"item-{number:03}")
    order = places(project)
    later = timezone.now() + timedelta(minutes=1)
    starts = [take(person, now=later, draw=1).item.key for person in people]
    for person, key in zip(people, starts, strict=True):
        start = work_order.start_position(project, person.pk)
        before = Slot.objects.filter(project=project, position__lte=start).count()
        assert order.index(key) == before % 40


def test_of_each_priority_a_member_goes_round_from_the_same_place() -> None:
    project = in_random_order(40)
    member = make_member(project)
    order, later = places(project), {f"item-{number:03}" for number in range(0, 40, 2)}
    Slot.objects.filter(item__key__in=later).update(priority=work_order.PRIORITIES["later"])
    start = work_order.start_position(project, member.pk)
    first = Slot.objects.filter(project=project, position__lte=start).count() % 40
    rounds = order[first:] + order[:first]
    wanted = [key for key in rounds if key not in later] + [key for key in rounds if key in later]
    assert shown(member) == wanted


def test_a_cursor_lags_by_few_items_whatever_the_ids_of_the_slots() -> None:
    project = in_random_order(400, overlap=2)
    member = make_member(project)
    shown(member, 300)
    cursor = Cursor.objects.get(member=member, stage="label")
    turn = claims.CursorState(
        cursor.priority, cursor.position, work_order.start_position(project, member.pk)
    )
    own = Slot.objects.filter(member=member, position__gt=turn.position, position__lte=turn.last)
    assert own.count() < 150


# ----------------------------------------------------------------------------------- other settings


def test_a_lead_changes_the_order_and_nobody_gets_an_item_again() -> None:
    project = make_project()
    for number in range(20):
        make_item(project, f"item-{number:03}")
    member = make_member(project)
    done = shown(member, 5)
    assert done == [f"item-{number:03}" for number in range(5)]
    set_order(project, order="random")
    assert not Cursor.objects.exists()
    rest = shown(member)
    assert sorted(done + rest) == [f"item-{number:03}" for number in range(20)]
    assert rest != sorted(rest)
    set_order(project, order="file")
    assert places(project) == sorted(places(project))


def test_items_come_by_a_field_numbers_before_words_and_none_last() -> None:
    project = make_project()
    values = {"a": "10", "b": "soon", "c": 9, "d": None, "e": "first", "f": 9}
    for key, value in values.items():
        make_item(project, key, fields={} if value is None else {"rank": value})
    set_order(project, order="field", order_field="rank")
    assert shown(make_member(project)) == ["c", "f", "a", "e", "b", "d"]
    texts = {name: f"{name} text" for name in TEXTS}
    row = {"key": "new", "category": "number-errors", **texts, "prompt": "New?", "rank": 1}
    task, known = tasktypes.load_task_type(project), taxonomy.load_taxonomy(project)
    importing.store_items(project, importing.parse_items([Row("x.jsonl", 1, row)], task, known))
    assert project_settings.run_job(Job.objects.get(finished_at=None).pk)
    assert shown(make_member(project))[0] == "new"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"order": "field", "order_field": ""}, "Name a field. Choose from rank."),
        (
            {"order": "field", "order_field": "rang"},
            "No item has a field 'rang'. Choose from rank.",
        ),
        ({"order": "file", "order_field": "rang"}, None),
    ],
)
def test_a_field_that_no_item_has_is_told(values: dict[str, str], said: str | None) -> None:
    project = make_project()
    make_item(project, fields={"rank": 1})
    found = project_settings.find_problems(project, values)
    assert [one.text for one in found] == ([said] if said else [])


def test_a_long_sort_goes_on_where_it_was_stopped() -> None:
    project = make_project(begun_first=False, overlap=2)
    for number in range(12):
        make_item(project, f"item-{number:03}")
    lead, member = make_member(project, "lead"), make_member(project)
    say(member, take(member))
    project.order, project.order_seed, project.begun_first = "random", 9, True
    project.save()
    job = project_settings.enqueue_job(project, lead, timezone.now(), {"order"})
    small = pytest.MonkeyPatch()
    small.setattr(work_order, "BATCH", 5)
    try:
        assert not project_settings.run_job(job.pk, seconds=-1)
        job.refresh_from_db()
        assert (job.state, job.result) == (Job.State.WAITING, {"sorted": 5})
        while not project_settings.run_job(job.pk, seconds=-1):
            pass
    finally:
        small.undo()
    stored = dict(Slot.objects.values_list("item__position", "position"))
    assert stored == {n: work_order.queue_position(project, n) for n in range(1, 13)}
    assert Slot.objects.filter(begun=True).count() == 1


def test_a_change_of_settings_during_a_sort_loses_nothing_of_it() -> None:
    project = make_project(overlap=2)
    for number in range(12):
        make_item(project, f"item-{number:03}")
    lead = make_member(project, "lead")
    project.order, project.order_seed = "random", 9
    project.save()
    job = project_settings.enqueue_job(project, lead, timezone.now(), {"order"})
    small = pytest.MonkeyPatch()
    small.setattr(work_order, "BATCH", 5)
    try:
        assert not project_settings.run_job(job.pk, seconds=-1)
        Project.objects.filter(pk=project.pk).update(overlap=3)
        project_settings.enqueue_job(project, lead, timezone.now(), {"overlap"})
        while not project_settings.run_job(job.pk, seconds=-1):
            pass
    finally:
        small.undo()
    stored = set(Slot.objects.values_list("item__position", "position"))
    assert stored == {(n, work_order.queue_position(project, n)) for n in range(1, 13)}
    assert Slot.objects.count() == 36


def test_verify_accepts_every_order() -> None:
    for order in ("file", "random", "field"):
        project = make_project(order=order, order_seed=3, order_field="rank")
        for number in range(3):
            make_item(project, fields={"rank": number})
    assert list(breaches()) == []
    wrong = Slot.objects.filter(project__order="file").first()
    assert wrong
    Slot.objects.filter(pk=wrong.pk).update(position=99)
    assert [one["slot"] for one in breaches()] == [wrong.pk]


def breaches() -> Iterator[dict[str, Any]]:
    yield from CHECKS["slots-belong"].find()


def test_an_import_follows_an_order_that_was_chosen_after_it_began() -> None:
    project = make_project()
    as_it_began = Project.objects.select_related("task_type").get(pk=project.pk)
    set_order(project, order="random")
    texts = {name: f"{name} text" for name in TEXTS}
    rows = [Row("x.jsonl", 1, {"key": "new", "category": "number-errors", **texts})]
    task, known = tasktypes.load_task_type(project), taxonomy.load_taxonomy(project)
    importing.store_items(as_it_began, importing.parse_items(rows, task, known))
    assert Slot.objects.get().position == work_order.queue_position(project, 1)
