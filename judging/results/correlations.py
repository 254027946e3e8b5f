"""Figures of an evaluator's numbers against people's: correlations, errors and means (studies 002
and 003). Several tables share them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from annotation.models import Project
from judging.models import Run
from judging.results import counted, paired_scores
from judging.results.metric_scales import ScoredMetric
from judging.results.paired_scores import PairedScores
from stats import closeness, correlation
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
}
ACCURACY_002 = "accuracy002"
MEANS = ("mean_people", "mean_evaluator")
# The distance between the two means (study 003, table 1, last row).
DISTANCE = "distance"
WITH_INTERVAL = (*CORRELATIONS, *ERRORS, ACCURACY_002, *MEANS)
NOT_ASKED_REASON = "people are not asked for such a number"
SEVERAL_SCALES_REASON = "people rated on several scales, since the task type was changed"
NO_SCALE_REASON = "the evaluator's numbers have no scale"
OTHER_SCALE_REASON = "people and evaluator have different scales"
NO_TOTAL_REASON = "there is no total, whose range this accuracy is relative to"


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
    if name == ACCURACY_002:
        if lacking := _why_incomparable(metric):
            return lacking
        if metric.total is None:
            return NO_TOTAL_REASON
        return closeness.accuracy_002(
            sides.people, sides.evaluator, metric.total.high - metric.total.low
        )
    of_people = name == MEANS[0]
    scale, given = (
        (metric.people, sides.people) if of_people else (metric.evaluator, sides.evaluator)
    )
    if scale is None:
        return _why_no_people(metric) if of_people else NO_SCALE_REASON
    return closeness.mean_scaled(np.where(sides.both, given, np.nan), scale.low, scale.high)


def _why_incomparable(metric: ScoredMetric) -> str:
    """The reason why the numbers of the two sides cannot be subtracted; "" if they can."""
    if metric.is_comparable:
        return ""
    if metric.people is None:
        return _why_no_people(metric)
    return NO_SCALE_REASON if metric.evaluator is None else OTHER_SCALE_REASON


def _why_no_people(metric: ScoredMetric) -> str:
    """The reason why people have no scale."""
    return SEVERAL_SCALES_REASON if metric.on_several_scales else NOT_ASKED_REASON


def _point_estimate(sides: PairedScores, name: str) -> Estimate:
    """Estimate a figure over some items, without its interval."""
    made = build_figure(sides, name)
    return without_value(sides, made) if isinstance(made, str) else made.point()


def without_value(sides: PairedScores, reason: str) -> Estimate:
    return Estimate(None, None, None, int(sides.both.sum()), reason)
