"""Sensitivity: the response of runs to the number of errors (dose) and to the expected penalty."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil, floor

from annotation.labelling.models.labels import SI_ITEM
from annotation.tasktypes.fields import Field
from charts.axes import RATES, Axis
from judging.models import Run
from judging.results import expected_effect, undetected
from judging.results.views import cells, dot_charts, page_parts, run_group_tables
from judging.results.views.cells import Cell, Column, RateColumns, Row
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    Switch,
    TableQuery,
    ViewContent,
)
from judging.results.views.run_group_tables import FigureColumn
from stats.estimates import Estimate

DETECTION = RateColumns(
    "detection", "detection_low", "detection_high", "parsed", "detection_reason", missing=""
)
TITLES = {"detection": "Detection rate", "penalty": "Penalty, share of the scale"}
DRAWN = {"detection": "Detection rates", "penalty": "Mean penalties as shares of the scale"}
CHART_TITLES = {"detection": "Detection", "penalty": "Penalty"}
RESPONSE, TITLE = "response", "In the chart"
# A chart with more lines is unreadable; the table has all of them.
MOST_LINES = 8
HOW_TO_GET_DOSES = (
    "No error item of the chosen runs has a dose (its number of errors). Perturb gold "
    "answers with 1, 2, 4 and 8 errors, or import such items of the same prompt with the "
    "number of errors in a column “dose”. Then have them labelled and start a run."
)
# The query that selects the outcomes of a row, in addition to its run and group.
RowFilter = Callable[[Row], dict[str, str]]


def build_doses(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per run, group and dose."""
    rows = _judging_rows(asked, tables[0])

    def narrow(row: Row) -> dict[str, str]:
        return {"dose": str(row["dose"])}

    figures: tuple[FigureColumn, ...] = (
        (Column("Errors", "dose"), lambda run, row: Cell(str(row["dose"]), row["dose"])),
        *_figures(narrow),
    )
    words = (
        "Detection and penalty as an answer contains more errors. Penalty: gold score minus "
        "perturbed score, mean over items with both. 95 % intervals are clustered by question. "
        "Not every answer has room for many errors, so doses may cover different questions: "
        "check the number of questions before you compare."
    )
    return ViewContent(
        run_group_tables.build_table(asked, "Dose and response", rows, figures),
        _draw_lines(asked, rows),
        words,
    )


