"""Does a run meet the minimums that somebody set? The verdict of the command `gate`.

A minimum counts as met only if the whole interval meets it, and as missed if the figure itself does
not. In between, there are too few items to say.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from judging.models import Run
from judging.results import arrays
from stats import planning, rates, sensitivity
from stats.estimates import Estimate
from stats.rates import ClusterSums, clustered_wilson


class Verdict(IntEnum):
    """The exit code of the command; `BROKEN` if there is no verdict."""

    MET = 0
    NOT_MET = 1
    TOO_FEW = 2
    BROKEN = 3


class RunSums(NamedTuple):
    """The sums over clusters of a run's detected error items, detected score-invariant items and
    missing items."""

    errors: ClusterSums
    invariant: ClusterSums
    missing: ClusterSums

    def repeat(self, times: float) -> "RunSums":
        """The sums of so many times as many clusters of the same kind."""
        return RunSums(*(rates.repeat_clusters(one, times) for one in self))


@dataclass(frozen=True)
class Criterion:
    """A figure that can have a limit, and its name in options and in words. `at_most`: the limit is
    a maximum."""

    name: str
    title: str
    estimate: Callable[[RunSums], Estimate]
    at_most: bool = False


def _estimate_j(sums: RunSums) -> Estimate:
    return sensitivity.youden_j(clustered_wilson(sums.errors), clustered_wilson(sums.invariant))


CRITERIA = (
    Criterion("min-j", "J", _estimate_j),
    Criterion("min-detection", "detection", lambda sums: clustered_wilson(sums.errors)),
    Criterion(
        "max-false-alarms",
        "false alarms",
        lambda sums: clustered_wilson(sums.invariant),
        at_most=True,
    ),
    Criterion("max-missing", "missing", lambda sums: clustered_wilson(sums.missing), at_most=True),
)


@dataclass(frozen=True)
class Finding:
    """A figure, its limit, and the verdict. `would_do` is the number of items with which the limit
    would be met if the rates stayed as they are; None if it is met or missed, or if no number is
    enough. `errors` and `invariant` count the items of either kind with a usable reply, `missing`
    those without one."""

    criterion: Criterion
    limit: float
    estimate: Estimate
    verdict: Verdict
    errors: int
    invariant: int
    missing: int
    would_do: int | None = None


def judge(run: Run, limits: Iterable[tuple[Criterion, float]]) -> list[Finding]:
    """Compare a run's figures over all items with these limits."""
    sums = _sum_run(run)
    return [_judge(sums, criterion, limit) for criterion, limit in limits]


def worst(findings: Iterable[Finding]) -> Verdict:
    """The verdict on the run: missed if one limit is missed, met if all are met."""
    found = {one.verdict for one in findings}
    return next(one for one in (Verdict.NOT_MET, Verdict.TOO_FEW, Verdict.MET) if one in found)


def _sum_run(run: Run) -> RunSums:
    found = next(iter(arrays.load_arrays([run])), None)
    if found is None:
        return RunSums(*(rates.sum_items([], []) for _ in RunSums._fields))
    errors, calm = (found.only(side) for side in (~found.invariant, found.invariant))
    return RunSums(
        rates.sum_items(errors.detected, errors.cluster),
        rates.sum_items(calm.detected, calm.cluster),
        rates.sum_items(np.isnan(found.detected).astype(float), found.cluster),
    )


def _judge(sums: RunSums, criterion: Criterion, limit: float) -> Finding:
    estimate = criterion.estimate(sums)
    verdict = _compare(criterion, estimate, limit)
    would_do = None
    if verdict is Verdict.TOO_FEW and estimate.value is not None:
        times = _find_times(sums, criterion, limit)
        would_do = None if times is None else int(np.ceil(times * estimate.n))
    return Finding(
        criterion,
        limit,
        estimate,
        verdict,
        errors=sums.errors.n,
        invariant=sums.invariant.n,
        missing=round(sums.missing.y),
        would_do=would_do,
    )


def _compare(criterion: Criterion, estimate: Estimate, limit: float) -> Verdict:
    if estimate.value is None:
        return Verdict.TOO_FEW
    # A maximum is a minimum with all signs turned.
    sign = -1 if criterion.at_most else 1
    worst_end = estimate.high if criterion.at_most else estimate.low
    if sign * estimate.value < sign * limit:
        return Verdict.NOT_MET
    if worst_end is None or sign * worst_end < sign * limit:
        return Verdict.TOO_FEW
    return Verdict.MET


def _find_times(sums: RunSums, criterion: Criterion, limit: float) -> float | None:
    """How many times as many clusters would meet the limit; None if no number does."""
    return planning.find_times(
        lambda times: (
            _compare(criterion, criterion.estimate(sums.repeat(times)), limit) is Verdict.MET
        )
    )
