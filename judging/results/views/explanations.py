"""Explanations: errors found only in words (study 000, section 5.3, figure 2, tables 21 to 24)."""

from collections.abc import Sequence

from judging.models import Run
from judging.results import explanation_audits
from judging.results.views import cells, dot_charts, run_group_tables, stacked_charts
from judging.results.views.cells import Cell, Column, GridLine, RateColumns, Row
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
    "No explanations of the chosen runs have been checked. Open a run that asks for "
    "explanations and choose “Check explanations…”."
)
KIND_TITLES = {
    "detected": "Detected by the score",
    "found": "Only by the explanation",
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


def build_named_errors(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """Errors detected by the score, only by the explanation, and not at all."""
    rows = tables[0]
    figures = (
        *stacked_charts.COUNT_COLUMNS,
        (Column(KIND_TITLES["detected"], "detected"), _result_cell("detected")),
        (Column("Equal scores", "equal"), stacked_charts.make_share_cell("equal")),
        (Column(KIND_TITLES["found"], "found"), _found_cell),
        (Column(KIND_TITLES["unnoticed"], "unnoticed"), _unnoticed_cell),
        (
            Column("Equal scores whose explanation names an error", "found_rate"),
            _make_rate_cell(_FOUND, "equal"),
        ),
        (Column("Undetected rate after credit", "rate_after"), _make_rate_cell(_AFTER)),
    )
    grid = run_group_tables.build_table(asked, "Errors named in explanations", rows, figures)
    words = (
        "If both answers got the same score, the check looks for an error named in the "
        "explanation of the perturbed answer. Checks that could not be parsed count as not "
        "found."
    )
    whole = [row for row in rows if row["unnoticed"] is not None]
    caption = "Detected by the score, only by the explanation, and not at all"
    return ViewContent(
        grid,
        stacked_charts.draw_groups(asked, whole, KIND_TITLES, "Share of items", caption),
        words,
    )


def build_false_credit(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """How often the check finds an error in the explanation of an answer without one."""
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
        "The same check on explanations of gold answers, which contain no error. What it "
        "finds there is false credit. The closer the two rates, the less the explanations "
        "tell."
    )
    return ViewContent(grid, _drawing(asked, rows), words)


def build_audits(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """People's judgements of explanations, by whether the verdict was right."""
    rows = [{**row, "parsed": row["total"] - row["missing"]} for row in tables[0]]
    runs = {run.number: run for run in asked.runs}
    columns = (
        Column("Run", "run", is_number=False),
        Column("The verdict was", "verdict", is_number=False),
        Column("Items", "total"),
        Column("Not audited yet", "missing"),
        *(Column(title, name) for name, title in QUALITY_TITLES.items()),
    )
    lines = [_audit_line(runs[row["run"]], row) for row in rows]
    grid = cells.build_grid("Quality of explanations", columns, lines)
    words = (
        "A sample of explanations was audited by people. Correct: everything relevant is "
        "checked and true; insufficient: something is left out; wrong: a step is false; "
        "none: only a verdict. An audit uses the same items for every run. Each item counts once: "
        "if it has several explanations, such as one per sample, they share its weight equally."
    )
    caption = (
        "Quality of explanations by whether the verdict was right, as shares of the audited "
        "explanations; numbers are items."
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
    """A cell with a link to the items in the check that found an error in their explanations."""
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
        "Share of explanations that name an error, for perturbed and for gold answers, with "
        "95 % intervals."
    )
    return dot_charts.draw_dots(
        found, title="Explanation names an error", caption=caption, series="Of"
    )


VIEWS = (
    ResultView(
        slug="credit-of-words",
        title="By score and by explanation",
        asks=(TableQuery("explanations"),),
        build=build_named_errors,
        studies={"000": TABLES},
        empty=UNCHECKED,
        switches=(run_group_tables.group_switch(),),
    ),
    ResultView(
        slug="false-credit",
        title="False credit",
        asks=(TableQuery("explanations"),),
        build=build_false_credit,
        studies={},
        empty=(
            "No explanations of gold answers have been checked for the chosen runs. Start "
            "explanation-check-gold over one of these runs."
        ),
        switches=(run_group_tables.group_switch(),),
    ),
    ResultView(
        slug="audits",
        title="Audits",
        asks=(TableQuery("audits", ""),),
        build=build_audits,
        studies={"001": study_figures("figure 6")},
        empty=(
            "No explanations of the chosen runs have been audited. Create an audit with “manage.py "
            "make_audit” and have its items labelled."
        ),
    ),
)
