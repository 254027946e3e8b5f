"""How well do evaluators agree with human ratings? The table `alignment` of correlations, errors
and means, and the first views of the page Against people (studies 002 and 003)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from annotation.models import Project
from charts import axes
from charts.axes import Axis
from judging.models import Run
from judging.results import (
    arrays,
    cells,
    chart_parts,
    columns,
    lines,
    metric_lines,
    paired_scores,
)
from judging.results.cells import Cell, Row
from judging.results.columns import Table
from judging.results.correlations import (
    CORRELATIONS,
    MEANS,
    WITH_INTERVAL,
    build_figure,
    split_scores,
    without_value,
)
from judging.results.metric_lines import Metrics, metric_view, select_ordered
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    Rows,
    StudyFigure,
    Switch,
    TableQuery,
    study_figures,
)
from judging.results.paired_scores import LEFT_OUT, PairedScores
from stats import bootstrap, closeness
from stats.estimates import Estimate


def tabulate_alignment(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The table `alignment`: for each run, metric and group, the closeness of the evaluator's
    numbers to people's. If `by` is empty, the rows are over all items.

    `total` items have a number from people. Of these, `missing` items have no number from the
    evaluator. The other `n` have both numbers, and all figures are over these `n`. Errors are in
    the unit of the scale and need the same scale on both sides; `rmse_lowest` and `rmse_highest`
    are the bounds of the RMSE over all possible values of the missing numbers. Means are scaled to
    0..1 by each side's own scale. If recorded numbers are off the scale, there are two rows: one
    with these numbers `kept` and one with these numbers `left out`. Raises `UnknownField`.
    """
    for named, part in split_scores(project, runs, by):
        yield {**named, **_figures(part, list(named.values()))}


