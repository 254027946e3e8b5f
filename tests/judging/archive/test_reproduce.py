"""Figures of an archive beside those of today: what a method made otherwise, and what differs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from judging.archive import load, versions
from judging.archive.comparison import TableComparison, compare_archive, compare_table
from judging.results import tables
from judging.results.columns import DEFAULT_BY, parse_fields

GOLDEN = Path(__file__).parents[2] / "golden" / "results"
FIRST = {"sign-flip test": 1, "blind spots": 1}
NOW = versions.method_versions()


def table(*rows: Sequence[Any], columns: str) -> dict[str, Any]:
    names = columns.split()
    return {"columns": names, "rows": [dict(zip(names, row, strict=True)) for row in rows]}


def pairs(*rows: Sequence[Any]) -> dict[str, Any]:
    return table(*rows, columns="run_a run_b n difference p p_holm")


OLD = pairs((1, 2, 40, 0.25, 0.0001, 0.019), (1, 3, 40, 0.5, 0.0001, 0.019))
EXACT = pairs((1, 2, 40, 0.25, 2e-9, 4e-9), (1, 3, 40, 0.5, 0.0001, 0.019))


def test_what_a_changed_method_makes_is_told_apart_and_is_no_difference() -> None:
    assert compare_table("compare", EXACT, OLD, FIRST) == TableComparison(
        "compare",
        True,
        "p, p_holm differ, because the method changed (sign-flip test, version 1 then and 6 now);"
        " all else is the same, 2 rows",
    )


def test_an_archive_that_names_no_method_was_made_by_the_first_of_each() -> None:
    assert compare_table("compare", EXACT, OLD, {}) == compare_table("compare", EXACT, OLD, FIRST)


def test_the_same_method_must_make_the_same() -> None:
    found = compare_table("compare", EXACT, OLD, NOW)
    assert (found.same, found.said) == (False, "differs in 1 of 2 rows; it now has 2 rows")
    assert compare_table("compare", OLD, OLD, NOW).said == "the same, 2 rows"


@pytest.mark.parametrize(
    "now",
    [
        pairs((1, 2, 39, 0.25, 2e-9, 4e-9), (1, 3, 40, 0.5, 0.0001, 0.019)),
        pairs((1, 2, 40, 0.26, 2e-9, 4e-9), (1, 3, 40, 0.5, 0.0001, 0.019)),
        pairs((1, 2, 40, 0.25, 2e-9, 4e-9)),
        table((1, 2, 40, 2e-9, 4e-9), (1, 3, 40, 1, 1), columns="run_a run_b n p p_holm"),
    ],
)
def test_counts_and_rates_must_be_the_same_whatever_a_method_makes(now: Any) -> None:
    assert not compare_table("compare", now, OLD, FIRST).same


def test_a_column_that_the_archive_does_not_have_is_no_difference() -> None:
    now = table((1, 40, "exact"), columns="run n test")
    assert compare_table("compare", now, table((1, 40), columns="run n"), NOW).same


def slices(*rows: Sequence[Any]) -> dict[str, Any]:
    return table(*rows, columns="run slice n rate q")


def test_where_a_method_decides_which_rows_there_are_rows_are_found_by_name() -> None:
    then = slices((1, "a", 20, 0.5, 0.07), (1, "b", 30, 0.25, 0.2))
    now = slices((1, "b", 30, 0.25, 0.01), (1, "a", 20, 0.5, 0.07), (1, "c", 10, 0.1, 0.9))
    said = compare_table("blindspots", now, then, FIRST)
    assert said.same
    assert said.said.startswith(
        "q differs; 1 row is in only one of the two, because the method changed"
    )
    assert not compare_table("blindspots", now, then, NOW).same
    other = slices((1, "b", 31, 0.25, 0.01), (1, "a", 20, 0.5, 0.07))
    assert compare_table("blindspots", other, then, FIRST).said == (
        "differs in 1 of 2 rows; it now has 2 rows"
    )


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "sqlite", reason="archives are loaded into SQLite")
@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.zip")), ids=lambda path: path.stem)
def test_an_archive_that_was_made_before_differs_by_changed_methods_alone(path: Path) -> None:
    """They were frozen of projects of `builders_paper` when no method had a second version. If a
    table differs, either it should not, or its method wants a version and a line in the changelog.
    """
    thawed = load.load_archive(path)
    assert "methods" not in thawed.facts
    found = list(compare_archive(path, thawed))
    assert {one.table for one in found} == {*thawed.facts["tables"]}
    assert [one for one in found if not one.same] == []


def test_an_archive_names_the_last_migration_of_either_half() -> None:
    found = versions.last_migrations()
    assert set(found) == {"annotation", "judging"}
    for app, name in found.items():
        folder = Path(versions.__file__).parents[2] / app / "migrations"
        assert name == max(path.stem for path in folder.glob("0*.py"))


@pytest.mark.parametrize("name", versions.METHODS)
def test_a_method_names_columns_of_tables_and_the_counts_stay(name: str) -> None:
    method = versions.METHODS[name]
    for of, columns in [*method.columns.items(), *method.rows.items()]:
        assert {*columns} <= {*tables.RESULT_TABLES[of].list_columns(parse_fields(DEFAULT_BY))}
    for columns in method.columns.values():
        assert not {"total", "missing", "n", "rate", "difference", "value", "detected"} & {*columns}
