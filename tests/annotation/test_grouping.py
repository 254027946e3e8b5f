"""The ways in which items can be grouped."""

import random
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from annotation.models import Project
from annotation.reports import grouping
from tests.builders import make_item, make_project

pytestmark = pytest.mark.django_db

TRACE = {"made_on": "2026-11-20", "request": "9f8e", "seed": "7"}
PLAIN = {"category": "", "ability": "", "source_ability": ""}


def list_fields(project: Project) -> list[str]:
    return [one.name for one in grouping.list_groupings(project) if one.is_field]


def test_fields_that_trace_a_generated_item_are_not_offered() -> None:
    project = make_project("fbi")
    own = {"generator": "generate-spelling v1", "model": "gpt", **TRACE, "source_item": "a-1"}
    gold = {f"gold_{name}": value for name, value in {"generator": "gold v1", **TRACE}.items()}
    make_item(project, fields={**own, **gold, "drawn_errors": "4", "translated_from": "a-1"})
    assert list_fields(project) == ["drawn_errors", "generator", "gold_generator", "model"]


def test_imported_fields_of_the_same_name_are_offered() -> None:
    project = make_project("rating", task_type="rating", overlap=1)
    make_item(project, fields={"seed": "task 7", "request": "summary"}, **PLAIN)
    assert list_fields(project) == ["request", "seed"]


def test_a_field_with_a_sentence_is_not_offered_even_if_other_items_have_a_word_there() -> None:
    project = make_project("rating", task_type="rating", overlap=1)
    said = "How many of the nine apples are left once she has eaten two?"
    make_item(project, fields={"original": said, "task": "Long-form answers"}, **PLAIN)
    make_item(project, fields={"original": "None", "task": "Sums"}, **PLAIN)
    assert list_fields(project) == ["task"]


def test_fields_of_the_last_items_are_found_in_a_large_project(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grouping, "SAMPLE_ITEMS", 2)
    project = make_project("fbi")
    for _ in range(4):
        make_item(project, fields={"source": "exam"})
    make_item(project, fields={"drawn_errors": "4"})
    assert list_fields(project) == ["drawn_errors", "source"]


def test_fields_of_few_items_are_in_memory_at_once() -> None:
    project = make_project("fbi")
    for _ in range(100):
        make_item(project, fields={"source": "exam", "text": "x" * 400_000})
    tracemalloc.start()
    assert list_fields(project) == ["source"]
    # Together, the texts have 40 MB, and as many as JSON.
    assert tracemalloc.get_traced_memory()[1] < 35_000_000
    tracemalloc.stop()


def test_of_items_with_very_long_fields_only_some_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their texts are drawn, since a database packs those of one letter to nearly nothing."""
    draws = random.Random(1)
    project = make_project("fbi")
    for number in range(12):
        text = draws.randbytes(300_000).hex()
        make_item(project, fields={f"part_{number}": "a", "text": text})
    monkeypatch.setattr(grouping, "SAMPLE_LENGTH", 1_000_000)
    read = ["part_0", "part_1", "part_10", "part_11"]
    assert list_fields(project) == read
    assert grouping.list_field_names(project) == [*read, "text"]


def test_of_very_many_fields_not_all_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "MOST_NAMES", 3)
    project = make_project("fbi")
    for number in range(3):
        make_item(project, fields={"source": "exam", f"part_{number}": "a", f"side_{number}": "b"})
    assert list_fields(project) == ["part_0", "side_0", "source"]


class CountedFields(dict[str, Any]):
    """The fields of an item, which count how often their names are looked through."""

    looked_through = 0

    def __iter__(self) -> Iterator[str]:
        self.looked_through += 1
        return super().__iter__()


def test_the_fields_of_an_item_are_not_looked_through_for_each_of_them() -> None:
    fields = CountedFields({f"column_{number}": "a" for number in range(20)})
    assert len(grouping._grouping_fields([{"fields": fields}])) == 20
    assert fields.looked_through == 1
