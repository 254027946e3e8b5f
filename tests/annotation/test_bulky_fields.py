"""Lists of items, and of what people wrote about them, do not read the own fields of the items: an
item may have megabytes of fields."""

import tracemalloc
from collections.abc import Callable, Collection
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation import importing, tasktypes
from annotation.db import transactions
from annotation.importing import read_ahead
from annotation.items import search, search_index, taxonomy
from annotation.items.snapshots import comparison, create
from annotation.labelling import bulk_changes, control_items, drafts, my_items
from annotation.models import (
    Comment,
    Item,
    Mark,
    Membership,
    Revision,
    Role,
    SearchText,
    Slot,
    Snapshot,
)
from annotation.reports import person
from annotation.settings import categories
from formats.rows import Row
from tests.builders import (
    TEXTS,
    browser_of,
    make_item,
    make_member,
    make_project,
    make_revision,
    make_slot,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead() -> Membership:
    project = make_project()
    lead = make_member(project, role=Role.LEAD)
    item = make_item(project, fields={"source": "exam"})
    make_item(project, fields={"source": "exam"}, cluster=item.cluster)
    Comment.objects.create(item=item, member=lead, text="Look at this.").mentions.add(lead)
    return lead


@pytest.mark.parametrize(
    "read",
    [
        lambda lead, item: list(Comment.objects.of_item(item)),
        lambda lead, item: list(Comment.objects.in_project(lead.project)),
        lambda lead, item: list(Comment.objects.naming(lead)),
        lambda lead, item: list(Mark.objects.for_my_items()),
        lambda lead, item: list(Slot.objects.for_my_items()),
        lambda lead, item: list(Slot.objects.undecided(lead.project_id, ["dispute"])),
        lambda lead, item: list(drafts.list_drafts(lead)),
        lambda lead, item: my_items.list_siblings(lead, item),
        lambda lead, item: control_items.load_results(lead.project),
        lambda lead, item: person.build_report(lead, timezone.now()),
        lambda lead, item: bulk_changes.change_items(
            lead, Item.objects.in_project(lead.project), "exclude", "", now=timezone.now()
        ),
    ],
)
def test_lists_leave_the_fields_of_items_in_the_database(
    lead: Membership, read: Callable[[Membership, Item], object]
) -> None:
    item = Item.objects.order_by("position")[0]
    item.project = lead.project
    with CaptureQueriesContext(connection) as made:
        read(lead, item)
    assert made.captured_queries
    assert not [one["sql"] for one in made if '"annotation_item"."fields"' in one["sql"]]


def test_changes_between_snapshots_are_read_for_few_items_at_once(lead: Membership) -> None:
    for _ in range(60):
        make_item(lead.project, fields={"text": "x" * 200_000})
    Item.objects.all().update(origin="before")
    for name in ("v1", "v2"):
        create.store_contents(create.enqueue(lead.project, lead, name))
        Item.objects.all().update(origin="after")
    before, after = Snapshot.objects.order_by("number")
    tracemalloc.start()
    changes = comparison.filter_changed(before, after, "changed")
    assert sum(1 for _ in comparison.list_changes(changes, "changed")) == 62
    # Together, the fields of both snapshots have 24 MB, and as many as JSON.
    assert tracemalloc.get_traced_memory()[1] < 15_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("page", "shown"), [("items/moon/", 5), ("items/moon/?revision=3", 3), ("adjudicate/moon/", 5)]
)
def test_the_page_of_an_item_loads_the_texts_of_the_shown_revision_alone(
    lead: Membership, monkeypatch: pytest.MonkeyPatch, page: str, shown: int
) -> None:
    item = make_item(lead.project, "moon")
    make_slot(item, stage="adjudicate")
    for number in range(2, 6):
        make_revision(item, {"prompt": "Who?", "gold": "A.", "perturbed": f"Answer {number}."})
    loaded, read = set[int](), Revision.from_db

    def note(db: str, names: Collection[str], values: Collection[Any]) -> Revision:
        if "texts" in names:
            loaded.add(dict(zip(names, values, strict=True))["id"])
        return read(db, names, values)

    monkeypatch.setattr(Revision, "from_db", note)
    told = browser_of(lead).get(f"/projects/{lead.project.slug}/{page}").content.decode()
    assert "Revision 1" in told
    assert loaded == {item.revisions.defer("texts").get(number=shown).pk}


