import csv
import io
from collections.abc import Callable
from typing import Any

import pytest

from annotation import queue
from annotation.models import Item, Project
from annotation.tables import TABLES
from formats.writers import write_csv
from tests.builders import make_item, make_member, make_project, make_resolution, say, take

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
    offer = take(member)
    queue.correct(member, key=offer.key, item_key="a", revision=1, texts={"perturbed": "Seven."})
    make_resolution(Item.objects.get(key="a"), "invalid")
    first, second = rows("items", member.project)
    assert (first["revision"], first["perturbed"], first["resolution"]) == (2, "Seven.", "invalid")
    assert (second["duplicate_of"], second["resolution"], second["claim"]) == ("a", None, None)
    assert second["fields"] == {"weight": 3}


def test_labels_keep_their_whole_history_under_an_alias() -> None:
    member = make_member(make_project(), alias="kingfisher")
    make_item(member.project, "a")
    first_page, second_page = take(member), take(member)
    say(member, first_page)
    say(member, second_page, "invalid")
    queue.undo(member)
    old, new = rows("labels", member.project)
    assert (old["choice"], old["current"]) == ("valid", False)
    assert (new["supersedes"], new["annotator"]) == (old["label"], "kingfisher")
    assert new["withdrawn_at"] is not None


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_just_its_columns_and_can_be_written(name: str) -> None:
    member = make_member(make_project())
    make_item(member.project)
    say(member, take(member))
    columns = TABLES[name].columns
    assert all(tuple(row) == columns for row in rows(name, member.project))
    stream = io.StringIO()
    assert write_csv(TABLES[name].rows(member.project), columns, stream) == 1
    assert next(csv.reader(stream.getvalue().splitlines())) == list(columns)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_costs_the_same_number_of_queries_for_many_rows(
    name: str, django_assert_max_num_queries: Callable[..., Any]
) -> None:
    member = make_member(make_project())
    for _ in range(20):
        make_item(member.project)
        say(member, take(member))
    with django_assert_max_num_queries(2):
        rows(name, member.project)
