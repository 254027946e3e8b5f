"""How often do most people give the same number? The tables `majority` and `ratings`, and their
views of the page Against people."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from django.urls import reverse

from annotation import tasktypes
from annotation.models import Item, Project
from judging.results import (
    chart_parts,
    columns,
    detectors,
    group_fields,
    lines,
    metric_lines,
    metric_scales,
)
from judging.results.cells import Cell, Header, Row
from judging.results.columns import Table
from judging.results.detectors import GroupKey
from judging.results.metric_lines import PeopleMetrics, metric_view, select_ordered
from judging.results.metric_scales import ScoredMetric
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    Rows,
    TableQuery,
    study_figures,
)
from judging.results.raters import RaterTable, load_raters
from judging.results.tables.ceiling import EMPTY
from stats import majority
from stats.rates import estimate_rate


def tabulate_ratings(project: Project, by: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The table `ratings`: a row per item and metric with numbers from two people or more: how many
    people, the mean, and whether more than half gave the same number. Raises `UnknownField`."""
    named, people = detectors.check_groupings(project, by), load_raters(project)
    items = Item.objects.in_project(project).filter(position__among=list(people.said))
    columns = ("position", "key", *(one.expression() for one in named))
    found = [(*row[:2], row[2:]) for row in items.order_by("position").values_list(*columns)]
    places = np.array([position for position, *_ in found], dtype=int)
    for metric in metric_scales.people_metrics(tasktypes.load_task_type(project)):
        table = people.numbers_of(metric, places)
        decided, numbers = majority.majority_values(table).decided, (~np.isnan(table)).sum(axis=1)
        for row in np.flatnonzero(numbers > 1).tolist():
            _, key, group = found[row]
            yield {
                "item": key,
                **dict(zip(by, detectors.make_group_key(group), strict=True)),
                "metric": metric.name,
                "raters": int(numbers[row]),
                "mean": float(np.nanmean(table[row])),
                "decided": bool(decided[row]),
            }


