"""CONTRIBUTING's promise: a table of figures is one file, and its entry in the list of tables."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import pytest
from django.test import Client

from annotation.models import Project
from judging.models import Run
from judging.results import columns, lines, tables
from judging.results.page_parts import PageQuery, ResultPage, ResultView, Rows, TableQuery
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import make_items
from tests.judging.builders_rated import command
from tests.judging.test_same_everywhere import printed

pytestmark = pytest.mark.django_db

FIGURES = {
    "parsed": 4, "missing": 1, "rate": 0.75, "low": 0.25, "high": 0.875, "reason": None,
    "share": 3, "mean": 1.0, "of_scale": 0.5, "found": -0.5, "found_low": -1.0, "found_high": 0.25,
    "found_reason": None, "apart": -0.125, "shows": 0.1, "p": 0.0001, "score_invariant": False,
}  # fmt: skip


def tabulate(runs: Sequence[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "run": run.number,
            "endpoint": run.endpoint.name,
            "strategy": run.strategy.slug,
            **dict.fromkeys(by, "factual"),
            **FIGURES,
            "word": f"word {run.number}",
        }
        for run in runs
    ]


ADDED = columns.summed_table(
    "added",
    tabulate,
    columns.PARSED,
    columns.MISSING,
    columns.Rate("rate", "Undetected rate", columns.items(result="undetected"), bad="high"),
    *columns.plain("low", "high", "reason"),
    columns.Share("share", "Part", columns.items(result="parsed", detail="{word}")),
    columns.Number("mean", "Mean"),
    columns.Percent("of_scale", "Of the scale"),
    columns.Figure("found", "Figure"),
    *columns.plain("found_low", "found_high", "found_reason"),
    columns.Points("apart", "Difference"),
    columns.Distance("shows", "Distance"),
    columns.PValue("p", "p"),
    columns.Text("word", "Word"),
    columns.Column("score_invariant"),
)
# What stands in each column of the page, without the notes below.
SHOWN = {
    "Ability": "Factual", "Parsed": "4", "Missing": "1", "Undetected rate": "75.0 %", "Part": "3",
    "Mean": "1.00", "Of the scale": "50.0 %", "Figure": "−0.50", "Difference points": "−12.5",
    "Distance points": "10.0", "p": "< 0.001", "Word": "word 1",
}  # fmt: skip


def first_only(asked: PageQuery, found: Sequence[Rows]) -> Rows:
    return found[0][:1]


@pytest.fixture
def added(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    items = make_items(project, 2)
    make_replied(project, "vanilla", zip(items, [scores(9, 5), scores(9, 9)], strict=True))
    view = ResultView(
        slug="added",
        title="Added",
        asks=(TableQuery(ADDED, "ability"),),
        build=lines.Lines(
            ADDED,
            "Added figures",
            [one.name for one in ADDED.columns if one.title],
            "How to read them.",
            lines.Stacked({"share": "Part"}, "Share of items", "Parts"),
            first_only,
        ),
        studies={},
        empty="Nothing.",
    )
    monkeypatch.setitem(tables.RESULT_TABLES, ADDED.name, ADDED)
    page = ResultPage("Added", "What was added?", "dots", (view,))
    monkeypatch.setitem(tables.PAGES, "added", page)


@pytest.mark.usefixtures("added")
def test_a_file_is_all_that_a_table_needs(
    browser: Client, program: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    of_run = {"run": 1, "endpoint": "judge", "strategy": "vanilla", "run_name": None}
    given = program.get("/api/v1/projects/fbi/results/added/?by=ability").json()
    assert given["rows"] == [{**of_run, "ability": "factual", **FIGURES, "word": "word 1"}]
    assert given["columns"] == [*of_run, "ability", *list_names()]
    command("results", "added", project="fbi", by="ability", format="json")
    assert json.loads(capsys.readouterr().out) == given
    sent = browser.get("/projects/fbi/results/added.csv?by=ability").content.decode()
    [head, row] = csv.reader(io.StringIO(sent))
    assert dict(zip(head, row, strict=True))["apart"] == "-0.125"

    page = " ".join(browser.get("/projects/fbi/results/added/").content.decode().split())
    titles = dict(printed(page))
    assert {"Ability": "Factual", **{title: one for title, [one] in titles.items()}} == SHOWN
    assert 'href="/projects/fbi/runs/1/?ability=factual&amp;result=undetected' in page
    assert "How to read them." in page
    assert "/projects/fbi/results/added/" in browser.get("/projects/fbi/results/").content.decode()


def list_names() -> list[str]:
    return [one.name for one in ADDED.columns[4:]]


@pytest.mark.usefixtures("added")
def test_fields_that_a_table_cannot_be_grouped_by_are_refused(program: Client) -> None:
    answer = program.get("/api/v1/projects/fbi/results/added/?by=size")
    assert (answer.status_code, "grouped by size" in answer.json()["detail"]) == (400, True)
    # A row has one value by a name.
    answer = program.get("/api/v1/projects/fbi/results/added/?by=word")
    assert answer.status_code == 400


def test_a_column_of_files_alone_is_on_no_page() -> None:
    with pytest.raises(NotImplementedError, match="low is shown on no page"):
        columns.Column("low").cell({}, None)  # type: ignore[arg-type]


def test_tables_are_listed_under_their_own_names() -> None:
    assert all(name == table.name for name, table in tables.RESULT_TABLES.items())
    asks = [ask for page in tables.PAGES.values() for view in page.views for ask in view.asks]
    assert {(ask.file or ask.table).name for ask in asks} <= {*tables.RESULT_TABLES}
