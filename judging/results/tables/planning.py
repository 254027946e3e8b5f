"""How many items would settle it? The tables `planning_rates` (an interval of some width) and
`planning_differences` (a difference between two runs), and the page Plan."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from annotation.templatetags import figures as written
from judging.models import Run
from judging.results import arrays, cells, chart_parts, columns, counted, lines, progress
from judging.results.arrays import RunArrays
from judging.results.cells import Cell, Row
from judging.results.columns import Table
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    TableQuery,
)
from judging.results.tables import choose, compare, cost
from stats import paired, planning, rates
from stats.estimates import Estimate

# Points to either side of a rate, and points of a difference, by the names of their columns.
WIDTHS = {"items_10": 0.10, "items_5": 0.05, "items_2_5": 0.025}
POINTS = {"items_20": 0.20, "items_10": 0.10, "items_5": 0.05}
ERRORS, INVARIANT = "errors", "invariant"
KINDS = {ERRORS: "Errors: detection", INVARIANT: "Score-invariant: false alarms"}
ONE_QUESTION, NO_PRICE = "one question, or none", "no known cost"


def tabulate_rates(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """The table `planning_rates`: for each run a row for its error items (the rate is detection),
    and one for its score-invariant items (false alarms).

    `design_effect` says how many times as many items are needed as if each were of another
    question. `items_10`, `items_5` and `items_2_5` are the numbers of items with which the interval
    would reach 10, 5 or 2.5 points to either side on average, if further questions are like those
    that are there and the rate stays as it is; None with a reason. `cost_5` is the cost of
    `items_5` items at what the run has cost per item.
    """
    found = arrays.load_arrays(runs)
    judging = [one.run for one in found]
    prices = choose.find_prices(judging, cost.tabulate(judging))
    return [
        _rate_row(one, kind, prices.get(one.run.pk))
        for one in found
        for kind in KINDS
        if (one.invariant == (kind == INVARIANT)).any()
    ]


def _rate_row(found: RunArrays, kind: str, price: float | None) -> dict[str, Any]:
    these = found.only(found.invariant == (kind == INVARIANT))
    sums = rates.sum_items(these.detected, these.cluster)
    estimate = rates.clustered_wilson(sums)
    needed = {name: planning.items_for_width(sums, 2 * half) for name, half in WIDTHS.items()}
    for_five = needed["items_5"]
    return {
        **counted.run_columns(found.run),
        "kind": kind,
        "total": len(these.item),
        "missing": len(these.item) - sums.n,
        "parsed": sums.n,
        "questions": sums.m,
        "rate": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "design_effect": rates.design_effect(sums) if sums.m > 1 else None,
        **needed,
        "cost_5": price * for_five if price is not None and for_five is not None else None,
        "cost_per_item": price,
        "cost_reason": NO_PRICE if price is None else None,
        "reason": None if sums.m > 1 else ONE_QUESTION,
    }


def tabulate_differences(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """The table `planning_differences`: for each pair of runs, how many error items would show a
    difference of detection.

    `n`, `difference` and `shows` are those of the table `compare`, over all abilities. `items_20`,
    `items_10` and `items_5` are the numbers of items with which a difference of so many points is
    found with 80 % power, after the correction for all pairs, if further questions are like those
    that are there; None with a reason.
    """
    found = arrays.load_arrays(runs)
    pairs = list(combinations(found, 2))
    return [_difference_row(a, b, len(pairs)) for a, b in progress.iterate(pairs, "comparing runs")]


def _difference_row(a: RunArrays, b: RunArrays, tests: int) -> dict[str, Any]:
    differences, cluster = compare.share_items(a, b).of_kind(invariant=False)
    made = paired.estimate_difference(differences, cluster, tests=tests)
    questions = len(set(cluster.tolist()))
    needed = {
        name: None
        if made.standard_error is None
        else planning.items_for_difference(made.n, questions, made.standard_error, points, tests)
        for name, points in POINTS.items()
    }
    return {
        **compare.run_columns(a.run, "a"),
        **compare.run_columns(b.run, "b"),
        "n": made.n,
        "questions": questions,
        "difference": made.value,
        "low": made.low,
        "high": made.high,
        "shows": made.shows,
        **needed,
        "reason": made.reason or None,
    }


def _needed(name: str, title: str) -> columns.Custom:
    """A number of items, with a remark if there are as many already."""

    def cell(row: Row, of: columns.Leading) -> Cell:
        value = row[name]
        if value is None:
            return Cell(reason=row["reason"] or "no number is enough")
        there = row["parsed"] if "parsed" in row else row["n"]
        return Cell(written.number(value), value, note="reached" if value <= there else "")

    return columns.Custom(name, title, make=cell, unit="items")


def _kind(asked: PageQuery, row: Row) -> str:
    return KINDS[row["kind"]]


RATES = Table(
    "planning_rates",
    (
        columns.RunNumber("run", "Run"),
        *columns.plain("endpoint", "strategy"),
        columns.Titled("kind", "Items", title_of=_kind),
        *columns.plain("total", "missing", "parsed"),
        columns.Count("questions", "Questions"),
        columns.Rate(
            "rate", "Rate now", columns.items(items=lambda row: row["kind"], result="parsed")
        ),
        *columns.plain("low", "high"),
        columns.Number("design_effect", "Design effect"),
        _needed("items_10", "For ±10 points"),
        _needed("items_5", "For ±5 points"),
        _needed("items_2_5", "For ±2.5 points"),
        cost.money_column(
            "cost_5", "Cost of ±5 points", reason="cost_reason", total="cost_per_item"
        ),
        *columns.plain("cost_per_item", "cost_reason", "reason"),
    ),
    lambda project, runs, by: tabulate_rates(runs),
    of_people=False,
)
DIFFERENCES = Table(
    "planning_differences",
    (
        columns.RunNumber("run_a", "Run a"),
        *columns.plain("endpoint_a", "strategy_a"),
        columns.RunNumber("run_b", "Run b"),
        *columns.plain("endpoint_b", "strategy_b"),
        columns.Count("n", "In both"),
        columns.Count("questions", "Questions"),
        columns.Points("difference", "a minus b now"),
        *columns.plain("low", "high"),
        columns.Distance("shows", "Smallest difference found now"),
        _needed("items_20", "For 20 points"),
        _needed("items_10", "For 10 points"),
        _needed("items_5", "For 5 points"),
        columns.Column("reason"),
    ),
    lambda project, runs, by: tabulate_differences(runs),
    of_people=False,
)


def _draw_rates(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    dots = [
        (
            KINDS[row["kind"]],
            cells.run_name(asked.runs_by_number[row["run"]], ": "),
            Estimate(row["rate"], row["low"], row["high"], row["parsed"]),
        )
        for row in rows
    ]
    return chart_parts.draw_dots(
        dots,
        title="Rate",
        caption="The rates of each run as known now, with 95 % intervals.",
        series="Of",
    )


def _select_pairs(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    return [row for row in tables[0] if asked.is_judging(row, "run_a", "run_b")]


_ASSUMED = (
    "If further items come in questions like those that are there: as many of each, and as alike. "
)
VIEWS = (
    ResultView(
        slug="rates",
        title="A rate",
        asks=(TableQuery(RATES, ""),),
        build=lines.Lines(
            RATES,
            "Items for an interval",
            (
                *("run", "kind", "rate", "questions", "design_effect"),
                *("items_10", "items_5", "items_2_5", "cost_5"),
            ),
            f"{_ASSUMED}The design effect says how many times as many items are needed as if each "
            "were of a question of its own. Cost: at what the run has cost per item so far.",
            _draw_rates,
            leading=columns.Leading,
        ),
        studies={},
        empty="Planning needs a run that judges perturbed answers: a run over a few items of each "
        "category is enough.",
    ),
    ResultView(
        slug="differences",
        title="A difference between two runs",
        asks=(TableQuery(DIFFERENCES, ""),),
        build=lines.Lines(
            DIFFERENCES,
            "Items for a difference",
            (
                *("run_a", "run_b", "n", "difference", "shows"),
                *("items_20", "items_10", "items_5"),
            ),
            f"{_ASSUMED}Error items with which a difference of detection of that size is found "
            "with 80 % power, after Holm’s correction for all pairs shown.",
            compare.draw_differences,
            _select_pairs,
            compare.Pairs,
        ),
        studies={},
        empty="A difference needs two or more runs that judge perturbed answers of the same items.",
    ),
)
