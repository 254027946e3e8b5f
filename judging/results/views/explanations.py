"""Explanations: what is noticed in words alone? (study 000, section 5.3, figure 2, tables 21 to
24)."""

from collections.abc import Sequence

from judging.models import Run
from judging.results import explanation_audits
from judging.results.views import cells, dot_charts, grids, run_group_tables, stacked_charts
from judging.results.views.cells import RateColumns, Row
from judging.results.views.grids import Cell, Column, GridLine
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    StudyFigure,
    TableQuery,
    ViewContent,
    study_figures,
)

UNCHECKED = (
    "The explanations of none of the chosen runs were checked. Open a run whose strategy asks for"
    " explanations and press “Check explanations”."
)
KIND_TITLES = {
    "detected": "Detected by the score",
    "found": "By the explanation alone",
    "unnoticed": "Not at all",
}
QUALITY_TITLES = {
    "correct": "Correct",
    "insufficient": "Insufficient",
    "wrong": "Wrong",
    "none": "None",
}
_AFTER = RateColumns("rate_after", bad="high")
_FOUND = RateColumns("found_rate", "found_low", "found_high", "equal", missing="")
_CREDIT = RateColumns(
    "false_credit", "false_credit_low", "false_credit_high", "gold_checked", missing="", bad="high"
)

_BY = ("ability", "category")
TABLES = (
    StudyFigure("figure 2", ("vanilla", "axis", "rubric", "axis-rubric")),
    StudyFigure("table 21", ("vanilla",), _BY),
    StudyFigure("table 22", ("axis",), _BY),
    StudyFigure("table 23", ("rubric",), _BY),
    StudyFigure("table 24", ("axis-rubric",), _BY),
)


