"""How many items would settle it? The tables `planning_rates` (an interval of some width),
`planning_differences` (a difference between two runs), `planning_samples` (more samples or more
items) and `planning_start` (before the first run), and the page Plan."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models import Count

from annotation.models import Item, Project
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
from judging.results.tables import compare, cost
from judging.runs import amounts
from stats import paired, planning, rates
from stats.estimates import Estimate

# Points to either side of a rate, and points of a difference, by the names of their columns.
WIDTHS = {"items_10": 0.10, "items_5": 0.05, "items_2_5": 0.025}
POINTS = {"items_20": 0.20, "items_10": 0.10, "items_5": 0.05}
ERRORS, INVARIANT = "errors", "invariant"
# The samples an item that are planned for, and what is supposed before the first run.
SAMPLES = (1, 2, 3, 5, 10)
SUPPOSED_RATES, SUPPOSED_CORRELATIONS = (0.3, 0.5, 0.8, 0.95), (0.0, 0.1, 0.3)
SUPPOSED_POINTS = {"differ_20": 0.20, "differ_10": 0.10, "differ_5": 0.05}
KINDS = {ERRORS: "Errors: detection", INVARIANT: "Score-invariant: false alarms"}
ONE_QUESTION, NO_PRICE = "one question, or none", "no known cost"


def tabulate_rates(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """The table `planning_rates`: for each run a row for its error items (`rate` is detection,
    also as `detection_rate` beside `undetected_rate`), and one for its score-invariant items
    (`rate` is the share of false alarms, and `detection_rate` is the same).

    `design_effect` says how many times as many items are needed as if each were of another
    question. `items_10`, `items_5` and `items_2_5` are the numbers of items to ask with which the
    interval would reach 10, 5 or 2.5 points to either side on average, if further questions are
    like those that are there, the rate is `planned_rate`, and the share of missing replies,
    `missing` of `total`, stays as it is (`planning.items_to_ask`); None with a reason.
    `planned_rate` is the rate or, where too little is known of it, another one in its interval
    (`planning.choose_rate`). `cost_5` is the cost of `items_5` items at what the run has cost per
    item that it asked.
    """
    found = arrays.load_arrays(runs)
    spent = cost.tabulate([one.run for one in found], found)
    per_1000 = {row["run"]: row["cost_per_1000"] for row in spent}
    prices = {run: one / cost.ITEMS for run, one in per_1000.items() if one is not None}
    return [
        _rate_row(one, kind, prices.get(one.run.number))
        for one in found
        for kind in KINDS
        if (one.invariant == (kind == INVARIANT)).any()
    ]


def _rate_row(found: RunArrays, kind: str, price: float | None) -> dict[str, Any]:
    these = found.only(found.invariant == (kind == INVARIANT))
    sums = rates.sum_items(these.detected, these.cluster)
    estimate = rates.clustered_wilson(sums)
    total, planned = len(these.item), planning.choose_rate(sums)
    supposed = sums
    if planned is not None and planned != estimate.value:
        supposed = planning.suppose_rate(sums, planned)
    needed = {
        name: planning.items_to_ask(planning.items_for_width(supposed, 2 * half), sums.n, total)
        for name, half in WIDTHS.items()
    }
    for_five = needed["items_5"]
    return {
        **counted.run_columns(found.run),
        "kind": kind,
        "total": total,
        "missing": total - sums.n,
        "parsed": sums.n,
        "questions": sums.m,
        "rate": estimate.value,
        **counted.named_rates(estimate.value, is_detection=True),
        "low": estimate.low,
        "high": estimate.high,
        "design_effect": rates.design_effect(sums) if sums.m > 1 else None,
        "planned_rate": planned,
        **needed,
        "cost_5": price * for_five if price is not None and for_five is not None else None,
        "cost_per_item": price,
        "cost_reason": NO_PRICE if price is None else None,
        "currency": settings.CURRENCY,
        "reason": None if sums.m > 1 else ONE_QUESTION,
    }


def tabulate_differences(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """The table `planning_differences`: for each pair of runs, how many error items would show a
    difference of detection.

    `n`, `difference` and `shows` are those of the table `compare`, over all abilities. `asked` is
    the number of error items that both runs were asked; `n` of them have a usable reply of both.
    `items_20`, `items_10` and `items_5` are the numbers of items to ask both runs with which a
    difference of so many points is found with 80 % power, after the correction for all pairs, if
    further questions are like those that are there, and the share n / asked stays as it is; None
    with a reason.
    """
    found = arrays.load_arrays(runs)
    pairs = list(combinations(found, 2))
    return [_difference_row(a, b, len(pairs)) for a, b in progress.iterate(pairs, "comparing runs")]


def _difference_row(a: RunArrays, b: RunArrays, tests: int) -> dict[str, Any]:
    differences, cluster = compare.share_items(a, b).of_kind(invariant=False)
    made = paired.estimate_difference(differences, cluster)
    errors = a.item[~a.invariant], b.item[~b.invariant]
    asked = len(np.intersect1d(errors[0], errors[1], assume_unique=True))
    shows = made.find_smallest(tests)
    needed = {
        name: planning.items_for_difference(made, size, tests) for name, size in POINTS.items()
    }
    return {
        **compare.run_columns(a.run, "a"),
        **compare.run_columns(b.run, "b"),
        "asked": asked,
        "n": made.n,
        "questions": len(set(cluster.tolist())),
        "difference": made.value,
        "low": made.low,
        "high": made.high,
        "shows": shows,
        **{name: planning.items_to_ask(n, made.n, asked) for name, n in needed.items()},
        "reason": made.reason or (paired.TOO_FEW if shows is None else None),
    }


def tabulate_samples(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """The table `planning_samples`: for each run with repeats, and each number of samples an item,
    the error items with which detection is known to 5 points on either side.

    `between` and `within` are the variances of `planning.estimate_spread_of_samples` over the error
    items whose share can be one of all `samples`; `total` counts all error items, and `missing`
    those without a usable reply. With `k` samples an item, `items_5` must be asked
    (`planning.items_for_samples`, and `planning.items_to_ask` with the share that is missing now),
    which are `calls_5` samples in all. Several samples of an item tell less than as many items, so
    `calls_5` grows with `k`, but `items_5` falls: samples are worth their price where items are
    dearer than calls, or no more items are left. None with a reason. Votes are no repeats.
    """
    repeated = [run for run in runs if run.samples > 1 and not run.pinned_strategy().votes]
    return [row for one in arrays.load_arrays(repeated) for row in _sample_rows(one)]


def _sample_rows(found: RunArrays) -> Iterator[dict[str, Any]]:
    samples = found.run.samples
    hits = found.detected * samples
    asked = int((~found.invariant).sum())
    usable = int((~found.invariant & ~np.isnan(hits)).sum())
    # Leaves out shares of fewer samples, such as 1/2 of three.
    errors = found.only(~found.invariant & (np.abs(hits - np.round(hits)) < 1e-6))
    sums = rates.sum_items(errors.detected, errors.cluster)
    spread = None
    if sums.m > 1:
        spread = planning.estimate_spread_of_samples(errors.detected, samples)
    for k in sorted({*SAMPLES, samples}):
        items, reason = None, ONE_QUESTION
        if spread is not None:
            needed = planning.items_for_samples(sums, spread[1], samples, k, WIDTHS["items_5"])
            items = planning.items_to_ask(needed, usable, asked)
            reason = "nothing varies"
        yield {
            **counted.run_columns(found.run),
            "samples": samples,
            "total": asked,
            "missing": asked - usable,
            "parsed": sums.n,
            "questions": sums.m,
            "between": spread[0] if spread else None,
            "within": spread[1] if spread else None,
            "k": k,
            "items_5": items,
            "calls_5": None if items is None else items * k,
            "reason": None if items is not None else reason,
        }


def tabulate_start(project: Project) -> list[dict[str, Any]]:
    """The table `planning_start`: what intervals and differences would need if the first runs were
    as supposed, for the questions of this project.

    `per_question` is the number of items of the question of a random item, over all items that are
    no duplicates and no control or qualification items; `rate` and `correlation` (of the items of a
    question) are supposed. `items_10`, `items_5` and `items_2_5` are as in `planning_rates`;
    `differ_20`, `differ_10` and `differ_5` are the items with which a difference of so many points
    is found with 80 % power (`planning.items_for_two_rates`), if one run has this rate, the rate of
    the other is so many points nearer to one half (lower, if this rate is one half), and both err
    independently of each other. `present` is the number of items there are. No row without items.
    """
    clusters = Item.objects.in_project(project).originals().of_tests().values("cluster")
    sizes = [row["n"] for row in clusters.annotate(n=Count("pk")).order_by()]
    if not sizes:
        return []
    per_question = sum(n * n for n in sizes) / sum(sizes)
    return [
        {
            "rate": rate,
            "correlation": correlation,
            "present": sum(sizes),
            "questions": len(sizes),
            "per_question": per_question,
            "design_effect": 1 + (per_question - 1) * correlation,
            **_suppose(rate, per_question, correlation),
        }
        for rate in SUPPOSED_RATES
        for correlation in (SUPPOSED_CORRELATIONS if per_question > 1 else (0.0,))
    ]


def _suppose(rate: float, per_question: float, correlation: float) -> dict[str, int | None]:
    sums = planning.suppose_clusters(rate, per_question, correlation)
    found = {name: planning.items_for_width(sums, 2 * half) for name, half in WIDTHS.items()}
    return found | {
        name: planning.items_for_two_rates(
            rate, _suppose_other(rate, points), per_question, correlation
        )
        for name, points in SUPPOSED_POINTS.items()
    }


def _suppose_other(rate: float, points: float) -> float:
    """The rate of a second run that differs by so many points: on the side of one half, where more
    items are needed."""
    return rate + points if rate < 0.5 else rate - points


def _needed(name: str, title: str, unit: str = "items in all") -> columns.Custom:
    """A number of items to ask, with a remark if as many were asked already."""

    def cell(row: Row, of: columns.Leading) -> Cell:
        value = row[name]
        if value is None:
            return Cell(reason=row["reason"] or "no number is enough")
        there = next(row[one] for one in ("asked", "total", "present") if one in row)
        price = row.get("cost_per_item")
        cost = f"cost {amounts.format_estimate(price * value)}" if price else ""
        return Cell(written.number(value), value, note="reached" if value <= there else cost)

    return columns.Custom(name, title, make=cell, unit=unit)


def _planned_cell(row: Row, of: columns.Leading) -> Cell:
    """The rate that the numbers of items are for, and where it comes from if it was not found."""
    value = row["planned_rate"]
    if value in (None, row["rate"]):
        return cells.percent_cell(value)
    is_end = value in (row["low"], row["high"])
    note = "end of the interval" if is_end else "in the interval"
    return Cell(written.share(value), value, note=note)


def _asked_note(row: Row) -> str:
    return f"of {written.number(row['asked'])} asked" if row["n"] < row["asked"] else ""


def _kind(asked: PageQuery, row: Row) -> str:
    return KINDS[row["kind"]]


RATES = Table(
    "planning_rates",
    (
        columns.RunNumber("run", "Run"),
        *columns.plain("endpoint", "strategy"),
        columns.Titled("kind", "Items", title_of=_kind),
        columns.Column("total"),
        columns.Share(
            "missing",
            "Missing",
            columns.items(items=lambda row: row["kind"], result="missing"),
            part_of="total",
        ),
        columns.Column("parsed"),
        columns.Count("questions", "Questions"),
        columns.Rate(
            "rate", "Rate now", columns.items(items=lambda row: row["kind"], result="detected")
        ),
        *columns.NAMED_RATES,
        *columns.plain("low", "high"),
        columns.Number("design_effect", "Design effect"),
        columns.Custom("planned_rate", "Planned with", make=_planned_cell),
        _needed("items_10", "For ±10 points"),
        _needed("items_5", "For ±5 points"),
        _needed("items_2_5", "For ±2.5 points"),
        cost.money_column(
            "cost_5", "Cost of ±5 points", reason="cost_reason", total="cost_per_item"
        ),
        *columns.plain("cost_per_item", "cost_reason", "reason", "currency"),
    ),
    lambda project, runs, by: tabulate_rates(runs),
    settings=lambda project, runs: [settings.CURRENCY],
    of_people=False,
    about="A row per run for its error items and one for its score-invariant items: how many "
    "items would narrow the interval of the rate to 10, 5 or 2.5 points to either side, "
    "and what they would cost.",
    meanings={
        "kind": "`errors` or `invariant` (score-invariant items)",
        "total": "number of items, missing ones included",
        "questions": "number of source questions of the parsed items",
        "rate": "detection rate of error items, or false-alarm rate of score-invariant items",
        "detection_rate": "the same as `rate`",
        "undetected_rate": "1 minus `rate`",
        "design_effect": "how many times as many items are needed as if each were of another "
        "question",
        "planned_rate": "rate that the numbers below assume: `rate`, or another one in its "
        "interval if too few items are known",
        "items_10": "number of items to ask, those already asked included, for an interval of 10 "
        "points to either side",
        "items_5": "the same for 5 points",
        "items_2_5": "the same for 2.5 points",
        "cost_5": "cost of the items for 5 points",
        "cost_per_item": "cost of the run divided by its items with an outcome",
        "cost_reason": "why the cost is unknown",
    },
)
DIFFERENCES = Table(
    "planning_differences",
    (
        columns.RunNumber("run_a", "Run a"),
        *columns.plain("endpoint_a", "strategy_a"),
        columns.RunNumber("run_b", "Run b"),
        *columns.plain("endpoint_b", "strategy_b"),
        columns.Column("asked"),
        columns.Count("n", "In both", note=_asked_note),
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
    about="A row per pair of runs: how many error items would show a difference of 20, 10 or "
    "5 points.",
    meanings={
        "asked": "number of error items that both runs were asked",
        "n": "number of error items with a usable outcome in both runs",
        "questions": "number of source questions of the `n` items",
        "difference": "detection rate of run a minus that of run b over the `n` items",
        "shows": "smallest difference that these items find with 80 % power, after the adjustment "
        "for all pairs",
        "items_20": "number of items to ask both runs, those already asked included, to find a "
        "difference of 20 points with 80 % power after this adjustment",
        "items_10": "the same for 10 points",
        "items_5": "the same for 5 points",
    },
)


REPEATED = Table(
    "planning_samples",
    (
        columns.RunNumber("run", "Run"),
        *columns.plain("endpoint", "strategy"),
        columns.Count("samples", "Samples now"),
        *columns.plain("total", "missing"),
        columns.Count("parsed", "Error items"),
        columns.Count("questions", "Questions"),
        *columns.plain("between", "within"),
        columns.Count("k", "Samples planned", unit="of each item"),
        _needed("items_5", "Items for ±5 points"),
        columns.MeanCount("calls_5", "Total samples"),
        columns.Column("reason"),
    ),
    lambda project, runs, by: tabulate_samples(runs),
    of_people=False,
    about="A row per run with repeats and number of samples per item: how many error items "
    "would give detection to 5 points on either side.",
    meanings={
        "samples": "number of samples per item in the run",
        "total": "number of error items, missing ones included",
        "parsed": "number of error items with a usable outcome whose share of detections can be "
        "that of all samples",
        "questions": "number of source questions of these items",
        "between": "variance of the share of detections between items",
        "within": "variance of one sample within an item",
        "k": "number of samples per item that the row plans with",
        "items_5": "number of error items to ask, those already asked included, with which "
        "detection is known to 5 points on either side",
        "calls_5": "`items_5` times `k`",
    },
)
START = Table(
    "planning_start",
    (
        columns.Text("rate", "Assumed rate", write=lambda row: f"{100 * row['rate']:.0f} %"),
        columns.Number("correlation", "Correlation", unit="in a question"),
        *columns.plain("present", "questions", "per_question"),
        columns.Number("design_effect", "Design effect"),
        _needed("items_10", "±10 points", "items, one rate"),
        _needed("items_5", "±5 points", "items, one rate"),
        _needed("items_2_5", "±2.5 points", "items, one rate"),
        _needed("differ_20", "20 points", "items, two runs"),
        _needed("differ_10", "10 points", "items, two runs"),
        _needed("differ_5", "5 points", "items, two runs"),
    ),
    lambda project, runs, by: tabulate_start(project),
    of_items=True,
    about="A row per assumed rate and correlation within a question: how many items intervals "
    "and differences would need before there is any run.",
    meanings={
        "rate": "rate that the row assumes for the first runs",
        "correlation": "correlation of the outcomes of one question that the row assumes",
        "present": "number of items in the project, without duplicates, qualification and control "
        "items",
        "per_question": "number of items that share the question of a random item, itself included",
        "design_effect": "how many times as many items are needed as if each were of another "
        "question",
        "items_10": "number of items for an interval of 10 points to either side of the rate of "
        "one run",
        "items_5": "the same for 5 points",
        "items_2_5": "the same for 2.5 points",
        "differ_20": "number of items with which a run with this rate and one that is 20 points "
        "nearer to one half are told apart with 80 % power",
        "differ_10": "the same for 10 points",
        "differ_5": "the same for 5 points",
    },
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


def _draw_samples(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    bars = [
        (
            f"{cells.run_name(asked.runs_by_number[row['run']], ': ')}: {row['k']} of each item",
            row["calls_5"],
            row["total"],
        )
        for row in rows
    ]
    caption = "Total samples for ±5 points, by the number of samples of each item."
    return _draw_needed(bars, "Total samples", caption)


def _draw_start(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    bars = [
        (
            f"a rate of {100 * row['rate']:.0f} %: correlation {row['correlation']:.1f}",
            row["items_5"],
            row["present"],
        )
        for row in rows
    ]
    return _draw_needed(bars, "Items", "Items for a rate to ±5 points, by what is assumed.")


def _draw_needed(
    found: Sequence[tuple[str, int | None, int]], title: str, caption: str
) -> ChartSpec | None:
    """A bar for each number that is needed, beside the items there are now."""
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import bars

    drawn = [
        bars.Bar(name, value, written.number(value), there)
        for name, value, there in found[: chart_parts.MOST_BARS]
        if value is not None
    ]
    if not drawn:
        return None
    spec = bars.draw_bars(drawn, title=title, counted="Items now")
    return ChartSpec(spec, caption + chart_parts.cut_note(len(found)))


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
        figures=("rate", "needed"),
        build=lines.Lines(
            RATES,
            "Items for an interval",
            (
                *("run", "kind", "rate", "missing", "questions", "design_effect"),
                *("planned_rate", "items_10", "items_5", "items_2_5", "cost_5"),
            ),
            f"{_ASSUMED}Numbers count items to ask, including those asked already, and allow for "
            "as large a share of missing replies as now. The design effect says how "
            "many times as many items are needed as if each were of a question of its own. A rate "
            f"with fewer than {planning.FEWEST} hits or misses, each divided by the design effect, "
            "is too uncertain to plan with: the rate in its interval that is nearest to 50 %, for "
            "which most items are needed, takes its place. Cost: at what the run has cost per item "
            "that it asked.",
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
        figures=("difference", "shows", "needed"),
        build=lines.Lines(
            DIFFERENCES,
            "Items for a difference",
            (
                *("run_a", "run_b", "n", "difference", "shows"),
                *("items_20", "items_10", "items_5"),
            ),
            f"{_ASSUMED}Error items to ask both runs, including those that were asked, with which "
            "a difference of detection of that size is found with 80 % power, after Holm’s "
            "correction for all pairs shown. They allow for as large a share of items without a "
            "usable reply of both runs as now.",
            compare.draw_differences,
            _select_pairs,
            compare.Pairs,
        ),
        studies={},
        empty="A difference needs two or more runs that judge perturbed answers of the same items.",
        table_first=True,
    ),
    ResultView(
        slug="samples",
        title="More samples or more items",
        asks=(TableQuery(REPEATED, ""),),
        figures=("needed",),
        build=lines.Lines(
            REPEATED,
            "Samples of each item, and items",
            ("run", "parsed", "questions", "k", "items_5", "calls_5"),
            "Items to ask with which detection is known to 5 points on either side, if as large a "
            "share of replies is missing as now. Samples of the same "
            "item tell less than as many other items, so more samples of each need more calls in "
            "all, but fewer items: worth it if items are expensive, or if none are left. Estimated "
            "from how far the samples of a run agree. Intervals on the other pages count an item "
            "as one observation at most, so they do not get narrower with more samples.",
            _draw_samples,
            leading=columns.Leading,
        ),
        studies={},
        empty="This needs a run with two or more samples of each call, counted as repeats.",
    ),
    ResultView(
        slug="start",
        title="Before the first run",
        asks=(TableQuery(START, ""),),
        figures=("needed",),
        build=lines.Lines(
            START,
            "Items needed under assumptions",
            (
                *("rate", "correlation", "design_effect", "items_10", "items_5", "items_2_5"),
                *("differ_20", "differ_10", "differ_5"),
            ),
            "Nothing is measured yet: a rate and a correlation within questions are assumed; the "
            "items of a question are those of this project. Two runs: items with which a "
            "difference of so many points is found with 80 % power, by the exact test that Compare "
            "uses, for two runs alone. One run has the assumed rate; the other is that much nearer "
            "to 50 %, where more items are needed (at 50 %: lower). How far the runs will err on "
            "the same items is not known either: both are assumed to err independently of each "
            "other. Runs that err on the same items need fewer. Every reply is assumed to be "
            "usable. Start with a run over a few "
            "items of each category: the other views then plan with what it found.",
            _draw_start,
            leading=columns.Leading,
        ),
        studies={},
        empty="The project has no items yet. Import items to plan with their questions.",
        of_runs=False,
    ),
)
