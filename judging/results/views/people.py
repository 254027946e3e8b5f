"""Against people: how close evaluators are to human ratings: correlations, errors and means
(studies 002 and 003)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from charts import axes
from charts.axes import Axis
from judging.models import Run
from judging.results.correlations import CORRELATIONS, DISTANCE
from judging.results.views import cells, dot_charts, metrics
from judging.results.views.cells import Cell, Column, Grid, GridLine, LineBlock, Row
from judging.results.views.metrics import MetricPage
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    Rows,
    StudyFigure,
    Switch,
    TableQuery,
    ViewContent,
    study_figures,
)
from judging.results.views.run_group_tables import FigureColumn
from stats.estimates import Estimate

COEFFICIENTS = {"rho": "Spearman ρ", "pearson": "Pearson r", "tau": "Kendall τ-b"}
ERRORS = {
    "rmse": "RMSE",
    "mae": "Mean absolute error",
    "bias": "Bias",
    "accuracy002": "Accuracy of study 002",
}
MEASURES = {**COEFFICIENTS, **ERRORS}
MEASURE_PARAMETER = "measure"
MEANS = {"mean_people": "People's mean", "mean_evaluator": "Evaluator's mean"}

_MODEL, _TASK = ("model",), ("task", "language")
# The strategies behind three figures and tables of study 003.
_OVERLAP = ("rouge-l-unicode-response", "rouge-l-response")
_ASKED = (_OVERLAP, ("likert",), ("likert-no-gold",))
CORRELATION_FIGURES = (
    *(StudyFigure(f"figure {n}, correlations", of, _TASK) for n, of in enumerate(_ASKED, 1)),
    *(StudyFigure(f"table {n}", of, _MODEL) for n, of in enumerate(_ASKED, 3)),
)
CLOSENESS_FIGURES = (
    *study_figures("figure 4", "figure 6", "figure 7"),
    StudyFigure("figure 9", query={"measure": "accuracy002"}),
)
RATING_FIGURES = (
    StudyFigure("table 1", ("likert",), _MODEL),
    *(StudyFigure(f"figure {n}, ratings", of, _TASK) for n, of in enumerate(_ASKED, 1)),
)


def measure_switch(measures: Mapping[str, str]) -> Switch:
    """The switch between the measures that the chart can show."""
    return Switch(MEASURE_PARAMETER, "In the chart", measures)


def build_correlations(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """How similarly the evaluator and people rank items."""
    words = (
        "Coefficients use the items that have both numbers; the human number is the final label "
        "(of three annotators, the majority). Spearman compares ranks, Pearson linear "
        "association, Kendall's τ-b pairs of items with ties. A coefficient is undefined if one "
        "side is constant. With or without gold: whether the strategy shows the gold answer."
    )
    caption = "with human ratings, with 95 % intervals from 10 clusters on."
    grid, drawing = _table_and_chart(
        asked, tables[0], "Correlation with human ratings", COEFFICIENTS, caption
    )
    return ViewContent(grid, drawing, words)


def build_closeness(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """How close the evaluator's numbers are to people's."""
    words = (
        "Errors are in scale points and need the same scale on both sides. Bias: mean of "
        "evaluator minus people; above 0 the evaluator rates higher. Accuracy as in study 002: "
        "100 − 100 × RMSE / 15 for every metric. 15 is the range of that study's total, so a "
        "metric with few points cannot score low. The range below an RMSE: its bounds if each "
        "missing number had its nearest or farthest value."
    )
    caption = "compared with human ratings, with 95 % intervals."
    grid, drawing = _table_and_chart(
        asked, tables[0], "Distance from human ratings", ERRORS, caption
    )
    return ViewContent(grid, drawing, words)


def build_means(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """Mean ratings of people and evaluators, scaled to 0 to 100 %."""
    page = MetricPage(asked)
    rows = page.ordered(tables[0])
    figures = (
        *page.counted(),
        *(_mean_column(page, name) for name in MEANS),
        (_DIFFERENCE_COLUMN, _difference_cell),
    )
    grid = page.build_grid("Mean ratings", rows, figures)
    if page.fields:
        grid = _with_distances(page, grid, page.ordered(tables[1]))
    words = (
        "Both means use the items that have both numbers, scaled by each side's own scale: "
        "(mean − lowest) / (highest − lowest). Grouped by a field, the top rows give the "
        "mean over groups of the absolute difference between the two means; grouped by "
        "model, this is the last row of study 003's table 1."
    )
    return ViewContent(grid, _draw_pairs(page, rows), words)


def measure_axis(measure: str, found: Iterable[Estimate]) -> Axis:
    """The axis for a measure: the full range of the measure if there is one, else the range of the
    values."""
    ends = dot_charts.list_ends(found)
    if measure in CORRELATIONS:
        return axes.coefficient_axis(ends)
    if measure == "accuracy002":
        return Axis(min([0, *ends]), 100, ".0f", ".1f")
    top = 1.05 * max(map(abs, ends), default=1) or 1
    return Axis(-top if measure == "bias" else 0, top, ".2~f", ".3f")


def read_estimate(row: Row, name: str) -> Estimate:
    """A figure of a row with its interval."""
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    return Estimate(value, low, high, row["n"], row[f"{name}_reason"] or "")


def _table_and_chart(
    asked: PageQuery, rows: Rows, title: str, measures: Iterable[str], caption: str
) -> tuple[Grid, ChartSpec | None]:
    """A table of some measures, and a chart of the selected one."""
    page = MetricPage(asked)
    ordered = page.ordered(rows)
    figures = (*page.counted(), *(_measure_column(page, name) for name in measures))
    return page.build_grid(title, ordered, figures), _drawing(page, ordered, caption)


def _measure_column(page: MetricPage, name: str) -> FigureColumn:
    def cell(run: Run, row: Row) -> Cell:
        found = metrics.with_link(cells.figure_cell(row, name), page.items(row))
        return replace(found, note=_bounds_note(row)) if name == "rmse" else found

    return Column(MEASURES[name], name), cell


def _bounds_note(row: Row) -> str:
    if not row["missing"] or row["rmse_lowest"] is None:
        return ""
    low, high = (cells.number_cell(row[f"rmse_{end}"]).text for end in ("lowest", "highest"))
    return f"{low} to {high} with missing"


def _mean_column(page: MetricPage, name: str) -> FigureColumn:
    def cell(run: Run, row: Row) -> Cell:
        return metrics.with_link(metrics.percent_cell(row, name), page.items(row))

    return Column(MEANS[name], name), cell


_DIFFERENCE_COLUMN = Column("Evaluator minus people", "apart", cells.POINTS_UNIT)


def _difference_cell(run: Run, row: Row) -> Cell:
    people, evaluator = (row[name] for name in MEANS)
    if people is None or evaluator is None:
        return Cell(reason=row["mean_people_reason"] or row["mean_evaluator_reason"] or "")
    return cells.points_cell(evaluator - people)


def _with_distances(page: MetricPage, grid: Grid, over: Rows) -> Grid:
    """Add lines at the top of the grid, one per run and metric, with the mean distance over
    groups."""
    lines = [_distance(page, row) for row in over if row["figure"] == DISTANCE]
    return Grid(grid.title, grid.columns, (LineBlock(tuple(lines)), *grid.blocks))


def _distance(page: MetricPage, row: Row) -> GridLine:
    first = cells.text_cell("Mean distance over groups")
    blank = [Cell("") for _ in range(len(page.fields) - 1)]
    note = f"of {row['groups']} groups" + (
        f", {row['undefined']} undefined" if row["undefined"] else ""
    )
    text = "" if row["mean"] is None else f"{100 * row['mean']:.1f}"
    found = Cell(text, row["mean"], note=note) if text else Cell(reason=row["reason"] or note)
    heads = (first, *blank, *page.begin(row, ()))
    return GridLine((*heads, *(Cell("") for _ in range(4)), found), "group")


def _drawing(page: MetricPage, rows: Rows, caption: str) -> ChartSpec | None:
    measure = page.asked.switch_value(MEASURE_PARAMETER)
    labelled = page.labelled(rows)
    found = [
        (metrics.run_name(page.runs[row["run"]]), label, read_estimate(row, measure))
        for label, row in labelled
    ]
    axis = measure_axis(measure, (one for *_, one in found))
    title = MEASURES[measure]
    words = f"{title} {caption}{_cut_note(rows, labelled)}"
    return dot_charts.draw_dots(found, title=title, caption=words, axis=axis)


def _draw_pairs(page: MetricPage, rows: Rows) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import paired

    labelled = page.labelled(rows)
    found = [
        paired.MeanPair(
            metrics.run_name(page.runs[row["run"]]),
            label,
            row["mean_people"],
            row["mean_evaluator"],
            row["n"],
        )
        for label, row in labelled
        if row["mean_people"] is not None and row["mean_evaluator"] is not None
    ]
    caption = (
        "Mean ratings of people (open circles) and of evaluators (squares), scaled to 0 to 100 "
        f"%, with a line between the two means of a run.{_cut_note(rows, labelled)}"
    )
    return (
        ChartSpec(paired.draw_pairs(found, title="Mean rating, scaled"), caption) if found else None
    )


def _cut_note(rows: Rows, labelled: Sequence[tuple[str, Row]]) -> str:
    if len(labelled) == len(rows):
        return ""
    return f" The first {metrics.MOST_GROUPS} groups; the table has them all."


VIEWS = (
    metrics.metric_view(
        slug="correlations",
        title="Correlations",
        asks=(TableQuery("alignment"),),
        build=build_correlations,
        studies={"002": study_figures("figure 8"), "003": CORRELATION_FIGURES},
        switches=(measure_switch(COEFFICIENTS),),
    ),
    metrics.metric_view(
        slug="closeness",
        title="Closeness",
        asks=(TableQuery("alignment"),),
        build=build_closeness,
        studies={"002": CLOSENESS_FIGURES},
        switches=(measure_switch(ERRORS),),
    ),
    metrics.metric_view(
        slug="means",
        title="Mean ratings",
        asks=(TableQuery("alignment"), TableQuery("alignment_groups")),
        build=build_means,
        studies={"002": study_figures("section 7.4"), "003": RATING_FIGURES},
    ),
)