def _figures(sides: PairedScores, which: list[Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"n": int(sides.both.sum())}
    for name, of in _interval_estimates(sides, which).items():
        row |= {name: of.value, f"{name}_low": of.low, f"{name}_high": of.high}
        row[f"{name}_reason"] = of.reason or None
    return row | _bounds(sides)


def _interval_estimates(sides: PairedScores, which: list[Any]) -> dict[str, Estimate]:
    """Estimate all figures with their intervals, from the same draws."""
    made = {name: build_figure(sides, name) for name in WITH_INTERVAL}
    figures = {name: one for name, one in made.items() if not isinstance(one, str)}
    rng = arrays.make_generator("alignment", [sides.run], *which)
    drawn = bootstrap.estimates(list(figures.values()), sides.cluster, rng)
    found = dict(zip(figures, drawn, strict=True))
    return {
        name: without_value(sides, one) if isinstance(one, str) else found[name]
        for name, one in made.items()
    }


def _bounds(sides: PairedScores) -> dict[str, float | None]:
    scale = sides.metric.evaluator
    if scale is None or not sides.metric.is_comparable:
        return {"rmse_lowest": None, "rmse_highest": None}
    found = closeness.rmse_bounds(sides.people, sides.evaluator, scale.low, scale.high, scale.step)
    return {"rmse_lowest": found.lowest, "rmse_highest": found.highest}


def _bounds_note(row: Row) -> str:
    if not row["missing"] or row["rmse_lowest"] is None:
        return ""
    low, high = (cells.number_cell(row[f"rmse_{end}"]).text for end in ("lowest", "highest"))
    return f"{low} to {high} with missing"


def _both_cell(row: Row, of: columns.Leading) -> Cell:
    """The number of items with both numbers."""
    which = {} if row["off_scale"] != LEFT_OUT else {"cause": "None"}
    return cells.count_cell(row["n"], of.items_url(row, **which))


def _missing_cell(row: Row, of: columns.Leading) -> Cell:
    """The number of items without the evaluator's number."""
    which = {"evaluator": "None"} if row["off_scale"] != LEFT_OUT else {"cause": "off_scale"}
    return cells.count_cell(row["missing"], of.items_url(row, **which))


COEFFICIENTS = {"rho": "Spearman ρ", "pearson": "Pearson r", "tau": "Kendall τ-b"}
ERRORS = {
    "rmse": "RMSE",
    "mae": "Mean absolute error",
    "bias": "Bias",
    "accuracy002": "Accuracy of study 002",
}
MEASURES = {**COEFFICIENTS, **ERRORS}
MEAN_TITLES = {"mean_people": "People's mean", "mean_evaluator": "Evaluator's mean"}


def _figure(name: str) -> tuple[columns.Column, ...]:
    figure = columns.Figure(
        name,
        {**MEASURES, **MEAN_TITLES}[name],
        columns.items(),
        in_percent=name in MEANS,
        note=_bounds_note if name == "rmse" else None,
    )
    return figure, *columns.plain(f"{name}_low", f"{name}_high", f"{name}_reason")


ALIGNMENT = Table(
    "alignment",
    (
        *columns.RUN,
        columns.Column("total"),
        columns.Custom("missing", "Missing", make=_missing_cell),
        columns.Column("metric"),
        columns.FIELDS,
        columns.Column("off_scale"),
        columns.Custom("n", "Items", make=_both_cell),
        *(column for name in WITH_INTERVAL for column in _figure(name)),
        *columns.plain("rmse_lowest", "rmse_highest"),
    ),
    tabulate_alignment,
    group_by=paired_scores.BY_ITEM_FIELDS_AND_LENGTH,
    at_once=columns.GROUP_DRAW_LIMIT,
    about="A row per run, metric and group: correlations and distances between the "
    "evaluator's numbers and people's, and the means of both.",
    meanings={
        "total": "number of items with a number from people",
        "missing": "number of items with a number from people, but not from the evaluator",
        "n": "number of items with numbers from both; all figures but the bounds are over them",
        "rho": "Spearman rank correlation of the evaluator's numbers with people's",
        "pearson": "Pearson correlation of the evaluator's numbers with people's",
        "tau": "Kendall's τ-b of the evaluator's numbers with people's",
        "rmse": "root of the mean squared difference of the two numbers, in points of the scale",
        "mae": "mean absolute difference, in points of the scale",
        "bias": "mean of the evaluator's number minus people's, in points of the scale; above 0, "
        "the evaluator rates higher",
        "accuracy002": "100 − 100 × RMSE / range of the project's total, as in study 002; empty "
        "without a total",
        "mean_people": "mean of people's numbers, from 0 (lowest) to 1 (highest point of their "
        "scale)",
        "mean_evaluator": "mean of the evaluator's numbers, from 0 (lowest) to 1 (highest point "
        "of its scale)",
        "rmse_lowest": "RMSE over all `total` items if every missing number were as close to "
        "people's as the scale allows",
        "rmse_highest": "RMSE over all `total` items if every missing number were as far away as "
        "the scale allows",
    },
)
MEASURE_PARAMETER = "measure"


def measure_switch(measures: Mapping[str, str]) -> Switch:
    """The switch between the measures that the chart can show."""
    return Switch(MEASURE_PARAMETER, "In the chart", measures)


def measure_axis(measure: str, found: Iterable[Estimate]) -> Axis:
    """The axis for a measure: the full range of the measure if there is one, else the range of the
    values."""
    ends = chart_parts.list_ends(found)
    if measure in CORRELATIONS:
        return axes.coefficient_axis(ends)
    if measure == "accuracy002":
        return Axis(min([0, *ends]), 100, ".0f", ".1f")
    top = 1.05 * max(map(abs, ends), default=1) or 1
    return Axis(-top if measure == "bias" else 0, top, ".2~f", ".3f")


def _draw(caption: str) -> Callable[[PageQuery, Rows], ChartSpec | None]:
    """Draw the selected measure."""

    def draw(asked: PageQuery, rows: Rows) -> ChartSpec | None:
        page, measure = Metrics(asked, rows), asked.switch_value(MEASURE_PARAMETER)
        labelled = page.labelled(rows)
        found = [
            (
                page.run_name(page.runs[row["run"]]),
                label,
                chart_parts.read_estimate(row, measure),
            )
            for label, row in labelled
        ]
        axis = measure_axis(measure, (one for *_, one in found))
        title = MEASURES[measure]
        words = f"{title} {caption}{cut_note(rows, labelled)}"
        return chart_parts.draw_dots(found, title=title, caption=words, axis=axis)

    return draw


def cut_note(rows: Rows, labelled: Sequence[tuple[str, Row]]) -> str:
    if len(labelled) == len(rows):
        return ""
    return f" The first {metric_lines.MOST_GROUPS} groups; the table has them all."


_MODEL = ("model",)
# The strategies behind three tables and figures of study 003.
_OVERLAP = ("rouge-l-unicode-response", "rouge-l-response")
ASKED = (_OVERLAP, ("likert",), ("likert-no-gold",))
CORRELATION_FIGURES = tuple(StudyFigure(f"table {n}", of, _MODEL) for n, of in enumerate(ASKED, 3))
CLOSENESS_FIGURES = (
    *study_figures("figure 4", "figure 6", "figure 7"),
    StudyFigure("figure 9", query={"measure": "accuracy002"}),
)
VIEWS = (
    metric_view(
        slug="correlations",
        title="Correlations",
        asks=(TableQuery(ALIGNMENT),),
        figures=("correlation",),
        build=lines.Lines(
            ALIGNMENT,
            "Correlation with human ratings",
            ("n", "missing", *COEFFICIENTS),
            "Coefficients use the items that have both numbers; the human number is the final "
            "label (of three annotators, the majority). Spearman compares ranks, Pearson linear "
            "association, Kendall's τ-b pairs of items with ties. A coefficient is undefined if "
            "one side is constant. With or without gold: whether the strategy shows the gold "
            "answer.",
            _draw("with human ratings, with 95 % intervals from 10 clusters on."),
            select_ordered,
            Metrics,
        ),
        studies={"002": study_figures("figure 8"), "003": CORRELATION_FIGURES},
        switches=(measure_switch(COEFFICIENTS),),
    ),
    metric_view(
        slug="closeness",
        title="Closeness",
        asks=(TableQuery(ALIGNMENT),),
        figures=("distance",),
        build=lines.Lines(
            ALIGNMENT,
            "Distance from human ratings",
            ("n", "missing", *ERRORS),
            "Errors are in scale points and need the same scale on both sides. Bias: mean of "
            "evaluator minus people; above 0 the evaluator rates higher. Accuracy as in study "
            "002: 100 − 100 × RMSE / range of the total, for every metric. The total of that "
            "study has a range of 15; a metric with few points cannot score low. Without a total "
            "there is no such accuracy. The range below an RMSE: its bounds if each missing "
            "number had its nearest or farthest value.",
            _draw("compared with human ratings, with 95 % intervals."),
            select_ordered,
            Metrics,
        ),
        studies={"002": CLOSENESS_FIGURES},
        switches=(measure_switch(ERRORS),),
    ),
)
