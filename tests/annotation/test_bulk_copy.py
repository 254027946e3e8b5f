"""Rows that are copied in come out as if each had been saved."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from annotation.db import bulk
from annotation.models import Event, Item, Project
from tests import builders

pytestmark = pytest.mark.django_db

TEXT = "a\tb \\ \\N\nç\r你 %s"


def item(project: Project, pk: int, **values: Any) -> dict[str, Any]:
    return {
        "id": pk,
        "project_id": project.pk,
        "key": f"copied-{pk}",
        "position": pk,
        "cluster": "c",
        "fields": '{"told": "ü\\\\n"}',
        **values,
    }


def test_a_copied_row_is_as_given_and_else_as_a_new_one() -> None:
    project = builders.make_project()
    first, second = bulk.reserve_ids(Item, 2)
    rows = [item(project, first, category=TEXT), item(project, second, category="")]
    rows[1]["fields"] = '{"told": "é in bytes"}'.encode()
    bulk.copy(Item, rows)
    copied, other = Item.objects.order_by("pk")
    made = Item.objects.create(project=project, key="made", position=10_000)
    assert (copied.pk, copied.category, copied.fields) == (first, TEXT, {"told": "ü\\n"})
    assert other.fields == {"told": "é in bytes"}
    assert (other.category, other.flags, other.dose, other.revision_number) == ("", [], None, 1)
    assert (other.purpose, other.deleted_at) == (made.purpose, made.deleted_at)
    assert abs((made.created_at - copied.created_at).total_seconds()) < 60


def test_rows_that_are_missing_are_inserted_as_new_ones_and_others_stay() -> None:
    project = builders.make_project()
    kept = Item.objects.create(project=project, key="copied-1", position=7, category="kept")
    rows = [item(project, number, category=TEXT) for number in (1, 2, 2)]
    for row in rows:
        del row["id"]
    bulk.insert_missing(Item, rows)
    bulk.insert_missing(Item, [])
    before, added = Item.objects.order_by("key")
    assert (before.pk, before.position, before.category) == (kept.pk, 7, "kept")
    assert (added.key, added.category, added.fields) == ("copied-2", TEXT, {"told": "ü\\n"})
    assert (added.flags, added.dose, added.revision_number) == ([], None, 1)
    assert abs((added.created_at - kept.created_at).total_seconds()) < 60


def test_ids_are_new_and_nobody_gets_them_again() -> None:
    project = builders.make_project()
    kept = Item.objects.create(project=project, key="kept", position=1).pk
    given = bulk.reserve_ids(Item, 3)
    assert list(given) == sorted(set(given))
    assert min(given) > kept
    bulk.copy(Item, [item(project, pk) for pk in given])
    assert Item.objects.create(project=project, key="next", position=10_000).pk > max(given)


def test_a_row_that_is_there_already_is_a_fault_and_none_is_stored() -> None:
    project = builders.make_project()
    first, second = bulk.reserve_ids(Item, 2)
    rows = [item(project, first), item(project, second, key=f"copied-{first}")]
    with pytest.raises(IntegrityError), transaction.atomic():
        bulk.copy(Item, rows)
    assert not Item.objects.exists()


def test_many_rows_cost_one_statement(django_assert_max_num_queries: Any) -> None:
    project = builders.make_project()
    given = bulk.reserve_ids(Item, 100)
    with django_assert_max_num_queries(2):
        bulk.copy(Item, [item(project, pk) for pk in given])
        bulk.copy(Item, [])
    assert Item.objects.count() == 100


def test_keys_are_found_by_their_index_among_thousands() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no costs to set.")
    project = builders.make_project()
    bulk.copy(Item, [item(project, pk) for pk in bulk.reserve_ids(Item, 20_000)])
    asked = Item.objects.filter(project=project, key__among=[f"new-{n}" for n in range(500)])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE annotation_item")
    assert "Seq Scan" in asked.explain()
    bulk.set_up_import()
    assert "item_key" in asked.explain()


def test_times_and_nothing_come_out_as_they_went_in() -> None:
    project = builders.make_project()
    at = datetime(2026, 3, 1, 12, 30, 0, 250_000, tzinfo=UTC)
    row = {
        "project_id": project.pk,
        "member_id": None,
        "kind": "test",
        "subject": "",
        "created_at": connection.ops.adapt_datetimefield_value(at),
    }
    bulk.copy(Event, [row])
    event = Event.objects.get(kind="test")
    assert (event.created_at, event.member, event.subject, event.data) == (at, None, "", {})
