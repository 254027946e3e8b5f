"""Detection and false alarms: does an evaluator tell errors from score-invariant changes?

The detection rate is taken among error items, the false-alarm rate among score-invariant items,
where nothing should be flagged. `n` counts parsed items of both kinds. There is no value if a run
lacks parsed items of one kind.
"""

from dataclasses import replace
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import ndtri

from stats import bootstrap
from stats.bootstrap import Figure
from stats.estimates import Estimate

NO_ITEMS = "no parsed item"
NO_INVARIANT = "no score-invariant item"
NO_ERROR = "no error item"
ALIKE = "all items of one kind alike"

Floats = NDArray[np.float64]


def youden_j(detection: Estimate, alarm: Estimate, correlation: float = 0.0) -> Estimate:
    """J = detection - false alarm, -1 to 1 (Youden 1950), from two rates of `rates.estimate_rate`.

    0 is no better than a coin, or always or never alarming. The interval is Newcombe's (1998,
    method 10; the method of variance estimates recovery of Zou and Donner 2008): the distance of
    each end from J is the root of the sum of the squared distances of the corresponding ends of the
    two rates, less 2 x `correlation` x the product of these distances. At 0, the rates are treated
    as independent, so the interval is wide if a question has items of both kinds. There is no
    interval if one of the rates has none.
    """
    n = detection.n + alarm.n
    if detection.value is None or alarm.value is None:
        lacking = NO_INVARIANT if detection.n else NO_ERROR
        return Estimate(None, None, None, n, lacking if n else NO_ITEMS)
    value = detection.value - alarm.value
    if detection.low is None or detection.high is None or alarm.low is None or alarm.high is None:
        return Estimate(value, None, None, n, detection.reason or alarm.reason)
    below = _distance(detection.value - detection.low, alarm.high - alarm.value, correlation)
    above = _distance(detection.high - detection.value, alarm.value - alarm.low, correlation)
    return Estimate(value, value - below, value + above, n)


def _distance(one: float, other: float, correlation: float) -> float:
    return sqrt(max(0.0, one**2 + other**2 - 2 * correlation * one * other))


def d_prime(detected: ArrayLike, invariant: ArrayLike) -> Figure:
    """d' = z((hits + w / 2) / (errors + w)) - z((alarms + v / 2) / (invariant + v)), in standard
    deviations, with w = 2 errors / n and v = 2 invariant / n for n items of both kinds.

    Both arrays have one entry per item: `detected` is 0, 1 or the share of repeats, nan if missing;
    `invariant` says whether the item is score-invariant. z is the normal quantile. The added counts
    are the log-linear correction (Hautus 1995), which keeps d' finite for rates of 0 and 1. They
    are 0.5 and 1 for equal numbers of both kinds and else in proportion to these numbers: a rate r
    becomes (n r + 1) / (n + 2) on either side, so d' is 0 wherever both rates are equal, as for a
    run that always or never alarms. (0.5 and 1 on both sides would make it 0.83 for 200 errors and
    20 score-invariant items that all alarm.)

    Not for pairs, where the choice between two answers follows another model (Macmillan and
    Creelman 2005, chapter 7).
    """
    hits, calm = np.asarray(detected, dtype=float), np.asarray(invariant, dtype=bool)
    used = ~np.isnan(hits)
    errors, alarms = used & ~calm, used & calm
    hit = np.where(used, hits, 0.0)
    terms = np.column_stack([hit * errors, errors, hit * alarms, alarms])

    def of(sums: Floats) -> Floats:
        there = (sums[:, 1] > 0) & (sums[:, 3] > 0)
        cases = np.where(there[:, None], sums[:, [1, 3]], 1.0)
        added = 2 * cases / cases.sum(axis=1, keepdims=True)
        sides = ndtri((sums[:, [0, 2]] + added / 2) / (cases + added))
        return np.where(there, sides[:, 0] - sides[:, 1], np.nan)

    undefined = NO_ERROR if alarms.any() else NO_INVARIANT
    return Figure(csr_array(terms), of, used, NO_ITEMS, undefined, parts=(errors, alarms))


def estimate_d_prime(
    detected: ArrayLike, invariant: ArrayLike, clusters: ArrayLike, rng: np.random.Generator
) -> Estimate:
    """d' with its interval from the bootstrap, which needs its minimum number of clusters for each
    kind of item.

    There is no interval if all items of one kind are alike, such as no false alarm at all: no
    sample then shows how much that rate could vary. (Simulated for 200 errors and 20
    score-invariant items, both rates 0.95: with such intervals, 65 % contain the true d'.)
    """
    figure = d_prime(detected, invariant)
    found, values = figure.point(), np.asarray(detected, dtype=float)
    if found.value is not None and any(np.ptp(values[part]) == 0 for part in figure.parts):
        return replace(found, reason=ALIKE)
    return bootstrap.estimate(figure, clusters, rng)
