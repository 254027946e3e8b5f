"""Rows that are exported: keys and texts as they were, nothing that only the database knows."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pytest_django import DjangoAssertNumQueries

from annotation.models import Project, Resolution
from formats.writers import write_file
from judging.evaluators.providers.errors import Rejected
from judging.exporting import tables
from judging.models import Run
from judging.results.tables import RESULT_TABLES
from judging.runs import lifecycle
from judging.runs.run_config import RunOverrides
from tests.builders import make_project
from tests.judging.builders_judging import answer, fail, make_endpoint, make_items, make_run

pytestmark = pytest.mark.django_db

# What tells the calls of a project apart.
EVERY_AXIS = RunOverrides(axes=("all",))
TOLD_APART = ("run", "item", "role", "order", "axis", "step", "sample")


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def run(project: Project) -> Run:
    make_items(project, 2)
    run = make_run(project, make_endpoint("http://127.0.0.1:9/v1"))
    lifecycle.plan_calls(run)
    return run


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file as others read it."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream)) if path.suffix == ".csv" else [*map(json.loads, stream)]


def test_a_call_has_its_reply_and_what_was_read_in_it(project: Project, run: Run) -> None:
    answer(run, '{"explanation": "Six?", "score": 4}')
    first, _ = tables.read_calls(project)
    assert set(first) == set(tables.EXPORT_TABLES["calls"].columns)
    assert (first["run"], first["item"], first["revision"]) == (1, "item-1", 1)
    assert (first["role"], first["order"], first["state"]) == ("perturbed", 0, "answered")
    assert first["text"] == '{"explanation": "Six?", "score": 4}'
    assert (first["value"], first["path"], first["explanation"]) == (4.0, "strict", "Six?")
    assert len(first["request"]) == 64
    assert first["sends"] == {"temperature": 0}


def test_a_call_that_failed_has_its_cause_and_no_reply(project: Project, run: Run) -> None:
    fail(run, Rejected("The provider answered 400: no"))
    first, _ = tables.read_calls(project)
    assert (first["state"], first["failure"]) == ("failed", "rejected")
    assert first["message"] == "The provider answered 400: no"
    assert first.get("text") is None


def test_a_reply_that_another_run_s_parser_read_is_read_as_this_run_does(
    project: Project, run: Run
) -> None:
    answer(run)
    run.calls.get(outcome__item__key="item-1").request.reply.readings.update(parser="another")
    first, second = tables.read_calls(project)
    assert (first["value"], second["value"]) == (None, 5.0)


def test_an_outcome_has_what_a_table_is_made_of(project: Project, run: Run) -> None:
    answer(run)
    first, _ = tables.read_outcomes(project)
    assert tuple(first) == tables.EXPORT_TABLES["outcomes"].columns
    assert (first["item"], first["result"], first["detail"]) == ("item-1", "detected", "lower")
    assert (first["ability"], first["cluster"]) == ("factual", "cluster-1")
    assert first["values"] == {"perturbed": 5.0}


def test_an_outcome_says_whether_figures_count_it(project: Project, run: Run) -> None:
    answer(run)
    Resolution.objects.filter(item__key="item-1").update(current=False)
    counted = {row["item"]: row["counted"] for row in tables.read_outcomes(project)}
    assert counted == {"item-1": False, "item-2": True}


def test_outcomes_along_several_axes_of_an_item_say_which_they_are_of(project: Project) -> None:
    make_items(project, 2)
    run = make_run(project, make_endpoint("https://judge.invalid/v1"), "axis", own=EVERY_AXIS)
    lifecycle.plan_calls(run)
    answer(run)
    found = [(row["item"], row["axis"], row["counted"]) for row in tables.read_outcomes(project)]
    axes = sorted({axis for _, axis, _ in found})
    assert len(axes) > 1
    assert [(item, axis) for item, axis, _ in found] == [
        (item, axis) for item in ("item-1", "item-2") for axis in axes
    ]
    assert [axis for _, axis, counted in found if counted] == ["hallucination"] * 2


def test_calls_along_axes_and_of_several_runs_are_told_apart_in_every_format(
    project: Project, tmp_path: Path
) -> None:
    make_items(project, 2)
    for name in ("a", "b"):
        endpoint = make_endpoint("https://judge.invalid/v1", name=name)
        lifecycle.plan_calls(make_run(project, endpoint, "axis", own=EVERY_AXIS))
    table = tables.EXPORT_TABLES["calls"]
    for form in ("csv", "jsonl", "parquet"):
        path = tmp_path / f"calls.{form}"
        count = write_file(
            form, table.rows(project), table.columns, path, tables.EXPORT_COLUMN_KINDS
        )
        rows = read(path)
        told = {tuple(str(row[name]) for name in TOLD_APART) for row in rows}
        # Two runs, two items, gold and perturbed answer, four axes.
        assert len(told) == len(rows) == count == 32
        assert {(row["endpoint"], row["strategy"]) for row in rows} == {
            ("a", "axis"),
            ("b", "axis"),
        }
    assert {type(row["step"]) for row in rows} == {int}


@pytest.mark.parametrize("name", ["calls", "outcomes"])
def test_rows_hold_plain_values_in_the_order_of_the_items(
    project: Project, run: Run, name: str
) -> None:
    answer(run)
    rows = list(tables.EXPORT_TABLES[name].rows(project))
    assert [row["item"] for row in rows] == ["item-1", "item-2"]
    json.dumps(rows, default=str)


def test_another_project_s_rows_are_not_in_it(run: Run) -> None:
    answer(run)
    assert list(tables.read_calls(make_project())) == []
    assert list(tables.read_outcomes(make_project())) == []


@pytest.mark.parametrize("name", ["calls", "outcomes"])
def test_a_table_costs_the_same_number_of_queries_at_any_length(
    project: Project, run: Run, name: str, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    answer(run)
    with django_assert_max_num_queries(4):
        list(tables.EXPORT_TABLES[name].rows(project))


def test_the_columns_of_a_table_of_figures_name_what_it_is_grouped_by() -> None:
    assert RESULT_TABLES["undetected"].list_columns(["category"])[:4] == (
        "run",
        "endpoint",
        "strategy",
        "category",
    )
    assert RESULT_TABLES["categories"].list_columns(["category"]) == (
        "ability",
        "category",
        "items",
    )


def test_only_small_tables_are_counted_at_every_look() -> None:
    """48,000 outcomes took half a second to sum at every look."""
    limits = {name: table.at_once for name, table in RESULT_TABLES.items()}
    assert {name for name, most in limits.items() if most is not None and most > 10_000} == set()
    assert limits["left_out"] == limits["undetected"] == 10_000
