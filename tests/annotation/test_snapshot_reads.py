"""Reads that see the rows of one instant, while others write."""

import pytest
from django.db import Error

from annotation.db import snapshot_reads
from annotation.exporting import tables
from annotation.models import Item, Project
from tests.annotation.test_queue_threads import at_once
from tests.builders import make_item, make_project

pytestmark = pytest.mark.django_db(transaction=True)


def keys(project: Project) -> list[str]:
    return [row["key"] for row in tables.item_rows(project)]


def test_what_others_write_meanwhile_is_not_seen_and_not_held_up() -> None:
    project = make_project()
    make_item(project, "a")
    with snapshot_reads.consistent_reads():
        assert keys(project) == ["a"]
        at_once(lambda: make_item(project, "b"))
        assert keys(project) == ["a"]
    assert keys(project) == ["a", "b"]


def test_nothing_can_be_written_inside_and_all_can_after() -> None:
    make_item(make_project(), "a")
    with snapshot_reads.consistent_reads(), pytest.raises(Error):
        Item.objects.update(origin="here")
    assert Item.objects.get().origin == ""
    Item.objects.update(origin="here")
    assert Item.objects.get().origin == "here"


def test_rows_that_are_not_read_to_the_end_hold_nothing_up() -> None:
    project = make_project()
    for key in "abc":
        make_item(project, key)
    with snapshot_reads.consistent_reads():
        assert next(tables.item_rows(project))["key"] == "a"
    assert keys(project) == ["a", "b", "c"]
