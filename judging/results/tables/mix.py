"""Which evaluator is best for another mix of categories? The table `category_rates`, and the view
of the page Choose an evaluator with weights of one's own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from judging.models import Run
from judging.results import arrays, cells, chart_parts, columns, counted, lines, progress
from judging.results.arrays import RunArrays
from judging.results.cells import Cell, Row
from judging.results.columns import Table
from judging.results.page_parts import (
    Choice,
    ChoiceGroup,
    PageQuery,
    ResultView,
    Rows,
    TableQuery,
    ViewContent,
)
from judging.results.tables import choose
from stats import mixes, sensitivity
from stats.estimates import Estimate
from stats.mixes import GroupRates

CATEGORY = "category"
# `weight-spelling` is the weight of that category in the URL.
WEIGHT_PREFIX = "weight-"
LARGEST_WEIGHT = 1e6


def tabulate(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """The table `category_rates`: the detection rate of each category of error items, one row for
    each run and pair of categories, a category with itself included.

    `n` of `total` items of the category are parsed, with the detection `rate`; `covariance` is that
    of the rates of the two categories, without the factor for few questions, and `overlap` how far
    they share questions, see `stats.mixes.estimate_groups`. From these rows follows the rate of any
    mix of categories, with its interval. `single` is true if every item of the run is of a question
    of its own.
    """
    return [row for found in _load(runs) for row in _rows(found)]


def _load(runs: Iterable[Run]) -> Iterator[RunArrays]:
    return progress.iterate(arrays.load_arrays(runs, (CATEGORY,)), "comparing categories")


def _rows(found: RunArrays) -> Iterator[dict[str, Any]]:
    errors = found.only(~found.invariant)
    categories = errors.fields[CATEGORY]
    totals = dict(zip(*np.unique(categories.astype(str), return_counts=True), strict=True))
    made = mixes.estimate_groups(errors.detected, categories, errors.cluster)
    for g, one in enumerate(made.groups):
        for h, other in enumerate(made.groups[: g + 1]):
            yield {
                **counted.run_columns(found.run),
                "category": one,
                "other": other,
                "total": int(totals[one]),
                "missing": int(totals[one]) - int(made.n[g]),
                "n": int(made.n[g]),
                "rate": float(made.rate[g]),
                "covariance": float(made.covariance[g, h]),
                "overlap": float(made.overlap[g, h]),
                "single": made.single,
            }


CATEGORY_RATES = Table(
    "category_rates",
    columns.plain(
        *("run", "endpoint", "strategy", "category", "other", "total", "missing", "n", "rate"),
        *("covariance", "overlap", "single"),
    ),
    lambda project, runs, by: tabulate(runs),
    of_people=False,
    about="A row per run and pair of error categories, a category with itself included: "
    "detection rate and covariance, from which the rate of any mix of categories "
    "follows.",
    meanings={
        "category": "first category of the pair",
        "other": "second category of the pair, which may be the same",
        "total": "number of error items of `category`, missing ones included",
        "missing": "number of error items of `category` without a usable outcome",
        "n": "number of error items of `category` with a usable outcome",
        "rate": "detection rate of `category`: share of the `n` items whose error was detected",
        "covariance": "covariance of the detection rates of both categories, over source "
        "questions, without a correction for few questions; if both are the same, the variance",
        "overlap": "sum over source questions of the question's shares of the items of both "
        "categories, multiplied; if both are the same, 1 divided by the effective number of "
        "questions",
        "single": "true if no two usable error items of the run share a source question",
    },
)


def offer_weights(asked: PageQuery) -> list[ChoiceGroup]:
    """A weight for each category whose change is an error."""
    titles = {
        f"{WEIGHT_PREFIX}{one.slug}": one.name
        for one in asked.categories
        if one.expected_effect != "none" and not one.retired
    }
    options = [
        Choice(name, title, number=asked.query.get(name, "")) for name, title in titles.items()
    ]
    title = "Your own mix: weight of each category"
    return [ChoiceGroup("weights", title, options, with_numbers=True)] if options else []


def read_weights(query: Mapping[str, str]) -> dict[str, float]:
    """The weights in a URL, by category; what is no number above 0 is left out."""
    found = {}
    for name, text in query.items():
        if name.startswith(WEIGHT_PREFIX):
            try:
                weight = float(text)
            except ValueError:
                continue
            if 0 < weight <= LARGEST_WEIGHT:
                found[name.removeprefix(WEIGHT_PREFIX)] = weight
    return found


def list_unusable(query: Mapping[str, str]) -> list[str]:
    """The weights in a URL that are not used, by category with their text."""
    used = read_weights(query)
    given = {
        name.removeprefix(WEIGHT_PREFIX): text
        for name, text in query.items()
        if name.startswith(WEIGHT_PREFIX) and text.strip() not in ("", "0")
    }
    return [f"{name} {text[:20]}" for name, text in given.items() if name not in used]


def build_mix(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per run, the highest J for the chosen mix first."""
    weights = read_weights(asked.query)
    by_run: dict[int, Rows] = {}
    for row in tables[1]:
        by_run.setdefault(row["run"], []).append(row)
    rows = [
        _weigh(row, _read(by_run[row["run"]]), weights) for row in tables[0] if row["run"] in by_run
    ]
    rows.sort(key=lambda row: (row["mix_j"] is None, -(row["mix_j"] or 0), row["run"]))
    shown = _LINES(asked, [rows])
    names = asked.categories.category_names()
    total = sum(weights.values())
    said = ", ".join(
        f"{names.get(one, one)} {100 * weight / total:.0f} %" for one, weight in weights.items()
    )
    mix = f"Mix: {said}." if said else "No weights are given, so the mix is that of the data set."
    unusable = "; ".join(list_unusable(asked.query))
    under = f"Not used: {unusable}. A weight is a number above 0." if unusable else ""
    return replace(shown, headline=mix, under=under)


