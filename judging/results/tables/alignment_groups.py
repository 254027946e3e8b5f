"""Is a figure the same within groups as over all items? The table `alignment_groups`, and the views
Mean ratings and Pooled and by group of the page Against people."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from annotation.models import Project
from judging.models import Run
from judging.results import cells, chart_parts, columns, counted, lines, metric_lines, paired_scores
from judging.results.cells import Cell, GridLine, LineBlock, Row
from judging.results.columns import Table
from judging.results.correlations import DISTANCE, MEANS, compute_points
from judging.results.metric_lines import Metrics, metric_view, select_ordered
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    Rows,
    StudyFigure,
    TableQuery,
    ViewContent,
    study_figures,
)
from judging.results.tables import alignment
from judging.results.tables.alignment import (
    ALIGNMENT,
    MEASURE_PARAMETER,
    cut_note,
    measure_axis,
    measure_switch,
)
from stats import groups
from stats.estimates import Estimate


def tabulate_groups(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The table `alignment_groups`: each figure over all items, and its unweighted mean and
    standard deviation over groups; `undefined` counts groups without a value.

    A correlation may be high over all items and low within every group, or the other way round.
    `distance` is the distance between the two scaled means; its mean over models is the last row of
    study 003's table 1. Raises `UnknownField`.
    """
    for one in paired_scores.load_paired_scores(project, runs, by):
        for way, sides in one.ways():
            pooled = compute_points(sides)
            of_groups = [compute_points(part) for _, part in sides.by_group()]
            if not of_groups:  # A run over items that nobody has rated yet, to choose tasks.
                continue
            for name, point in pooled.items():
                yield {
                    **counted.run_columns(one.run),
                    "metric": one.metric.name,
                    "off_scale": way,
                    "figure": name,
                    "pooled": point.value,
                    **asdict(groups.mean_over_groups([found[name].value for found in of_groups])),
                    "reason": point.reason or None,
                }


def _pooled_cell(row: Row, of: columns.Leading) -> Cell:
    pooled = row["of_pooled"]
    if pooled is None:
        return cells.number_cell(row["pooled"])
    return replace(cells.figure_cell(pooled, row["figure"]), n=pooled["n"])


def _mean_cell(row: Row, of: columns.Leading) -> Cell:
    if row["mean"] is None:
        return Cell(reason=row["reason"] or "undefined in every group")
    return cells.number_cell(row["mean"])


def _groups_cell(row: Row, of: columns.Leading) -> Cell:
    assert isinstance(of, Metrics)
    return cells.count_cell(row["groups"], of.view_link("correlations", row))


ALIGNMENT_GROUPS = Table(
    "alignment_groups",
    (
        *columns.RUN,
        *columns.plain("metric", "off_scale", "figure"),
        columns.Custom("pooled", "All items pooled", make=_pooled_cell),
        columns.Custom("mean", "Mean over groups", make=_mean_cell),
        columns.Number("sd", "sd over groups"),
        columns.Custom("groups", "Groups", make=_groups_cell),
        columns.Count("undefined", "Undefined"),
        columns.Column("reason"),
    ),
    tabulate_groups,
    group_by=paired_scores.BY_ITEM_FIELDS_AND_LENGTH,
    about="A row per run, metric and figure of the table alignment: the figure over all "
    "items, and its mean and standard deviation over groups.",
    meanings={
        "figure": "column of the table `alignment`, or `distance`, which is the absolute "
        "difference of the two scaled means",
        "pooled": "the figure over all items",
        "mean": "mean of the figure over groups, each with the same weight",
        "sd": "sample standard deviation of the figure over groups",
        "groups": "number of groups in which the figure is defined",
        "undefined": "number of groups in which it is not",
        "reason": "why `pooled` is empty",
    },
)


def _apart_cell(row: Row, of: columns.Leading) -> Cell:
    people, evaluator = (row[name] for name in MEANS)
    if people is None or evaluator is None:
        return Cell(reason=row["mean_people_reason"] or row["mean_evaluator_reason"] or "")
    return cells.points_cell(evaluator - people)


_APART = columns.Custom("apart", "Evaluator minus people", unit=cells.POINTS_UNIT, make=_apart_cell)


