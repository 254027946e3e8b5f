"""Named people, priority, and how many labels an item gets."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation import importing, tasktypes
from annotation.labelling import assignment, queue
from annotation.models import Item, Membership, Project, Reason, Resolution, Slot
from formats.rows import Row
from tests.builders import (
    TEXTS,
    browser_of,
    make_item,
    make_member,
    make_project,
    make_resolution,
    resize_all,
    say,
    take,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead() -> Membership:
    return make_member(make_project(), "lead")


@pytest.fixture
def member(lead: Membership) -> Membership:
    return make_member(lead.project)


def reserve(lead: Membership, items: list[Item], *members: Membership, **values: Any) -> Any:
    return assignment.reserve_slots(lead, items, members, now=timezone.now(), **values)


def places(item: Item) -> list[tuple[str, str]]:
    return list(Slot.objects.of_item(item).order_by("number").values_list("reason", "state"))


def use(project: Project, **settings: int) -> int:
    for name, value in settings.items():
        setattr(project, name, value)
    project.save()
    return resize_all(project)


# ----------------------------------------------------------------------------------- named people


def test_an_item_named_to_a_person_is_theirs_alone(lead: Membership, member: Membership) -> None:
    make_item(lead.project, "first"), make_item(lead.project, "named")
    reserve(lead, [Item.objects.get(key="named")], member)
    other = make_member(lead.project)
    assert take(member).item.key == "named"
    assert take(other).item.key == "first"
    say(other, take(other))
    assert isinstance(queue.next_offer(other), queue.Waiting)


def test_naming_takes_a_free_place_and_makes_one_only_if_there_is_none(
    lead: Membership, member: Membership
) -> None:
    item, other = make_item(lead.project), make_member(lead.project)
    assert reserve(lead, [item], member, other).reserved == 2
    assert places(item) == [("", "open"), (Reason.NAMED, "open")]


def test_many_labels_are_reserved_with_few_queries(lead: Membership, member: Membership) -> None:
    """Each query of a label would cost milliseconds: 33,000 labels took two minutes."""
    others = [make_member(lead.project) for _ in range(3)]
    items = [make_item(lead.project) for _ in range(10)]
    with CaptureQueriesContext(connection) as few:
        reserve(lead, items[:2], member, *others)
    with CaptureQueriesContext(connection) as many:
        assert reserve(lead, items, member, *others).reserved == 40
    assert len(many) == len(few)
    assert [places(item) for item in items] == [[("", "open"), *[(Reason.NAMED, "open")] * 3]] * 10
    kept = Slot.objects.order_by("item", "number").values_list("reserved_for", flat=True)
    assert list(kept) == [member.pk, *(one.pk for one in others)] * 10


def test_items_with_a_label_are_reserved_with_few_queries_too(
    lead: Membership, member: Membership
) -> None:
    other = make_member(lead.project)
    use(lead.project, overlap=2)
    items = [make_item(lead.project, slots=2) for _ in range(10)]
    for _ in items:
        say(other, take(other))
    with CaptureQueriesContext(connection) as few:
        assert reserve(lead, items[:2], member).reserved == 2
    with CaptureQueriesContext(connection) as many:
        assert reserve(lead, items[2:], member).reserved == 8
    assert len(many) == len(few)


def test_more_labels_than_a_request_can_reserve_are_refused(
    lead: Membership, member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assignment, "MOST_RESERVED", 3)
    items = [make_item(lead.project) for _ in range(2)]
    other = make_member(lead.project)
    page = reverse("assign", args=[lead.project.slug])
    said = {"people": [member.alias, other.alias], "action": "each"}
    answer = browser_of(lead).post(page, said)
    assert answer.status_code == 422
    assert "These are 4 labels. At most 3 can be reserved at once" in answer.content.decode()
    assert not Slot.objects.exclude(reserved_for=None).exists()
    assert reserve(lead, items, member, other, share_out=True).reserved == 2


def test_who_has_worked_on_an_item_gets_no_place_of_it(
    lead: Membership, member: Membership
) -> None:
    item = make_item(lead.project, slots=2)
    say(member, take(member))
    made = reserve(lead, [item], member)
    assert (made.reserved, made.refused) == (0, 1)


def test_naming_twice_is_naming_once(lead: Membership, member: Membership) -> None:
    item = make_item(lead.project, slots=2)
    reserve(lead, [item], member), reserve(lead, [item], member)
    assert [(row.member, row.count) for row in assignment.list_reserved(lead.project)] == [
        (member, 1)
    ]


def test_items_are_shared_out_in_turn(lead: Membership, member: Membership) -> None:
    items = [make_item(lead.project) for _ in range(4)]
    other = make_member(lead.project)
    reserve(lead, items, member, other, share_out=True)
    assert {row.count for row in assignment.list_reserved(lead.project)} == {2}
    assert Slot.objects.count() == 4


def test_what_is_taken_back_is_everybodys_again(lead: Membership, member: Membership) -> None:
    item, other = make_item(lead.project), make_member(lead.project)
    reserve(lead, [item], member, other)
    assert assignment.release_reserved(lead, member) == 1
    assert assignment.release_reserved(lead, other) == 1
    assert places(item) == [("", "open"), (Reason.NAMED, "closed")]
    assert take(make_member(lead.project)).item == item


def test_what_is_taken_back_finds_also_those_who_are_past_it(
    lead: Membership, member: Membership
) -> None:
    kept, other = make_item(lead.project), make_member(lead.project)
    make_item(lead.project)
    reserve(lead, [kept], member)
    say(other, take(other))
    assignment.release_reserved(lead, member)
    assert take(other).item == kept


def test_an_item_that_the_person_holds_stays_theirs(lead: Membership, member: Membership) -> None:
    make_item(lead.project)
    reserve(lead, [Item.objects.get()], member)
    offer = take(member)
    assert assignment.release_reserved(lead, member) == 0
    assert say(member, offer).counted


# ----------------------------------------------------------------------------------- priority


def test_urgent_items_come_first_also_for_who_is_past_them(
    lead: Membership, member: Membership
) -> None:
    items = [make_item(lead.project, f"{number}", slots=2) for number in range(4)]
    other = make_member(lead.project)
    say(other, take(other))
    for _ in range(2):
        say(member, take(member))
    assignment.set_priority(lead, [items[1]], "urgent")
    assert take(other).item.key == "1"
    assignment.set_priority(lead, [items[3]], "urgent")
    assert take(member).item.key == "3"


def test_later_items_come_last_and_normal_ones_are_found_again(
    lead: Membership, member: Membership
) -> None:
    first, second = make_item(lead.project, "1"), make_item(lead.project, "2")
    assignment.set_priority(lead, [first], "later")
    say(member, offer := take(member))
    assert offer.item == second
    assignment.set_priority(lead, [first], "normal")
    assert take(member).item == first


def test_an_unknown_priority_is_a_mistake(lead: Membership) -> None:
    with pytest.raises(KeyError):
        assignment.set_priority(lead, [], "whenever")


def test_items_are_locked_before_their_slots_get_a_priority(lead: Membership) -> None:
    items = [make_item(lead.project) for _ in range(3)]
    with CaptureQueriesContext(connection) as queries:
        assignment.prioritise([one.pk for one in items], "urgent")
    first, second, *rest = (one["sql"] for one in queries)
    assert 'FROM "annotation_item"' in first
    assert "ORDER BY" in first
    # By the id, as those lock who hold several; a plain "item" is sorted by its place.
    assert 'ORDER BY "annotation_slot"."item_id" ASC' in second
    assert connection.vendor == "sqlite" or "FOR NO KEY UPDATE" in first
    assert all("annotation_slot" in one for one in (second, *rest))


# ----------------------------------------------------------------------------------- overlap


def test_a_share_of_items_gets_more_labels_always_the_same_ones(lead: Membership) -> None:
    project = make_project("shared", share_percent=20, share_overlap=3)
    keys = [f"item-{number}" for number in range(1000)]
    drawn = {key for key in keys if assignment.is_in_share(project, key)}
    # 1,000 draws at 0.2: mean 200, sd 12.6; four of them either side.
    assert 150 < len(drawn) < 250
    project.share_percent = 40
    assert drawn < {key for key in keys if assignment.is_in_share(project, key)}
    project.share_percent, item = 100, Item(project=project, key="x", position=1)
    assert [slot.reason for slot in assignment.build_slots(project, item)] == ["", "share", "share"]
    project.share_percent = 0
    assert len(assignment.build_slots(project, item)) == 1


def test_items_of_the_share_get_their_places_when_they_are_imported(lead: Membership) -> None:
    lead.project.share_percent, lead.project.share_overlap = 50, 3
    lead.project.save()
    values = TEXTS | {"category": "number-errors"}
    rows = [Row("f", line, values | {"key": f"item-{line}"}) for line in range(20)]
    drafts = importing.parse_items(rows, tasktypes.load_task_type(lead.project))
    assert importing.store_items(lead.project, drafts).new == 20
    for item in Item.objects.all():
        assert len(places(item)) == (3 if assignment.is_in_share(lead.project, item.key) else 1)
    assert resize_all(lead.project) == 0


def test_a_higher_overlap_opens_places_and_a_lower_one_closes_those_that_are_free(
    lead: Membership, member: Membership
) -> None:
    item = make_item(lead.project)
    say(member, take(member))
    assert use(lead.project, overlap=3) == 1
    assert places(item) == [("", "filled"), ("", "open"), ("", "open")]
    assert not Resolution.objects.current().exists()  # one of three is no majority
    use(lead.project, overlap=1)
    assert places(item) == [("", "filled"), ("", "closed"), ("", "closed")]
    assert Resolution.objects.current().get().value == "valid"
    use(lead.project, overlap=2)
    assert places(item) == [("", "filled"), ("", "open"), ("", "closed")]


def test_settings_that_are_in_force_already_change_nothing(lead: Membership) -> None:
    make_item(lead.project)
    assert use(lead.project, overlap=1) == 0


def test_items_that_ask_for_no_work_get_none(lead: Membership, member: Membership) -> None:
    make_item(lead.project)
    answers = {"choice": "not-sure", "reason": "question-unclear"}  # which takes the item out
    queue.store_label(member, take(member).submission(answers))
    accepted = make_item(lead.project, slots=0)
    make_resolution(accepted)
    make_item(lead.project, slots=0, duplicate_of=accepted)
    make_item(lead.project, purpose="practice")
    assert use(lead.project, overlap=2) == 0


def test_places_for_people_who_disagree_or_are_named_are_left_alone(
    lead: Membership, member: Membership
) -> None:
    item = make_item(lead.project)
    reserve(lead, [item], member, make_member(lead.project))
    use(lead.project, overlap=1)
    assert places(item) == [("", "open"), (Reason.NAMED, "open")]


def test_where_people_disagree_more_of_them_are_asked(lead: Membership) -> None:
    lead.project.disputed_overlap = 3
    lead.project.save()
    item = make_item(lead.project, slots=2)
    for choice in ("valid", "invalid"):
        say(other := make_member(lead.project), take(other), choice)
    assert places(item)[2:] == [(Reason.DISPUTED, "open")]
    say(other := make_member(lead.project), take(other), "valid")
    assert Resolution.objects.current().get().value == "valid"


def test_items_that_get_more_places_are_read_in_parts_each_to_its_end(
    lead: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where SQLite still reads, whoever writes next is refused once somebody else wrote."""
    monkeypatch.setattr(assignment, "ITEMS_PER_STEP", 2)
    for _ in range(3):
        make_item(lead.project)
    lead.project.overlap = 2
    with CaptureQueriesContext(connection) as asked:
        steps = assignment.resize_items(lead.project, now=timezone.now())
        assert sum(step.changed for step in steps) == 3
    reads = [query["sql"] for query in asked if "LIMIT 2" in query["sql"]]
    assert len(reads) == 3  # two, one, and that there is no more


def test_a_final_label_comes_back_with_what_is_taken_back(
    lead: Membership, member: Membership
) -> None:
    item, other = make_item(lead.project), make_member(lead.project)
    say(member, take(member))
    reserve(lead, [item], other)
    assignment.release_reserved(lead, other)
    assert Resolution.objects.current().filter(item=item).exists()