def show(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """What the score notices, what the explanation does, and what nothing does."""
    rows = tables[0]
    figures = (
        *stacked_charts.COUNT_COLUMNS,
        (Column(KIND_TITLES["detected"], "detected"), _result_cell("detected")),
        (Column("Equal scores", "equal"), stacked_charts.make_share_cell("equal")),
        (Column(KIND_TITLES["found"], "found"), _found_cell),
        (Column(KIND_TITLES["unnoticed"], "unnoticed"), _unnoticed_cell),
        (Column("Found of the equal", "found_rate"), _make_rate_cell(_FOUND, "equal")),
        (Column("Undetected rate after credit", "rate_after"), _make_rate_cell(_AFTER)),
    )
    grid = run_group_tables.build_table(asked, "What explanations add", rows, figures)
    words = (
        "Where both answers were scored equal, a check reads the explanation of the perturbed one"
        " for an error that it reports all the same. Checks that cannot be read count as not found."
    )
    whole = [row for row in rows if row["unnoticed"] is not None]
    caption = "Detected by the score, by the explanation alone, and not at all"
    return ViewContent(
        grid,
        stacked_charts.draw_groups(asked, whole, KIND_TITLES, "Share of items", caption),
        words,
    )


def show_false_credit(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """How often an error is read out of the explanation of an answer without one."""
    rows = [row for row in tables[0] if row["gold_check"] is not None]
    figures = (
        (Column("Found in perturbed answers", "found_rate"), _make_rate_cell(_FOUND, "equal")),
        (
            Column("False credit: found in gold answers", "false_credit"),
            _make_rate_cell(_CREDIT, "equal"),
        ),
    )
    grid = run_group_tables.build_table(asked, "False credit", rows, figures)
    words = (
        "The same check on the explanations of gold answers, which have no error to report. What it"
        " finds there is false credit: the nearer both rates, the less an explanation says."
    )
    return ViewContent(grid, _drawing(asked, rows), words)


def show_audits(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """What people found the explanations worth, where the verdict was right and where not."""
    rows = [{**row, "parsed": row["total"] - row["missing"]} for row in tables[0]]
    runs = {run.number: run for run in asked.runs}
    columns = (
        Column("Run", "run", is_number=False),
        Column("The verdict was", "verdict", is_number=False),
        Column("Items", "total"),
        Column("Not judged yet", "missing"),
        *(Column(title, name) for name, title in QUALITY_TITLES.items()),
    )
    lines = [_audit_line(runs[row["run"]], row) for row in rows]
    grid = grids.build_grid("What explanations are worth", columns, lines)
    words = (
        "People judged a sample of explanations in audits: correct if all that matters was checked"
        " and holds, insufficient if something is left out, wrong if a step is false, none if there"
        " is a verdict alone. The same items are drawn for every run of an audit; of an item that"
        " has several explanations, as one of each sample, each counts for its share."
    )
    caption = (
        "What explanations are worth, by whether the verdict was right, as shares of those that"
        " people judged; the numbers are items."
    )
    named = [
        (f"Verdict {row['verdict']}: {cells.run_name(runs[row['run']], ': ')}", row) for row in rows
    ]
    return ViewContent(
        grid,
        stacked_charts.draw_bars(named, QUALITY_TITLES, "Share of explanations", caption),
        words,
    )


def _audit_line(run: Run, row: Row) -> GridLine:
    def at(*quality: str) -> str:
        return cells.outcomes_url(run, audited="-".join((row["verdict"], *quality)))

    counted = (
        cells.count_cell(row["total"], at()),
        cells.count_cell(row["missing"], at(explanation_audits.UNJUDGED)),
    )
    shares = (cells.share_cell(row[name], row["parsed"], at(name)) for name in QUALITY_TITLES)
    return GridLine((cells.run_cell(run), cells.text_cell(row["verdict"]), *counted, *shares))


def _result_cell(name: str) -> stacked_charts.CellFunction:
    return lambda run, row: cells.share_cell(
        row[name], row["parsed"], cells.items_url(run, row, result=name)
    )


def _found_cell(run: Run, row: Row) -> Cell:
    """Leads to the items in the check that found them."""
    href = cells.items_url(run, row, row["check"], result="detected")
    return cells.share_cell(row["found"], row["parsed"], href)


def _unnoticed_cell(run: Run, row: Row) -> Cell:
    if row["unnoticed"] is None:
        return Cell(reason=row["reason"] or "")
    return cells.share_cell(
        row["unnoticed"], row["parsed"], cells.items_url(run, row, result="undetected")
    )


def _make_rate_cell(such: RateColumns, detail: str = "") -> stacked_charts.CellFunction:
    which = {"result": "parsed", **({"detail": detail} if detail else {})}

    def cell(run: Run, row: Row) -> Cell:
        return cells.rate_cell(row, such, href=cells.items_url(run, row, **which))

    return cell


def _drawing(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    series = {"perturbed answers": _FOUND, "gold answers": _CREDIT}
    found = [
        (title, run_group_tables.chart_label(asked, row), cells.read_estimate(row, such))
        for row in rows
        for title, such in series.items()
    ]
    caption = (
        "Explanations in which an error is found, of perturbed and of gold answers, with 95 %"
        " intervals."
    )
    return dot_charts.draw_dots(found, title="An error is found", caption=caption, series="Of")


VIEWS = (
    ResultView(
        slug="credit-of-words",
        title="By score and by explanation",
        asks=(TableQuery("explanations"),),
        show=show,
        studies={"000": TABLES},
        empty=UNCHECKED,
        switches=(run_group_tables.group_switch(),),
    ),
    ResultView(
        slug="false-credit",
        title="False credit",
        asks=(TableQuery("explanations"),),
        show=show_false_credit,
        studies={},
        empty=(
            "The explanations of gold answers were not checked for any of the chosen runs. Start a"
            " run of explanation-check-gold over one of them."
        ),
        switches=(run_group_tables.group_switch(),),
    ),
    ResultView(
        slug="audits",
        title="As people judge them",
        asks=(TableQuery("audits", ""),),
        show=show_audits,
        studies={"001": study_figures("figure 6")},
        empty=(
            "People judged no explanations of the chosen runs yet. Make an audit with"
            " “manage.py make_audit” and let people label its items."
        ),
    ),
)
