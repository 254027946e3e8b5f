"""Which items did people and an evaluator rate, and how far are they apart? The table `points`, and
the view Items of the page Against people."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
from django.urls import reverse

from annotation.models import Item, Project
from judging.models import Run
from judging.results import cells, columns, counted, lines, metric_lines, paired_scores, raters
from judging.results.arrays import Floats, Ints
from judging.results.cells import Cell, Row
from judging.results.columns import Table
from judging.results.metric_lines import Metrics, metric_view, select_ordered
from judging.results.page_parts import PageQuery, Rows, TableQuery, ViewContent, study_figures
from judging.results.paired_scores import PairedScores
from judging.results.raters import RaterTable
from judging.results.tables import paired_answers
from judging.results.tables.paired_answers import MOST_LINES, short_number, write_number
from stats import majority

# About how many pairs of numbers, and how many items, are stored for the page.
MOST_PAIRS, MOST_STORED = 20_000, 200_000


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
        part = _RatedItems(one, people)
        for row in range(len(part.items.key)):
            yield {
                **counted.run_columns(one.run),
                **dict(zip(by, one.groups[part.items.group[row]], strict=True)),
                **part.numbers(row),
                "item": part.items.key[row],
                "raters": int(part.raters[row]),
                "mean": None if np.isnan(part.mean[row]) else float(part.mean[row]),
            }


def tabulate_pairs_of_items(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The rows of `points` as the view shows them, few enough for a page over a million outcomes: a
    row per run, group, metric and pair of numbers, with the number `n` of its items.

    `first` has the first of these items, as POSITION:RATERS:MEAN with spaces between: up to
    `MOST_LINES`, or fewer if all rows together would have more than `MOST_STORED`. If there are
    more than `MOST_PAIRS` pairs, as with ROUGE-L, those with the smallest differences are one row
    without numbers and without items. Raises `UnknownField`.
    """
    people = raters.load_raters(project)
    found = [
        (one.run, group, part, part.sort_pairs())
        for one in paired_scores.load_paired_scores(project, runs, by)
        for group, of_group in one.by_group()
        if len((part := _RatedItems(of_group, people)).items.key)
    ]
    if not found:
        return
    most = max(MOST_LINES, MOST_PAIRS // len(found))
    kept = sum(min(most, len(pairs)) for *_, pairs in found)
    at_most = min(MOST_LINES, max(1, MOST_STORED // kept))
    for run, group, part, pairs in found:
        of_part = {**counted.run_columns(run), **dict(zip(by, group, strict=True))}
        for rows in pairs[:most]:
            first = " ".join(part.write(row) for row in rows[:at_most].tolist())
            yield {**of_part, **part.numbers(rows[0]), "n": len(rows), "first": first}
        if rest := sum(map(len, pairs[most:])):
            yield {**of_part, **part.no_numbers(), "n": rest, "first": ""}


class _RatedItems:
    """The items of a run and metric that people rated, with what the labels say of each."""

    def __init__(self, one: PairedScores, people: RaterTable) -> None:
        self.items = one.only(~np.isnan(one.people))
        table = people.numbers_of(one.metric, self.items.position)
        there = ~np.isnan(table)
        self.raters: Ints = there.sum(axis=1)
        with np.errstate(invalid="ignore"):
            self.mean: Floats = np.where(there, table, 0).sum(axis=1) / self.raters
        self.decided = majority.majority_values(table).decided
        self.off_scale = ~np.isnan(self.items.given)
        self.evaluator = np.where(self.off_scale, self.items.given, self.items.evaluator)

    def numbers(self, row: int) -> dict[str, Any]:
        """What all items with the same pair of numbers share."""
        number = float(self.evaluator[row])
        return {
            "metric": self.items.metric.name,
            "people": float(self.items.people[row]),
            "evaluator": None if np.isnan(number) else number,
            "off_scale": bool(self.off_scale[row]),
            "decided": bool(self.decided[row]) if self.raters[row] > 1 else None,
            "cause": self.items.cause[row] or None,
        }

    def no_numbers(self) -> dict[str, Any]:
        """The same for items that are only counted."""
        return {**dict.fromkeys(self.numbers(0)), "metric": self.items.metric.name}

    def sort_pairs(self) -> list[Ints]:
        """The items of each pair of numbers, in order; the pairs with the largest differences come
        first."""
        cause = np.unique(self.items.cause.astype(str), return_inverse=True)[1]
        decided = np.where(self.raters > 1, self.decided, -1)
        numbers = np.column_stack(
            [self.items.people, self.evaluator, self.off_scale, decided, cause]
        )
        apart = np.nan_to_num(np.abs(self.items.people - self.evaluator), nan=-1)
        order = np.lexsort((*numbers.T, -apart))
        held = np.nan_to_num(numbers, nan=np.inf)[order]
        ends = np.flatnonzero((held[1:] != held[:-1]).any(axis=1)) + 1
        return np.split(order, ends)

    def write(self, row: int) -> str:
        """An item as the view reads it back with `_read_first`."""
        return f"{self.items.position[row]}:{self.raters[row]}:{self.mean[row]:.15g}"


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
    return Cell(write_number(row["evaluator"]).text, row["evaluator"], note=note)


def _difference(run: Run, row: Row) -> float | None:
    """The result is None without the evaluator's number, and for a strategy with a scale of its
    own."""
    if row["evaluator"] is None or run.strategy.strategy().frame == "matching":
        return None
    return float(row["evaluator"] - row["people"])


def _difference_cell(row: Row, of: columns.Leading) -> Cell:
    apart = _difference(of.runs[row["run"]], row)
    return Cell() if apart is None else Cell(f"{apart:+.3g}".replace("-", "−"), apart)


POINTS = Table(
    "points",
    (
        *columns.RUN,
        columns.FIELDS,
        columns.Custom("item", "Item", make=_item_cell, is_text=True),
        *columns.plain("metric", "raters"),
        columns.Custom("mean", "Mean of labels", make=_mean_cell),
        columns.Custom("decided", "Majority", make=_decided_cell, is_text=True),
        short_number("people", "People"),
        columns.Custom("evaluator", "Evaluator", make=_evaluator_cell),
        *columns.plain("off_scale", "cause"),
    ),
    tabulate_points,
    group_by=paired_scores.BY_ITEM_FIELDS_AND_LENGTH,
    about="A row per run, item and metric: the number from people and the evaluator's.",
    meanings={
        "item": "key of the item",
        "raters": "number of annotators with a number for the item",
        "mean": "mean of their numbers",
        "decided": "true if more than half of them gave the same number; empty with fewer than two",
        "people": "number that people gave, which is the final label",
        "evaluator": "number that the evaluator gave",
        "off_scale": "true if the evaluator's number is off the scale",
        "cause": "why the evaluator's number is missing",
    },
)
PAIRS_OF_ITEMS = Table(
    "pairs_of_items",
    (
        *columns.RUN,
        columns.FIELDS,
        *columns.plain("metric", "people", "evaluator", "off_scale", "decided", "cause"),
        *columns.plain("n", "first"),
    ),
    tabulate_pairs_of_items,
    group_by=paired_scores.BY_ITEM_FIELDS_AND_LENGTH,
    about="A row per run, group, metric and pair of numbers, people's and the evaluator's: "
    "how many items have it.",
)
_ITEMS = lines.Lines(
    POINTS,
    "Items with both numbers",
    (
        *("item", "people", "mean", "decided", "evaluator"),
        columns.Custom("apart", "Evaluator minus people", make=_difference_cell),
    ),
    "People: the final label of the item. The largest differences come first.",
    leading=Metrics,
    screen_words="Each row links to texts, labels and replies.",
)


def build_items(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """The items with the largest differences; the chart counts the pairs."""
    pairs = select_ordered(asked, tables)
    with_items = [row for row in pairs if row["first"]]
    shown = _list_items(asked, with_items)
    content = replace(
        _ITEMS(asked, [shown]), drawing=paired_answers.draw_circles(asked, _count(with_items))
    )
    total = sum(row["n"] for row in pairs)
    if total == len(shown):
        return content
    return replace(
        content,
        words=f"{content.words} Shown are {len(shown)} of {total:,} lines.",
        screen_words=f"{content.screen_words} Filter to see more; the file has all of them.",
    )


def _list_items(asked: PageQuery, pairs: Rows) -> Rows:
    """The rows of `points` for the first items of these pairs, the largest differences first."""

    def apart(row: Row) -> float:
        """The absolute difference; a number below 0 if the difference is undefined."""
        difference = _difference(asked.runs_by_number[row["run"]], row)
        return -1 if difference is None else abs(difference)

    def place(row: Row) -> tuple[Any, ...]:
        return apart(row), row["metric"], *(row[name] for name in asked.fields()), row["run"]

    found: Rows = []
    for _, alike in groupby(sorted(pairs, key=lambda row: -apart(row)), key=place):
        if len(found) >= MOST_LINES:
            break
        read = [{**row, **item} for row in alike for item in _read_first(row)]
        found += sorted(read, key=lambda row: int(row["position"]))
    found = found[:MOST_LINES]
    keys = dict(
        Item.objects.in_project(asked.project)
        .filter(position__in={row["position"] for row in found})
        .values_list("position", "key")
    )
    return [{**row, "item": keys[row["position"]]} for row in found]


def _read_first(row: Row) -> Iterator[dict[str, Any]]:
    """The first items of a pair, as `_RatedItems.write` wrote them."""
    for text in row["first"].split():
        position, people, mean = text.split(":")
        number = None if people == "0" else float(mean)
        yield {"position": int(position), "raters": int(people), "mean": number}


def _count(pairs: Rows) -> Rows:
    """The number of items with each pair, whatever else the rows tell apart."""
    names = ("run", "metric", "people", "evaluator")
    found: Counter[tuple[Any, ...]] = Counter()
    for row in pairs:
        if row["evaluator"] is not None:
            found[tuple(row[name] for name in names)] += row["n"]
    return [{**dict(zip(names, pair, strict=True)), "n": n} for pair, n in found.items()]


VIEWS = (
    metric_view(
        slug=metric_lines.ITEMS_PARAMETER,
        title="Items",
        asks=(TableQuery(PAIRS_OF_ITEMS, file=POINTS),),
        build=build_items,
        studies={"002": study_figures("figure 3", "figure 5", "tables A1 to A6")},
        columns=("metric", "people", "evaluator", "decided", "cause"),
        titles={"people": "People gave", "evaluator": "Evaluator gave", "decided": "Majority"},
    ),
)
