"""Against people, pooled and by group: is a figure the same within groups as over all items?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from judging.results.views import cells, metrics, people
from judging.results.views.cells import Cell, Column, GridLine, Row
from judging.results.views.metrics import MetricPage
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    Rows,
    TableQuery,
    ViewContent,
    study_figures,
)
from stats.estimates import Estimate

MEASURES = {name: people.MEASURES[name] for name in ("rho", "pearson", "tau", "rmse", "bias")}
COLUMNS = (
    Column("All items pooled", "pooled"),
    Column("Mean over groups", "mean"),
    Column("sd over groups", "sd"),
    Column("Groups", "groups"),
    Column("Undefined", "undefined"),
    Column("Reversed within groups", "turned", is_number=False),
)
# The key of a row: run, metric, and treatment of off-scale numbers.
Key = tuple[Any, ...]

STUDY_FIGURES = (
    *study_figures("section 4.2", by=("task",)),
    *study_figures("section 4.3, short and long", by=("answer_length",)),
)


def build_group_means(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per run and metric: the figure over all items, and the mean over groups."""
    page, measure = MetricPage(asked), asked.switch_value(people.MEASURE_PARAMETER)
    over = page.ordered([row for row in tables[0] if row["figure"] == measure])
    pooled = {_key(row): row for row in tables[2]}
    turned = _find_reversals(over)
    lines = [
        GridLine(
            (*page.begin(row, ()), *_figures(page, row, pooled.get(_key(row)), turned[_key(row)]))
        )
        for row in over
    ]
    words = (
        "A pooled figure can contradict the figure within every group (Simpson's paradox), "
        "because it mixes differences between groups with differences within groups. The mean "
        "over groups weighs all groups equally; groups where the figure is undefined, for "
        "example because all ratings are the same, are counted and left out. Reversed: the "
        "figure changes its sign, or two runs change order."
    )
    grid = cells.build_grid("Pooled and by group", (*page.heads(()), *COLUMNS), lines)
    return ViewContent(grid, _drawing(page, over, tables[1], pooled), words)


def _key(row: Row) -> Key:
    return row["run"], row["metric"], row["off_scale"]


def _figures(
    page: MetricPage, row: Row, pooled: Row | None, turned: Sequence[str]
) -> tuple[Cell, ...]:
    return (
        _pooled(row, pooled),
        _mean(row),
        cells.number_cell(row["sd"]),
        cells.count_cell(row["groups"], page.view_link("correlations", row)),
        cells.count_cell(row["undefined"]),
        cells.text_cell("; ".join(turned) or "no"),
    )


def _pooled(row: Row, pooled: Row | None) -> Cell:
    if pooled is None:
        return cells.number_cell(row["pooled"])
    return replace(cells.figure_cell(pooled, row["figure"]), n=pooled["n"])


def _mean(row: Row) -> Cell:
    if row["mean"] is None:
        return Cell(reason=row["reason"] or "undefined in every group")
    return cells.number_cell(row["mean"])


def _find_reversals(over: Rows) -> dict[Key, list[str]]:
    """Find what is reversed within groups, by row: the sign, or the order of two runs."""
    found: dict[Key, list[str]] = {}
    for row in over:
        said = ["the sign"] if _opposite_signs(row["pooled"], row["mean"]) else []
        said += [
            f"changes places with run {other['run']}"
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


def _drawing(
    page: MetricPage, over: Rows, grouped: Rows, pooled: Mapping[Key, Row]
) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import spread

    measure = page.asked.switch_value(people.MEASURE_PARAMETER)
    several = len({row["metric"] for row in over}) > 1
    found = [
        (_row(page, row, several=several), *mark)
        for row in over[: metrics.MOST_GROUPS]
        for mark in _marks(page, row, grouped, pooled)
    ]
    shown = [
        spread.SpreadMark(name, kind, group, one.value, one.low, one.high, one.n)
        for name, kind, group, one in found
        if one.value is not None
    ]
    if not shown:
        return None
    title = MEASURES[measure]
    axis = people.measure_axis(measure, (one for *_, one in found))
    caption = (
        f"{title} of all items pooled, with its 95 % interval, of each group, and as the mean over"
        " groups. If the two filled marks are apart, the groups differ."
    )
    return ChartSpec(spread.draw_spread(shown, title=title, axis=axis), caption)


def _marks(
    page: MetricPage, row: Row, grouped: Rows, pooled: Mapping[Key, Row]
) -> Iterator[tuple[str, str, Estimate]]:
    """The marks of a chart row: the kind, the items or groups that it covers, and the figure."""
    from charts import spread

    measure = row["figure"]
    for one in grouped:
        if _key(one) == _key(row):
            yield spread.GROUP, page.group(one), people.read_estimate(one, measure)
    if of_all := pooled.get(_key(row)):
        yield spread.POOLED, "all items", people.read_estimate(of_all, measure)
    yield spread.MEAN, "groups, equally weighted", Estimate(row["mean"], None, None, row["groups"])


def _row(page: MetricPage, row: Row, *, several: bool) -> str:
    """The label of a chart row: the run, and on further lines the metric and other details."""
    run = page.runs[row["run"]]
    gold = "" if metrics.sees_gold(run) else "without gold"
    parts = (page.title_of(row) if several else "", gold, metrics.off_scale_text(row))
    what = ", ".join(part for part in parts if part)
    return f"{cells.run_name(run, ': ')}: {what}" if what else cells.run_name(run, ": ")


VIEWS = (
    metrics.metric_view(
        slug="groups",
        title="Pooled and by group",
        asks=(TableQuery("alignment_groups"), TableQuery("alignment"), TableQuery("alignment", "")),
        build=build_group_means,
        studies={"003": STUDY_FIGURES},
        switches=(people.measure_switch(MEASURES),),
        grouped=True,
    ),
)