def _draw_means(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import paired

    page = Metrics(asked, rows)
    labelled = page.labelled(rows)
    found = [
        paired.MeanPair(
            page.run_name(page.runs[row["run"]]),
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
        f"%, with a line between the two means of a run.{cut_note(rows, labelled)}"
    )
    return (
        ChartSpec(paired.draw_pairs(found, title="Mean rating, scaled"), caption) if found else None
    )


_MEANS = lines.Lines(
    ALIGNMENT,
    "Mean ratings",
    ("n", "missing", *MEANS, _APART),
    "Both means use the items that have both numbers, scaled by each side's own scale: "
    "(mean − lowest) / (highest − lowest). Grouped by a field, the top rows give the "
    "mean over groups of the absolute difference between the two means; grouped by "
    "model, this is the last row of study 003's table 1.",
    _draw_means,
    select_ordered,
    Metrics,
)


def build_means(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """Mean ratings of people and evaluators, scaled to 0 to 100 %. If they are grouped, lines at
    the top have the mean distance over groups for each run and metric."""
    shown = _MEANS(asked, tables)
    if not asked.fields():
        return shown
    page = Metrics(asked, tables[1])
    over = [row for row in page.ordered(tables[1]) if row["figure"] == DISTANCE]
    distances = LineBlock(tuple(_distance(page, row) for row in over))
    return replace(shown, grid=replace(shown.grid, blocks=(distances, *shown.grid.blocks)))


def _distance(page: Metrics, row: Row) -> GridLine:
    first = cells.text_cell("Mean distance over groups")
    blank = [Cell("") for _ in range(len(page.fields) - 1)]
    note = f"of {row['groups']} groups" + (
        f", {row['undefined']} undefined" if row["undefined"] else ""
    )
    text = "" if row["mean"] is None else f"{100 * row['mean']:.1f}"
    found = Cell(text, row["mean"], note=note) if text else Cell(reason=row["reason"] or note)
    heads = (first, *blank, *page.metric_cells(row))
    return GridLine((*heads, *(Cell("") for _ in range(4)), found), "group")


def _draw_ratings(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import upright

    page = Metrics(asked, rows)
    labelled = page.labelled(rows)
    found = [
        upright.GroupRating(
            page.run_name(page.runs[row["run"]]),
            label.replace(": ", ", "),
            *(row[name] for name in ("rho", "rho_low", "rho_high", *MEANS, "n")),
        )
        for label, row in labelled
        if row["n"]
    ]
    title = alignment.COEFFICIENTS["rho"]
    axis = measure_axis("rho", (chart_parts.read_estimate(row, "rho") for _, row in labelled))
    caption = (
        f"{title} with human ratings, with 95 % intervals (above), and mean ratings of people (open"
        " circles) and of evaluators (squares), scaled to 0 to 100 % (below). Groups without a "
        f"mark above have no defined correlation.{cut_note(rows, labelled)}"
    )
    return (
        ChartSpec(upright.draw_upright(found, title=title, axis=axis), caption) if found else None
    )


_RATINGS = lines.Lines(
    ALIGNMENT,
    "Correlations and mean ratings",
    ("n", "missing", "rho", *MEANS, _APART),
    "Spearman's ρ and both means of each group, over the items that have both numbers. Means are "
    "scaled by each side's own scale: (mean − lowest) / (highest − lowest).",
    _draw_ratings,
    select_ordered,
    Metrics,
)


GROUP_MEASURES = {
    name: alignment.MEASURES[name] for name in ("rho", "pearson", "tau", "rmse", "bias")
}
# The key of a row: run, metric, and treatment of off-scale numbers.
Key = tuple[Any, ...]


class _Overall(Metrics):
    """The metric and the run, without groups."""

    def __init__(self, asked: PageQuery, rows: Sequence[Row]) -> None:
        super().__init__(asked, rows)
        self.kept = []


def build_group_means(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per run and metric: the figure over all items, and the mean over groups."""
    page, measure = Metrics(asked, tables[0]), asked.switch_value(MEASURE_PARAMETER)
    over = page.ordered([row for row in tables[0] if row["figure"] == measure])
    pooled = {_key(row): row for row in tables[2]}
    reversed_ = _find_reversals(page, over)
    rows = [
        {
            **row,
            "of_pooled": pooled.get(_key(row)),
            "reversed": "; ".join(reversed_[_key(row)]) or "no",
        }
        for row in over
    ]
    shown = _GROUP_MEANS(asked, [rows])
    return replace(shown, drawing=_draw_spread(page, over, tables[1], pooled))


_GROUP_MEANS = lines.Lines(
    ALIGNMENT_GROUPS,
    "Pooled and by group",
    (
        *("pooled", "mean", "sd", "groups", "undefined"),
        columns.Text("reversed", "Reversed within groups", sort="turned"),
    ),
    "A pooled figure can contradict the figure within every group (Simpson's paradox), "
    "because it mixes differences between groups with differences within groups. The mean "
    "over groups weighs all groups equally; groups where the figure is undefined, for "
    "example because all ratings are the same, are counted and left out. Reversed: the "
    "figure changes its sign, or two runs change order.",
    leading=_Overall,
)


def _key(row: Row) -> Key:
    return row["run"], row["metric"], row["off_scale"]


def _find_reversals(page: Metrics, over: Rows) -> dict[Key, list[str]]:
    """Find what is reversed within groups, by row: the sign, or the order of two runs."""
    found: dict[Key, list[str]] = {}
    for row in over:
        said = ["the sign"] if _opposite_signs(row["pooled"], row["mean"]) else []
        said += [
            f"changes places with {page.runs[other['run']].mention}"
            for other in over
            if _key(other)[1:] == _key(row)[1:]
            and _opposite_signs(_difference(row, other, "pooled"), _difference(row, other, "mean"))
        ]
        found[_key(row)] = said
    return found


def _difference(one: Row, other: Row, name: str) -> float | None:
    if one[name] is None or other[name] is None:
        return None
    return float(one[name] - other[name])


def _opposite_signs(one: float | None, other: float | None) -> bool:
    """True if one value is above 0 and the other below 0; rounding errors count as 0."""
    return one is not None and other is not None and round(one, 9) * round(other, 9) < 0


def _draw_spread(
    page: Metrics, over: Rows, grouped: Rows, pooled: Mapping[Key, Row]
) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import spread

    measure = page.asked.switch_value(MEASURE_PARAMETER)
    several = len({row["metric"] for row in over}) > 1
    by_key: dict[Key, list[Row]] = {}
    for row in grouped:
        by_key.setdefault(_key(row), []).append(row)
    found = []
    for row in over[: metric_lines.MOST_GROUPS]:
        name = _row(page, row, several=several)
        found += [(name, *mark) for mark in _marks(page, row, by_key.get(_key(row), ()), pooled)]
    shown = [
        spread.SpreadMark(name, kind, group, one.value, one.low, one.high, one.n)
        for name, kind, group, one in found
        if one.value is not None
    ]
    if not shown:
        return None
    title = GROUP_MEASURES[measure]
    axis = measure_axis(measure, (one for *_, one in found))
    caption = (
        f"{title} of all items pooled, with its 95 % interval, of each group, and as the mean over"
        " groups. If the two filled marks are apart, the groups differ."
    )
    return ChartSpec(spread.draw_spread(shown, title=title, axis=axis), caption)


def _marks(
    page: Metrics, row: Row, groups: Sequence[Row], pooled: Mapping[Key, Row]
) -> Iterator[tuple[str, str, Estimate]]:
    """The marks of a chart row: the kind, the items or groups that it covers, and the figure."""
    from charts import spread

    measure = row["figure"]
    for one in groups:
        yield spread.GROUP, page.group(one), chart_parts.read_estimate(one, measure)
    if of_all := pooled.get(_key(row)):
        yield spread.POOLED, "all items", chart_parts.read_estimate(of_all, measure)
    yield spread.MEAN, "groups, equally weighted", Estimate(row["mean"], None, None, row["groups"])


def _row(page: Metrics, row: Row, *, several: bool) -> str:
    """The label of a chart row: the run, and on further lines the metric and other details."""
    run = page.runs[row["run"]]
    gold = "" if metric_lines.sees_gold(run) else "without gold"
    parts = (page.title_of(row) if several else "", gold, metric_lines.off_scale_text(row))
    what = ", ".join(part for part in parts if part)
    return f"{cells.run_name(run, ': ')}: {what}" if what else cells.run_name(run, ": ")


RATING_FIGURES = (StudyFigure("table 1", ("likert",), ("model",)),)
TASK_FIGURES = tuple(
    StudyFigure(f"figure {n}", of, ("task", "language")) for n, of in enumerate(alignment.ASKED, 1)
)


VIEWS = (
    metric_view(
        slug="means",
        title="Mean ratings",
        asks=(TableQuery(ALIGNMENT), TableQuery(ALIGNMENT_GROUPS)),
        figures=("means",),
        build=build_means,
        studies={"002": study_figures("section 7.4"), "003": RATING_FIGURES},
    ),
    metric_view(
        slug="tasks",
        title="Correlations above mean ratings",
        asks=(TableQuery(ALIGNMENT),),
        figures=("correlation", "means"),
        build=_RATINGS,
        studies={"003": TASK_FIGURES},
        grouped=True,
    ),
    metric_view(
        slug="groups",
        title="Pooled and by group",
        asks=(
            TableQuery(ALIGNMENT_GROUPS),
            TableQuery(ALIGNMENT),
            TableQuery(ALIGNMENT, ""),
        ),
        figures=("correlation", "distance"),
        build=build_group_means,
        studies={
            "003": (
                *study_figures("section 4.2", by=("task",)),
                *study_figures("section 4.3, short and long", by=("answer_length",)),
            )
        },
        switches=(measure_switch(GROUP_MEASURES),),
        grouped=True,
    ),
)