def _read(rows: Rows) -> GroupRates:
    """The rates of one run, from its rows."""
    names = [row["category"] for row in rows if row["category"] == row["other"]]
    place = {name: number for number, name in enumerate(names)}
    own = [row for row in rows if row["category"] == row["other"]]
    covariance, overlap = np.zeros((2, len(names), len(names)))
    for row in rows:
        g, h = place[row["category"]], place[row["other"]]
        covariance[g, h] = covariance[h, g] = row["covariance"]
        overlap[g, h] = overlap[h, g] = row["overlap"]
    n, rate = np.array([row["n"] for row in own]), np.array([row["rate"] for row in own])
    return GroupRates(names, n, rate, covariance, overlap, rows[0]["single"])


def _weigh(row: Row, found: GroupRates, weights: Mapping[str, float]) -> dict[str, Any]:
    """The row of a run with the detection and J of a mix. Categories without items are named."""
    as_there = dict(zip(found.groups, found.n.tolist(), strict=True))
    detection = mixes.weigh(found, weights or as_there)
    alarm = Estimate(
        row["false_alarm"],
        row["false_alarm_low"],
        row["false_alarm_high"],
        row["invariant"],
        row["false_alarm_reason"] or "",
    )
    j = sensitivity.youden_j(detection, alarm)
    return {
        **row,
        "mix_n": detection.n,
        **counted.figure_columns("mix", detection),
        **counted.figure_columns("mix_j", j),
        "lacking": [one for one in weights if one not in as_there],
    }


def _mix_cell(row: Row, of: columns.Leading) -> Cell:
    names = of.asked.categories.category_names()
    lacking = ", ".join(names.get(one, one) for one in row["lacking"])
    return replace(
        cells.percent_figure_cell(row, "mix"),
        n=row["mix_n"],
        note=f"without {lacking}: no usable reply" if lacking else "",
    )


_LINES = lines.Lines(
    choose.EVALUATORS,
    "Evaluators for a mix of categories",
    (
        columns.Figure("mix_j", "J of the mix"),
        columns.Custom("mix", "Detection of the mix", make=_mix_cell),
        *("j", "detection", "false_alarm", "cost_per_1000"),
    ),
    "Detection of the mix: the mean of the rates of the categories, with your weights; a category "
    "left empty does not count. Its interval takes the items of a question together, and is wide "
    "where a heavy category has few items. J of the mix: this minus false alarms, which have no "
    "mix. The other columns are over all items. The first view tests differences between "
    "runs, over all items.",
    lambda asked, rows: chart_parts.draw_dots(
        [
            (
                "",
                cells.run_name(asked.runs_by_number[row["run"]], ": "),
                Estimate(row["mix"], row["mix_low"], row["mix_high"], row["mix_n"]),
            )
            for row in rows
        ],
        title="Detection of the mix",
        caption="Detection rates for the chosen mix of categories, with 95 % intervals.",
    ),
)
VIEWS = (
    ResultView(
        slug="mix",
        title="For your own mix",
        asks=(TableQuery(choose.EVALUATORS, ""), TableQuery(CATEGORY_RATES, "")),
        figures=("rate", "j", "mix"),
        build=build_mix,
        studies={},
        choices=offer_weights,
        empty=choose.EMPTY,
    ),
)
