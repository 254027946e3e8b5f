import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotation import importing
from annotation.db import batches
from annotation.db.batches import id_batches
from annotation.exporting import tables
from annotation.exporting.tables import TABLES
from annotation.items.snapshots import create
from annotation.items.snapshots import table as snapshot_table
from annotation.labelling import queue
from annotation.models import Account, Comment, Item, Mark, PracticeRound, Project
from formats.writers import write_csv, write_file
from tests.annotation.test_pace import NOW, give
from tests.builders import (
    correct,
    make_item,
    make_member,
    make_project,
    make_resolution,
    make_revision,
    say,
    take,
)

pytestmark = pytest.mark.django_db


def rows(name: str, project: Project) -> list[dict[str, Any]]:
    return list(TABLES[name].rows(project))


def test_categories_come_in_the_order_of_the_taxonomy_with_repeats_and_without_deleted() -> None:
    project = make_project()
    invariant = make_item(project, category="score-invariant", ability="score-invariant")
    make_item(project, category="formatting", ability="score-invariant", duplicate_of=invariant)
    make_item(project, category="grammar", ability="long-form")
    make_item(project, category="grammar", ability="long-form")
    make_item(project, category="grammar", deleted_at="2026-01-01T00:00Z")
    assert rows("categories", project) == [
        {"ability": "long-form", "category": "grammar", "items": 2},
        {"ability": "score-invariant", "category": "score-invariant", "items": 1},
        {"ability": "score-invariant", "category": "formatting", "items": 1},
    ]


def test_a_category_whose_items_came_under_two_abilities_counts_both() -> None:
    project = make_project()
    for ability in ("factual", "long-form"):
        make_item(project, category="grammar", ability=ability)
    assert [row["items"] for row in rows("categories", project)] == [1, 1]


def test_items_say_their_current_texts_and_what_is_held_true() -> None:
    member = make_member(make_project())
    original = make_item(member.project, "a")
    make_item(member.project, "b", duplicate_of=original, slots=0, fields={"weight": 3})
    correct(member, take(member), "Seven.")
    make_resolution(Item.objects.get(key="a"), "invalid", values={"choice": "invalid"})
    first, second = rows("items", member.project)
    assert (first["revision"], first["perturbed"], first["resolution"]) == (2, "Seven.", "invalid")
    assert (second["duplicate_of"], second["resolution"], second["claim"]) == ("a", None, None)
    assert second["fields"] == {"weight": 3}
    assert (first["values"], first["reason"], second["values"]) == ({"choice": "invalid"}, "", None)


def test_rows_come_some_at_a_time_in_the_order_asked_for() -> None:
    project = make_project()
    ids = [make_item(project).pk for _ in range(5)]
    assert list(id_batches(Item.objects.order_by("-position"), 2)) == [
        ids[:2:-1],
        ids[2:0:-1],
        ids[:1],
    ]
    assert list(id_batches(Item.objects.none())) == []


def test_fewer_rows_come_at_once_if_they_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project()
    # As JSON, {"a": ""} has nine characters, and PostgreSQL needs some twenty bytes for it.
    lengths = (1, 1, 1, 400, 1, 150, 150, 1)
    ids = [make_item(project, fields={"a": "x" * length}).pk for length in lengths]
    monkeypatch.setattr(batches, "MAX_LENGTH", 300)
    found = Item.objects.order_by("position")
    assert list(batches.bulky_id_batches(found, "fields")) == [ids[:4], ids[4:7], ids[7:]]
    assert list(batches.bulky_id_batches(found, "fields", size=2)) == [
        ids[:2],
        ids[2:4],
        ids[4:6],
        ids[6:],
    ]
    assert list(batches.bulky_id_batches(Item.objects.none(), "fields")) == []


def test_few_items_are_read_at_once_for_a_file_if_they_have_long_fields(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Callable[..., Any]
) -> None:
    project = make_project()
    items = [make_item(project, key, fields={"a": key * 400}) for key in "abc"]
    freeze = create.enqueue(project, make_member(project, role="lead"), "now")
    create.store_contents(freeze)
    monkeypatch.setattr(batches, "MAX_LENGTH", 300)
    # The lengths, and then an item at a time, of a snapshot with its texts.
    with django_assert_num_queries(1 + 3):
        rows("items", project)
    with django_assert_num_queries(1 + 2 * 3):
        found = list(snapshot_table.item_rows(freeze))
    assert [row["key"] for row in found] == [item.key for item in items]


def test_items_keep_their_order_over_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        tables, "bulky_id_batches", lambda found, *columns: id_batches(found, size=2)
    )
    project = make_project()
    items = [make_item(project, key) for key in "eabdc"]
    make_resolution(items[3], "invalid")
    found = rows("items", project)
    assert [row["key"] for row in found] == list("eabdc")
    assert [row["resolution"] for row in found] == [None, None, None, "invalid", None]


def test_of_the_items_only_those_found_are_written() -> None:
    project = make_project()
    for key in "abc":
        make_item(project, key)
    found = tables.item_rows(project, Item.objects.in_project(project).with_key_like("b"))
    assert [row["key"] for row in found] == ["b"]


def test_people_stand_under_aliases_alone(every: Project) -> None:
    names = {"username": "ada.lovelace", "first_name": "Ada-Augusta", "email": "ada@example.org"}
    Account.objects.filter(memberships__project=every).update(**names)
    written = str([rows(name, every) for name in TABLES])
    assert every.members.get().alias in written
    assert not [name for name in names.values() if name in written]


