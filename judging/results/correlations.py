"""Alignment of an evaluator with people: correlations, errors and means (studies 002 and 003);
pooled, by group, and averaged over groups."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from annotation.models import Project
from judging.models import Run
from judging.results import arrays, counted, paired_scores
from judging.results.metric_scales import ScoredMetric
from judging.results.paired_scores import PairedScores
from stats import bootstrap, closeness, correlation, groups
from stats.bootstrap import Figure
from stats.estimates import Estimate

Measure = Callable[[Any, Any], Figure]

CORRELATIONS: dict[str, Measure] = {
    "rho": correlation.spearman,
    "pearson": correlation.pearson,
    "tau": correlation.kendall,
}
RMSE = "rmse"
ERRORS: dict[str, Measure] = {
    RMSE: closeness.rmse,
    "mae": closeness.mae,
    "bias": closeness.bias,
    "accuracy002": closeness.accuracy_002,
}
MEANS = ("mean_people", "mean_evaluator")
# The distance between the two means (study 003, table 1, last row).
DISTANCE = "distance"
WITH_INTERVAL = (*CORRELATIONS, *ERRORS, *MEANS)
NOT_ASKED_REASON = "people are not asked for such a number"
NO_SCALE_REASON = "the evaluator's numbers have no scale"
OTHER_SCALE_REASON = "people and evaluator have different scales"

_INTERVALS = tuple(
    f"{name}{end}" for name in WITH_INTERVAL for end in ("", "_low", "_high", "_reason")
)
COLUMNS = ("off_scale", "n", *_INTERVALS, "rmse_lowest", "rmse_highest")
COUNT_COLUMNS = ("total", "missing", "metric")
GROUP_COLUMNS = (
    "metric", "off_scale", "figure", "pooled", "mean", "sd", "groups", "undefined", "reason",
)  # fmt: skip


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


def compute_points(sides: PairedScores) -> dict[str, Estimate]:
    """Compute all figures over some items, without intervals."""
    found = {name: _point_estimate(sides, name) for name in WITH_INTERVAL}
    people, evaluator = (found[name] for name in MEANS)
    apart, reason = None, people.reason or evaluator.reason
    if people.value is not None and evaluator.value is not None:
        apart = abs(people.value - evaluator.value)
    return {**found, DISTANCE: Estimate(apart, None, None, people.n, reason)}


def split_scores(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[tuple[dict[str, Any], PairedScores]]:
    """Yield the items of each run, metric, treatment of off-scale numbers and group, with the first
    columns of their rows."""
    for one in paired_scores.load_paired_scores(project, runs, by):
        for way, sides in one.ways():
            for group, part in sides.by_group():
                named = dict(zip(by, group, strict=True))
                yield {**_leading_columns(part), **named, "off_scale": way}, part


def _leading_columns(sides: PairedScores) -> dict[str, Any]:
    scored = ~np.isnan(sides.people)
    return {
        **counted.run_columns(sides.run),
        "total": int(scored.sum()),
        "missing": int((scored & np.isnan(sides.evaluator)).sum()),
        "metric": sides.metric.name,
    }


def build_figure(sides: PairedScores, name: str) -> Figure | str:
    """Build a figure over some items for `bootstrap.estimate`, or return the reason why the two
    scales do not allow it."""
    metric = sides.metric
    if name in CORRELATIONS:
        return CORRELATIONS[name](sides.people, sides.evaluator)
    if name in ERRORS:
        lacking = _why_incomparable(metric)
        return lacking or ERRORS[name](sides.people, sides.evaluator)
    of_people = name == MEANS[0]
    scale, given = (
        (metric.people, sides.people) if of_people else (metric.evaluator, sides.evaluator)
    )
    if scale is None:
        return NOT_ASKED_REASON if of_people else NO_SCALE_REASON
    return closeness.mean_scaled(np.where(sides.both, given, np.nan), scale.low, scale.high)


def _why_incomparable(metric: ScoredMetric) -> str:
    """The reason why the numbers of the two sides cannot be subtracted; "" if they can."""
    if metric.is_comparable:
        return ""
    if metric.people is None:
        return NOT_ASKED_REASON
    return NO_SCALE_REASON if metric.evaluator is None else OTHER_SCALE_REASON


def _figures(sides: PairedScores, which: list[Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"n": int(sides.both.sum())}
    for name, of in _interval_estimates(sides, which).items():
        row |= {name: of.value, f"{name}_low": of.low, f"{name}_high": of.high}
        row[f"{name}_reason"] = of.reason or None
    return row | _bounds(sides)


def _point_estimate(sides: PairedScores, name: str) -> Estimate:
    """Estimate a figure over some items, without its interval."""
    made = build_figure(sides, name)
    return _without_value(sides, made) if isinstance(made, str) else made.point()


def _without_value(sides: PairedScores, reason: str) -> Estimate:
    return Estimate(None, None, None, int(sides.both.sum()), reason)


def _interval_estimates(sides: PairedScores, which: list[Any]) -> dict[str, Estimate]:
    """Estimate all figures with their intervals, from the same draws."""
    made = {name: build_figure(sides, name) for name in WITH_INTERVAL}
    figures = {name: one for name, one in made.items() if not isinstance(one, str)}
    rng = arrays.make_generator("alignment", [sides.run], *which)
    drawn = bootstrap.estimates(list(figures.values()), sides.cluster, rng)
    found = dict(zip(figures, drawn, strict=True))
    return {
        name: _without_value(sides, one) if isinstance(one, str) else found[name]
        for name, one in made.items()
    }


def _bounds(sides: PairedScores) -> dict[str, float | None]:
    scale = sides.metric.evaluator
    if scale is None or not sides.metric.is_comparable:
        return {"rmse_lowest": None, "rmse_highest": None}
    found = closeness.rmse_bounds(sides.people, sides.evaluator, scale.low, scale.high, scale.step)
    return {"rmse_lowest": found.lowest, "rmse_highest": found.highest}
