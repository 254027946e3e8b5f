"""How do both numbers differ, item by item? The tables `points`, `pairs` and `by_score`, and their
views of the page Against people."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from django.urls import reverse

from annotation.models import Project
from judging.models import Run
from judging.results import (
    cells,
    chart_parts,
    columns,
    correlations,
    counted,
    lines,
    metric_lines,
    paired_scores,
    raters,
)
from judging.results.cells import Cell, Row
from judging.results.columns import Table
from judging.results.metric_lines import Metrics, metric_view, select_ordered
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    Rows,
    TableQuery,
    ViewContent,
    study_figures,
)
from judging.results.paired_scores import PairedScores
from stats import majority


def tabulate_points(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The table `points`: a row per item and metric with a number from people.

    `people` is the final value, `mean` the mean over the labels of `raters` annotators, and
    `decided` whether more than half of them gave the same number. A recorded number off the scale
    is still shown in `evaluator`, and `off_scale` marks it. A missing number has a `cause`. Raises
    `UnknownField`.
    """
    people = raters.load_raters(project)
    for one in paired_scores.load_paired_scores(project, runs, by):
        table = people.numbers_of(one.metric, one.position)
        decided = majority.majority_values(table).decided
        for row in np.flatnonzero(~np.isnan(one.people)).tolist():
            given = table[row][~np.isnan(table[row])]
            yield {
                **counted.run_columns(one.run),
                **dict(zip(by, one.groups[one.group[row]], strict=True)),
                "metric": one.metric.name,
                "raters": len(given),
                "mean": float(given.mean()) if len(given) else None,
                "decided": bool(decided[row]) if len(given) > 1 else None,
                **_point_row(one, row),
            }