def build_penalties(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per run, group and expected penalty."""
    rows, field = _judging_rows(asked, tables[0]), expected_effect.find_field(asked.project)
    titles = {row["expected"]: _title(row["expected"], field) for row in rows}

    def expected(run: Run, row: Row) -> Cell:
        places = list(titles)
        return cells.text_cell(titles[row["expected"]], places.index(row["expected"]))

    figures: tuple[FigureColumn, ...] = (
        (Column("Expected by annotators", "expected", is_number=False), expected),
        *_figures(_expected_filter),
    )
    words = (
        "The penalty that a good evaluator should give according to annotators, next to the "
        "penalty that the runs gave. A value counts only if more than half of the annotators "
        "chose it. Score-invariant items should get no penalty; a detection there is a false "
        "alarm. Penalty: gold score minus perturbed score. To collect expected penalties, a lead "
        "turns on “Expected effect” in the settings."
    )
    drawing = _draw_expected(asked, rows, titles)
    return ViewContent(
        run_group_tables.build_table(asked, "Expected and given penalty", rows, figures),
        drawing,
        words,
    )


def _judging_rows(asked: PageQuery, rows: Rows) -> Rows:
    """Rows of runs that judge items, with the column `score_invariant` that the table needs."""
    judging = {run.number for run in page_parts.select_judging_runs(asked)}
    return [{**row, "score_invariant": False} for row in rows if row["run"] in judging]


def _expected_filter(row: Row) -> dict[str, str]:
    calm = row["expected"] == SI_ITEM
    return {"items": "invariant"} if calm else {"expected": row["expected"]}


def _figures(narrow: RowFilter) -> tuple[FigureColumn, ...]:
    """The columns that both tables share."""

    def items(result: str) -> Callable[[Run, Row], str]:
        return lambda run, row: cells.items_url(run, row, **narrow(row), result=result)

    parsed, detected, missing = (items(one) for one in ("parsed", "detected", "missing"))
    return (
        (
            Column("Items", "parsed"),
            lambda run, row: cells.count_cell(row["parsed"], parsed(run, row)),
        ),
        (Column("Questions", "clusters"), lambda run, row: cells.count_cell(row["clusters"])),
        (
            Column("Missing", "missing"),
            lambda run, row: cells.count_cell(row["missing"], missing(run, row)),
        ),
        (
            Column("Detected", "detection"),
            lambda run, row: cells.rate_cell(row, DETECTION, href=detected(run, row)),
        ),
        (Column("Penalty", "penalty"), lambda run, row: _points(row, parsed(run, row))),
        (
            Column("Share of the scale", "share"),
            lambda run, row: cells.percent_cell(_share(row, "penalty")),
        ),
    )


def _points(row: Row, href: str) -> Cell:
    """The mean penalty. It has a link to its items if it covers all parsed items."""
    found = cells.figure_cell(row, "penalty")
    if row["penalty"] is None:
        return found
    scale = "" if row["at_top"] is None else f"scale {row['bottom']:g} to {row['at_top']:g}"
    return replace(
        found, n=row["scored"], href=href if row["scored"] == row["parsed"] else "", note=scale
    )


def _share(row: Row, name: str) -> float | None:
    """A penalty as a share of the range of the scale; None without a scale."""
    if row[name] is None or row["at_top"] is None:
        return None
    return float(row[name] / (row["at_top"] - row["bottom"]))


def _response(row: Row, which: str) -> Estimate:
    """The value to draw, comparable between runs with different scales."""
    if which == "detection":
        return cells.read_estimate(row, DETECTION)
    value, low, high = (_share(row, f"penalty{end}") for end in ("", "_low", "_high"))
    return Estimate(value, low, high, row["scored"])


def _axis(which: str, found: Sequence[Estimate]) -> Axis:
    """The axis from 0 to 1 for rates; otherwise an axis that ends at the next tenth of the scale
    and may start below 0."""
    if which == "detection":
        return RATES
    ends = dot_charts.list_ends(found)
    return Axis(floor(10 * min([0, *ends])) / 10, ceil(10 * max([0.1, *ends])) / 10)


def _draw_lines(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import doses as charted

    which = asked.switch_value(RESPONSE)
    found = [(_series_name(asked, row), row["dose"], _response(row, which)) for row in rows]
    there = [(series, dose, one) for series, dose, one in found if one.value is not None]
    series = list(dict.fromkeys(series for series, _, _ in there))[:MOST_LINES]
    points = [
        charted.DosePoint(name, dose, one.value, one.low, one.high, one.n)
        for name, dose, one in there
        if name in series and one.value is not None
    ]
    if not points:
        return None
    caption = f"{DRAWN[which]} by the number of errors in the answer, with 95 % intervals."
    if len(series) < len({name for name, _, _ in there}):
        caption += f" The first {MOST_LINES} lines; choose fewer runs or groups to see the rest."
    axis = _axis(which, [one for _, _, one in there])
    spec = charted.draw_lines(points, title=TITLES[which], axis=axis, series=_series_kind(rows))
    return ChartSpec(spec, caption)


def _is_grouped(row: Row) -> bool:
    return bool(set(row) & set(undetected.FIELDS))


def _series_kind(rows: Rows) -> str:
    """The title for the lines of a chart: items or runs."""
    return "Items" if any(map(_is_grouped, rows)) else "Run"


def _series_name(asked: PageQuery, row: Row) -> str:
    """The name of a line: the run's name, or, with several runs, the group's name followed by the
    run's number."""
    if not _is_grouped(row):
        return next(cells.run_name(run) for run in asked.runs if run.number == row["run"])
    return run_group_tables.chart_label(asked, row).replace(": ", " · ")


def _title(expected: str, field: Field | None) -> str:
    """The title of an expected penalty, from the options of the task if they have one."""
    titles = {str(one.value): one.title for one in (field.options if field else ())}
    own = {
        SI_ITEM: "None: score-invariant",
        expected_effect.DISAGREE: "Annotators disagree",
        expected_effect.UNANSWERED: "No answer",
    }
    return own.get(expected) or titles.get(expected, expected)


def _draw_expected(asked: PageQuery, rows: Rows, titles: dict[str, str]) -> ChartSpec | None:
    which = asked.switch_value(RESPONSE)
    found = [
        (_series_name(asked, row), titles[row["expected"]], _response(row, which)) for row in rows
    ]
    caption = f"{DRAWN[which]} by expected penalty, with 95 % intervals."
    axis = _axis(which, [one for _, _, one in found])
    return dot_charts.draw_dots(
        found, title=TITLES[which], caption=caption, series=_series_kind(rows), axis=axis
    )


VIEWS = (
    ResultView(
        slug="doses",
        title="Dose and response",
        asks=(TableQuery("doses"),),
        build=build_doses,
        studies={},
        empty=HOW_TO_GET_DOSES,
        switches=(
            run_group_tables.group_switch(run_group_tables.BY_RUN),
            Switch(RESPONSE, TITLE, CHART_TITLES),
        ),
    ),
    ResultView(
        slug="penalties",
        title="Expected and given penalty",
        asks=(TableQuery("penalties"),),
        build=build_penalties,
        studies={},
        empty="The chosen runs have no outcomes of items with a final label.",
        switches=(
            run_group_tables.group_switch(run_group_tables.BY_RUN),
            Switch(RESPONSE, TITLE, dict(reversed(CHART_TITLES.items()))),
        ),
    ),
)