def tabulate_majority(project: Project, by: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The table `majority`: among the `n` items with two labels or more, the share where more than
    half gave the same number, by metric and group (study 003, section 3.4). Raises `UnknownField`.
    """
    named, people = detectors.check_groupings(project, by), load_raters(project)
    columns = ("position", "cluster", *(one.expression() for one in named))
    items = Item.objects.in_project(project).order_by("position").values_list(*columns)
    rows: dict[GroupKey, list[tuple[int, str]]] = defaultdict(list)
    for position, cluster, *group in items:
        if len(people.said.get(position, ())) > 1:
            rows[detectors.make_group_key(group)].append((position, cluster))
    for metric in metric_scales.people_metrics(tasktypes.load_task_type(project)):
        for group, found in sorted(rows.items()):
            yield {**dict(zip(by, group, strict=True)), **_majority_row(metric, found, people)}


def _majority_row(
    metric: ScoredMetric, items: Sequence[tuple[int, str]], people: RaterTable
) -> dict[str, Any]:
    table = people.numbers_of(metric, np.array([position for position, _ in items], dtype=int))
    several = (~np.isnan(table)).sum(axis=1) > 1
    clusters = np.array([cluster for _, cluster in items], dtype=object)
    decided = majority.majority_values(table[several]).decided
    share = estimate_rate(decided, clusters[several])
    return {
        "metric": metric.name,
        "n": share.n,
        "decided": int(np.nansum(decided)),
        "share": share.value,
        "low": share.low,
        "high": share.high,
        "reason": share.reason or None,
    }


def _item_cell(row: Row, of: columns.Leading) -> Cell:
    href = reverse("item", args=[of.asked.project.slug, row["item"]])
    return Cell(row["item"], row["item"], href=href, is_number=False)


_SHARE = columns.Rate(
    "share",
    "Share",
    columns.items(decided="true"),
    n="n",
    n_link=columns.items(),
    missing="",
)
MAJORITY = Table(
    "majority",
    (
        columns.FIELDS,
        columns.Column("metric"),
        columns.Count("n", "Items", columns.items()),
        columns.Count("decided", "With a majority", columns.items(decided="true")),
        _SHARE,
        *columns.plain("low", "high", "reason"),
    ),
    lambda project, runs, by: tabulate_majority(project, by),
    group_by=detectors.BY_ITEM_FIELDS,
    of_items=True,
    about="A row per metric and group: the share of items on which more than half of the "
    "people gave the same number.",
    meanings={
        "n": "number of items with numbers from two people or more",
        "decided": "number of these on which more than half gave the same number",
        "share": "decided divided by n",
    },
)
RATINGS = Table(
    "ratings",
    (
        columns.FIELDS,
        columns.Custom("item", "Item", make=_item_cell, is_text=True),
        columns.Column("metric"),
        columns.Count("raters", "People"),
        columns.Number("mean", "Mean"),
        columns.Text("decided", "Majority", write=lambda row: "yes" if row["decided"] else "no"),
    ),
    lambda project, runs, by: tabulate_ratings(project, by),
    group_by=detectors.BY_ITEM_FIELDS,
    of_items=True,
    about="A row per item and metric with numbers from two people or more: how many people, "
    "their mean, and whether more than half gave the same number.",
    meanings={
        "item": "key of the item",
        "raters": "number of people with a number for the item",
        "mean": "mean of their numbers",
        "decided": "true if more than half of them gave the same number",
    },
)
_UNDECIDED = columns.Count("undecided", "Without", columns.items(decided="false"))
# The most lines shown; downloads have all.
MOST_LINES = 200


def _with_undecided(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    return [{**row, "undecided": row["n"] - row["decided"]} for row in tables[0]]


def _draw_shares(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    page = PeopleMetrics(asked, rows)
    found = [
        (page.title_of(row), page.group(row) or "All items", _SHARE.estimate(row)) for row in rows
    ]
    caption = "Share of items with a majority rating, with 95 % intervals."
    return chart_parts.draw_dots(found, title="Share of items", caption=caption, series="Metric")


class _ItemFirst(PeopleMetrics):
    """The item, its groups and its metric."""

    def headers(self) -> list[Header]:
        return [RATINGS["item"].header(), *super().headers()]

    def cells(self, row: Row) -> list[Cell]:
        return [RATINGS["item"].cell(row, self), *super().cells(row)]


def _draw_majorities(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    """The numbers of items with and without a majority, by metric and group."""
    page = PeopleMetrics(asked, rows)
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        name = ": ".join(part for part in (page.title_of(row), page.group(row)) if part)
        counts.setdefault(name, Counter())["yes" if row["decided"] else "no"] += 1
    kinds = {"yes": "With a majority", "no": "Without"}
    caption = "Items with and without a majority rating; numbers are items."
    return chart_parts.draw_bars([*counts.items()], kinds, "Share of the items", caption)


VIEWS = (
    metric_view(
        slug="majority",
        title="Majority",
        asks=(TableQuery(MAJORITY),),
        figures=("rate",),
        build=lines.Lines(
            MAJORITY,
            "Majority ratings",
            ("n", "decided", _UNDECIDED, "share"),
            "Of the items rated by two or more annotators, the share on which more than half "
            "gave the same rating. Three different ratings have no majority and count as the "
            "median in all other figures (study 003, section 3.4). Independent of runs.",
            _draw_shares,
            _with_undecided,
            PeopleMetrics,
        ),
        studies={"003": study_figures("section 3.4, majorities")},
        empty=EMPTY,
        of_runs=False,
        groups=group_fields.list_fields,
    ),
    metric_view(
        slug=metric_lines.RATINGS_PARAMETER,
        title="Ratings",
        asks=(TableQuery(RATINGS),),
        build=lines.Lines(
            RATINGS,
            "Ratings of people",
            ("raters", "mean", "decided"),
            "Items rated by two or more annotators.",
            _draw_majorities,
            select_ordered,
            _ItemFirst,
            MOST_LINES,
            "Each row links to its labels.",
        ),
        studies={},
        empty=EMPTY,
        of_runs=False,
        groups=group_fields.list_fields,
        columns=("metric", "decided"),
        titles={"decided": "Majority"},
    ),
)