def test_labels_keep_their_whole_history_under_an_alias() -> None:
    member = make_member(make_project(), alias="kingfisher")
    make_item(member.project, "a")
    first_page, second_page = take(member), take(member)
    say(member, first_page)
    say(member, second_page, "invalid")
    queue.undo_label(member)
    old, new = rows("labels", member.project)
    assert (old["choice"], old["current"]) == ("valid", False)
    assert (new["supersedes"], new["annotator"]) == (old["label"], "kingfisher")
    assert new["withdrawn_at"] is not None


def test_labels_have_a_column_for_every_answer_at_every_stage(project_of_types: Project) -> None:
    said = {"verdict": "error", "error_type": ["a", "b"], "explanation": "2.5 is no whole number."}
    member = make_member(project_of_types)
    give(member, "error", answers=said, informed=True)
    [row] = rows("labels", project_of_types)
    assert row["answers"] == said
    assert (row["answers.verdict"], row["answers.error_type"]) == ("error", "a; b")
    assert (row["answers.reason"], row["informed"], row["surgicality"]) == (None, True, None)


def test_labels_of_an_older_version_of_the_task_type_keep_their_columns() -> None:
    member = make_member(make_project())
    give(member, task_type=importing.load_task_type_version("rating"), answers={"correctness": 3})
    [row] = rows("labels", member.project)
    assert (row["answers.correctness"], row["answers.choice"]) == (3, None)
    assert "answers.correctness" in TABLES["labels"].columns_in(member.project)


def test_a_claim_check_says_how_surgical_the_change_is() -> None:
    member = make_member(make_project())
    check = {"1": "explained", "3": "explained", "5": "collateral", "7": "collateral"}
    give(member, answers={"choice": "valid", "claim_check": check})
    [row] = rows("labels", member.project)
    assert (row["surgicality"], row["answers.claim_check"]) == (0.5, check)


def test_a_label_says_why_there_was_a_place_for_it_and_blind_answers_have_their_stage() -> None:
    member = make_member(make_project())
    item = make_item(member.project, slots=0)
    give(member, "yes", item=item, stage="blind", answers={"error": True}, submission="b")
    label = give(member, stage="control")
    label.slot.reason = "named"
    label.slot.save()
    blind, probe = rows("labels", member.project)
    assert (blind["stage"], blind["answers.error"], blind["slot_reason"]) == ("blind", True, "")
    assert (probe["stage"], probe["slot_reason"]) == ("control", "named")


def test_revisions_say_who_wrote_them() -> None:
    member = make_member(make_project(), alias="ada")
    make_revision(make_item(member.project, "a"), {"gold": "8"}, author=member, note="units")
    first, second = rows("revisions", member.project)
    assert (first["origin"], first["author"], first["current"]) == ("import", None, False)
    assert (second["origin"], second["author"], second["note"], second["current"]) == (
        "correction",
        "ada",
        "units",
        True,
    )
    assert second["texts"] == {"gold": "8"}


def test_resolutions_keep_their_history_with_values_and_reason() -> None:
    member = make_member(make_project(task_type="rating", overlap=1), alias="ada")
    item = make_item(member.project, "a")
    make_resolution(item, "3/3/1", values={"correctness": 1}, current=False, ended_at=NOW)
    make_resolution(item, "3/3/3", source="adjudicated", member=member, reason="slip")
    old, new = rows("resolutions", member.project)
    assert (old["current"], old["values.correctness"], old["ended_at"]) == (False, 1, NOW)
    assert (new["decided_by"], new["reason"], new["values.naturalness"]) == ("ada", "slip", None)


def test_comments_name_who_is_spoken_to() -> None:
    member = make_member(make_project(), alias="ada")
    other = make_member(member.project, alias="ben")
    comment = Comment.objects.create(item=make_item(member.project), member=member, text="See @ben")
    comment.mentions.add(other)
    [row] = rows("comments", member.project)
    assert (row["annotator"], row["mentions"]) == ("ada", ["ben"])


@pytest.fixture
def project_of_types() -> Project:
    return make_project(task_type="error-detection")


@pytest.fixture
def every() -> Project:
    """A project with a row for every table."""
    member = make_member(make_project())
    item = make_item(member.project)
    say(member, take(member))
    give(member, stage="baseline")
    Comment.objects.create(item=item, member=member, text="@ada")
    Mark.objects.create(item=item, member=member, kind="flag")
    give(member, stage="control")
    PracticeRound.objects.create(member=member, number=1, size=5, needed=4)
    return member.project


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_just_its_columns_and_can_be_written(name: str, every: Project) -> None:
    columns = TABLES[name].columns_in(every)
    assert set(TABLES[name].columns) <= set(columns)
    assert all(tuple(row) == columns for row in rows(name, every))
    stream = io.StringIO(newline="")
    assert write_csv(TABLES[name].rows(every), columns, stream) > 0
    assert next(csv.reader(stream.getvalue().splitlines())) == list(columns)


@pytest.mark.parametrize("name", TABLES)
def test_every_table_holds_what_its_columns_say(name: str, every: Project, tmp_path: Path) -> None:
    columns, path = TABLES[name].columns_in(every), tmp_path / "table"
    assert write_file("parquet", rows(name, every), columns, path, tables.COLUMN_KINDS) > 0


@pytest.mark.parametrize("name", TABLES)
def test_no_table_names_ids_of_the_database(name: str, every: Project) -> None:
    assert not [column for column in TABLES[name].columns if column in {"id", "pk"}]
    assert not [column for column in TABLES[name].columns if column.endswith("_id")]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_costs_the_same_number_of_queries_for_many_rows(
    name: str, every: Project, django_assert_max_num_queries: Callable[..., Any]
) -> None:
    [member] = every.members.all()
    for _ in range(20):
        item = give(member).item
        Comment.objects.create(item=item, member=member, text="@ada").mentions.add(member)
    with django_assert_max_num_queries(4):
        rows(name, every)