def tabulate_pairs(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The table `pairs`: how many items have each pair of numbers. (Drawn as points, such items
    would hide each other.) `share` is the share among items with the same number from people.
    Raises `UnknownField`."""
    for named, sides in correlations.split_scores(project, runs, by):
        both = sides.both
        pairs = Counter(
            zip(sides.people[both].tolist(), sides.evaluator[both].tolist(), strict=True)
        )
        of_people = Counter(sides.people[both].tolist())
        for (people, evaluator), n in sorted(pairs.items()):
            pair = {"people": people, "evaluator": evaluator, "n": n}
            yield {**named, **pair, "share": n / of_people[people]}


def tabulate_by_score(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The table `by_score`: how often the evaluator gives exactly people's number, by that number,
    for example on items with 1 or on items with 3 (study 003, section 4.3).

    `n` items have both numbers. A metric has rows only if both sides have the same scale. Raises
    `UnknownField`.
    """
    for named, sides in correlations.split_scores(project, runs, by):
        if not sides.metric.is_comparable:
            continue
        found = majority.agreement_by_score(sides.people, sides.evaluator, sides.cluster)
        for score, one in found.items():
            yield {
                **named,
                "score": score,
                "n": one.n,
                "same": None if one.value is None else round(one.value * one.n),
                "agreement": one.value,
                "low": one.low,
                "high": one.high,
                "reason": one.reason or None,
            }


def _point_row(one: PairedScores, row: int) -> dict[str, Any]:
    given = float(one.given[row])
    number = given if not np.isnan(given) else float(one.evaluator[row])
    return {
        "item": one.key[row],
        "people": float(one.people[row]),
        "evaluator": None if np.isnan(number) else number,
        "off_scale": not np.isnan(given),
        "cause": one.cause[row] or None,
    }


def _number(value: float | None) -> Cell:
    """A number with at most three significant digits."""
    text = Cell().text if value is None else f"{value:.3g}".replace("-", "−")
    return Cell(text, value)


def _short(name: str, title: str) -> columns.Custom:
    """A number with at most three significant digits."""
    return columns.Custom(name, title, make=lambda row, of: _number(row[name]))


def _item_cell(row: Row, of: columns.Leading) -> Cell:
    run = of.runs[row["run"]]
    page = reverse("run-item", args=[run.project.slug, run.number, row["item"]])
    return Cell(row["item"], row["item"], href=page, is_number=False)


def _mean_cell(row: Row, of: columns.Leading) -> Cell:
    if row["mean"] is None:
        return Cell(reason="no counted labels")
    return Cell(cells.number_cell(row["mean"]).text, row["mean"], note=f"of {row['raters']}")


def _decided_cell(row: Row, of: columns.Leading) -> Cell:
    if row["decided"] is None:
        return Cell(reason="under two labels", is_number=False)
    return cells.text_cell("yes" if row["decided"] else "no")


def _evaluator_cell(row: Row, of: columns.Leading) -> Cell:
    if row["evaluator"] is None:
        return Cell(reason=(row["cause"] or "no number").replace("_", " "))
    note = "off the scale" if row["off_scale"] else ""
    return Cell(_number(row["evaluator"]).text, row["evaluator"], note=note)


def _difference(run: Run, row: Row) -> float | None:
    """The result is None without the evaluator's number, and for a strategy with a scale of its
    own."""
    if row["evaluator"] is None or run.strategy.strategy().frame == "matching":
        return None
    return float(row["evaluator"] - row["people"])


def _difference_cell(row: Row, of: columns.Leading) -> Cell:
    apart = _difference(of.runs[row["run"]], row)
    return Cell() if apart is None else Cell(f"{apart:+.3g}".replace("-", "−"), apart)


_COUNTED = (*columns.RUN, *columns.plain("total", "missing", "metric"), columns.FIELDS)
POINTS = Table(
    "points",
    (
        *columns.RUN,
        columns.FIELDS,
        columns.Custom("item", "Item", make=_item_cell, is_text=True),
        *columns.plain("metric", "raters"),
        columns.Custom("mean", "Mean of labels", make=_mean_cell),
        columns.Custom("decided", "Majority", make=_decided_cell, is_text=True),
        _short("people", "People"),
        columns.Custom("evaluator", "Evaluator", make=_evaluator_cell),
        *columns.plain("off_scale", "cause"),
    ),
    tabulate_points,
    group_by=paired_scores.BY_ITEM_FIELDS_AND_LENGTH,
)
_AS_PAIR = columns.items(people="{people}", evaluator="{evaluator}")
PAIRS = Table(
    "pairs",
    (
        *_COUNTED,
        columns.Column("off_scale"),
        _short("people", "People"),
        _short("evaluator", "Evaluator"),
        columns.Count("n", "Items", _AS_PAIR),
        columns.Percent("share", "Share of people's rating"),
    ),
    tabulate_pairs,
    group_by=paired_scores.BY_ITEM_FIELDS_AND_LENGTH,
)
_AGREEMENT = columns.Rate(
    "agreement",
    "Agreement",
    columns.items(people="{score}", evaluator="{score}"),
    n="n",
    n_link=columns.items(people="{score}"),
    missing="",
)
BY_SCORE = Table(
    "by_score",
    (
        *_COUNTED,
        columns.Column("off_scale"),
        _short("score", "People gave"),
        columns.Column("n"),
        columns.Count("same", "Same rating", columns.items(people="{score}", evaluator="{score}")),
        _AGREEMENT,
        *columns.plain("low", "high", "reason"),
    ),
    tabulate_by_score,
    group_by=paired_scores.BY_ITEM_FIELDS_AND_LENGTH,
)
# The most lines and panels shown; downloads have all.
MOST_LINES, MOST_PANELS = 200, 12


def _draw_circles(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import counted

    page = Metrics(asked, rows)
    panels = dict.fromkeys(_panel(page, row) for row in rows)
    kept = set(list(panels)[:MOST_PANELS])
    counts = [
        counted.PairCount(panel, row["people"], row["evaluator"], row["n"], *_axes(page, row))
        for row in rows
        if (panel := _panel(page, row)) in kept
    ]
    caption = (
        "Human ratings against evaluator ratings. The area of a circle and its number give "
        "the items with that pair. Dashed line: both are equal."
    )
    if len(panels) > len(kept):
        caption += f" The first {MOST_PANELS} of {len(panels)}; filter to see the rest."
    return ChartSpec(counted.draw_circles(counts), caption) if counts else None


def _panel(page: Metrics, row: Row) -> str:
    groups = page.group(row)
    name = cells.run_name(page.runs[row["run"]], ": ")
    rest = ", ".join(
        part for part in (page.title_of(row), groups, metric_lines.off_scale_text(row)) if part
    )
    return f"{name}: {rest}"


def _axes(page: Metrics, row: Row) -> tuple[str, str]:
    """The names of the axes of both sides: the metric, or the run if it has a scale of its own."""
    is_measure = page.runs[row["run"]].strategy.strategy().frame == "matching"
    return row["metric"], f"{row['run']}" if is_measure else row["metric"]


def _draw_agreement(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    page = Metrics(asked, rows)
    found = [
        (
            metric_lines.run_name(page.runs[row["run"]]),
            f"People gave {_number(row['score']).text}: {label}",
            _AGREEMENT.estimate(row),
        )
        for label, row in page.labelled(rows)
    ]
    caption = (
        "How often the evaluator gives the same rating as people, by rating, with 95 % intervals."
    )
    return chart_parts.draw_dots(found, title="Same rating", caption=caption)


_ITEMS = lines.Lines(
    POINTS,
    "Items with both numbers",
    (
        *("item", "people", "mean", "decided", "evaluator"),
        columns.Custom("apart", "Evaluator minus people", make=_difference_cell),
    ),
    "People: the final label of the item. The largest differences come first.",
    select=lambda asked, tables: sorted(
        select_ordered(asked, tables), key=lambda row: -_distance(asked, row)
    ),
    leading=Metrics,
    most=MOST_LINES,
    screen_words="Each row links to texts, labels and replies.",
)


def _distance(asked: PageQuery, row: Row) -> float:
    """The absolute difference; a number below 0 if the difference is undefined."""
    apart = _difference(asked.runs_by_number[row["run"]], row)
    return -1 if apart is None else abs(apart)


def build_items(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """All items with both numbers, the largest differences first; the chart counts the pairs."""
    names = ("run", "metric", "people", "evaluator")
    pairs = Counter(
        tuple(row[name] for name in names)
        for row in select_ordered(asked, tables)
        if row["evaluator"] is not None
    )
    counted_pairs = [{**dict(zip(names, pair, strict=True)), "n": n} for pair, n in pairs.items()]
    return replace(_ITEMS(asked, tables), drawing=_draw_circles(asked, counted_pairs))


VIEWS = (
    metric_view(
        slug="by-score",
        title="By score",
        asks=(TableQuery(BY_SCORE),),
        figures=("rate",),
        build=lines.Lines(
            BY_SCORE,
            "Agreement by human rating",
            ("score", "same", "agreement"),
            "For each human rating, how often the evaluator gives the same one. Both sides need "
            "the same scale. If people give one rating far more often than others, an evaluator "
            "that always gives that rating always agrees on those items.",
            _draw_agreement,
            select_ordered,
            Metrics,
        ),
        studies={"003": study_figures("section 4.3, agreement by score")},
    ),
    metric_view(
        slug="scatter",
        title="Scatter",
        asks=(TableQuery(PAIRS),),
        build=lines.Lines(
            PAIRS,
            "Pairs of ratings",
            ("people", "evaluator", "n", "share"),
            "Number of items for each pair of human rating and evaluator rating.",
            _draw_circles,
            select_ordered,
            Metrics,
            MOST_LINES,
        ),
        studies={},
    ),
    metric_view(
        slug=metric_lines.ITEMS_PARAMETER,
        title="Items",
        asks=(TableQuery(POINTS),),
        build=build_items,
        studies={"002": study_figures("figure 3", "figure 5", "tables A1 to A6")},
        columns=("metric", "people", "evaluator", "decided", "cause"),
        titles={"people": "People gave", "evaluator": "Evaluator gave", "decided": "Majority"},
    ),
)