def test_a_category_is_given_to_few_items_at_once(lead: Membership) -> None:
    for _ in range(100):
        make_item(lead.project, fields={"text": "x" * 200_000})
    spelling = taxonomy.load_taxonomy(lead.project).category("spelling")
    items = Item.objects.filter(project=lead.project)
    tracemalloc.start()
    with transactions.transact():
        assert categories._give_category(items, spelling) == 102
    # The fields have 20 MB, and are held several times: 42 MB on SQLite, 65 on PostgreSQL.
    assert tracemalloc.get_traced_memory()[1] < 35_000_000
    tracemalloc.stop()


def test_a_snapshot_is_made_with_few_items_in_memory_at_once(lead: Membership) -> None:
    for _ in range(60):
        make_item(lead.project, fields={"text": "x" * 500_000})
    snapshot = create.enqueue(lead.project, lead, "v1")
    tracemalloc.start()
    tracemalloc.reset_peak()
    create.store_contents(snapshot)
    # Together, the fields have 30 MB, and as many as JSON.
    assert tracemalloc.get_traced_memory()[1] < 25_000_000
    tracemalloc.stop()
    snapshot.refresh_from_db()
    assert snapshot.items == 62


@pytest.mark.parametrize("dry_run", [True, False])
def test_items_are_imported_with_few_of_them_in_memory_at_once(
    lead: Membership, *, dry_run: bool
) -> None:
    given = (
        Row("f", n, {"key": f"k{n}", "category": "entity", **TEXTS, "text": "x" * 500_000})
        for n in range(60)
    )
    drafts = importing.parse_items(given, tasktypes.load_task_type(lead.project))
    tracemalloc.start()
    tracemalloc.reset_peak()
    report = importing.store_items(lead.project, drafts, dry_run=dry_run)
    # Together, the fields have 30 MB, and as many as JSON.
    assert tracemalloc.get_traced_memory()[1] < 25_000_000
    tracemalloc.stop()
    assert report.new == 60


def test_rows_are_compared_with_few_of_the_stored_items_in_memory_at_once(lead: Membership) -> None:
    for n in range(60):
        make_item(lead.project, f"k{n}", fields={"text": "x" * 500_000})
    given = (Row("f", n, {"key": f"k{n}", "category": "entity", **TEXTS}) for n in range(60))
    drafts = importing.parse_items(given, tasktypes.load_task_type(lead.project))
    tracemalloc.start()
    tracemalloc.reset_peak()
    report = importing.store_items(lead.project, drafts)
    # Together, the stored fields have 30 MB.
    assert tracemalloc.get_traced_memory()[1] < 15_000_000
    tracemalloc.stop()
    assert len(report.conflicts) == 60


def test_rows_are_read_ahead_with_few_of_them_in_memory_at_once(lead: Membership) -> None:
    given = (
        Row("f", n, {"key": f"k{n}", "category": "entity", **TEXTS, "text": "x" * 500_000})
        for n in range(9)
    )
    drafts = importing.parse_items(given, tasktypes.load_task_type(lead.project))
    assert [len(chunk) for chunk in read_ahead._chunks(drafts)] == [1] * 9


def test_texts_are_indexed_with_few_of_them_in_memory_at_once(lead: Membership) -> None:
    for number in range(10):
        item = make_item(lead.project, f"long-{number}", texts={"gold": "former " * 400_000})
        make_revision(item, {"gold": f"number{number} " + "word " * 400_000})
    SearchText.objects.exclude(item__key__startswith="long-").update(due=False)
    tracemalloc.start()
    tracemalloc.reset_peak()
    assert search_index.update_batch() == 10
    # Together, the texts have 20 MB, the former ones 28 MB, and as many as JSON.
    assert tracemalloc.get_traced_memory()[1] < 35_000_000
    tracemalloc.stop()
    found = search.find_items(Item.objects.all(), lead.project, search.parse_query("number8 word"))
    assert [item.key for item in found] == ["long-8"]


def test_an_item_without_texts_is_indexed_too(lead: Membership) -> None:
    Item.objects.update(revision_number=9)
    while search_index.update_batch():
        pass
    assert search_index.count_due(lead.project, 9) == 0
