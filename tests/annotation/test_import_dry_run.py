"""A dry run says what the import would do, and keeps little of each row."""

import gc
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from annotation import importing, tasktypes
from annotation.importing import ItemImportReport, items
from annotation.models import Item
from formats.rows import Row
from tests.builders import TEXTS, make_project

TASK = tasktypes.parse_definition(tasktypes.load_definitions()["perturbation-vetting"])
GOOD = {"category": "entity", **TEXTS}
# Each with what differs from the row of the same key before.
ROWS: list[dict[str, Any]] = [
    {"key": "a", "n": {"x": 1, "y": [-1]}},
    {"key": "a", "n": {"y": [-1], "x": 1.0}},
    {"key": "a", "n": {"x": 1, "y": [-2]}},
    {"key": "a", "n": {"x": 1, "y": [-1]}, "origin": "elsewhere", "source_ability": "reasoning"},
    {"key": "a", "n": {"x": 1, "y": [-1]}, "gold": "Other."},
    {"key": "b", "repeats": "a"},
    {"key": "c", "repeats": "b"},
    {"key": "d", "repeats": "nowhere"},
    {"key": "b"},
    {"key": ""},
    {"key": "d"},
    {"key": "e", "category": "unheard"},
    {"key": "e"},
    {"key": "a", "category": "unheard"},
]


def rows(*told: dict[str, Any]) -> Iterator[Row]:
    return (Row("f", line, GOOD | values) for line, values in enumerate(told, start=1))


def said(report: ItemImportReport) -> list[Any]:
    return [report.new, report.unchanged, report.bad, report.conflicts]


@pytest.mark.django_db
@pytest.mark.parametrize("batch", [1, 3, 250])
def test_it_reports_each_row_as_the_import_then_does(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items, "BATCH", batch)
    project = make_project("p")
    dry = importing.store_items(project, importing.parse_items(rows(*ROWS), TASK), dry_run=True)
    assert not Item.objects.exists()
    real = importing.store_items(project, importing.parse_items(rows(*ROWS), TASK))
    assert said(dry) == said(real)
    assert (dry.new, dry.unchanged, len(dry.bad), len(dry.conflicts)) == (2, 1, 7, 4)
    twice = {(row.line, row.reason) for row in dry.bad if row.field == "key" and row.key}
    remedy = "which cannot be used. Correct that row, or change a key."
    assert twice == {
        (11, f"is also the key of line 8, {remedy}"),
        (13, f"is also the key of line 12, {remedy}"),
    }
    assert [row.line for row in dry.bad if row.reason.endswith(items.USED_KEY)] == [14]


@pytest.mark.parametrize("batch", [1, 250])
def test_what_was_decided_elsewhere_is_compared_too(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items, "BATCH", batch)
    task = tasktypes.parse_definition(tasktypes.load_definitions()["error-detection"])
    good = {"key": "a", "input": "Q?", "response": "R.", "error_type": "", "explanation": "E."}
    told = [{"verdict": one} for one in ("no_error", "no_error", "not_sure")]
    found = [Row("f", line, good | one) for line, one in enumerate(told, start=1)]
    drafts = importing.parse_items(found, task, accept=True)
    report = importing.store_items(None, drafts, accept=True, dry_run=True)
    assert (report.new, report.unchanged, report.bad) == (1, 1, [])
    assert "was imported with another final label" in report.conflicts[0].reason


def test_it_keeps_some_hundred_bytes_of_a_row_however_long_the_row_is() -> None:
    """Six seconds: it counts the bytes of 5,000 rows, which tracing makes slow."""
    first, last, taken = 1_000, 5_000, {}

    def long() -> Iterator[Row]:
        for number in range(last + 1):
            if number in (first, last):
                gc.collect()
                taken[number] = tracemalloc.get_traced_memory()[0]
            told = {f"field {one}": f"{number} {one}" * 9 for one in range(30)}
            yield Row("f", number, GOOD | {"key": f"item-{number:09}", **told})

    tracemalloc.start()
    try:
        importing.store_items(None, importing.parse_items(long(), TASK), dry_run=True)
    finally:
        tracemalloc.stop()
    assert (taken[last] - taken[first]) / (last - first) < 500
