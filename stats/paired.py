"""Two runs over the same items: how far their rates differ, and whether that could be chance.

An item's difference is the first run's value minus the second's: 1, 0 or -1, or anything between
for shares of repeats. Only items that both runs parsed have one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, stdtrit

from stats.estimates import PValue
from stats.rates import ClusterSums

# The normal quantiles of 97.5 % and of 80 % power, 1.960 + 0.842.
SHOWS = 2.80
EXACT_UP_TO = 12
DRAWS = 9_999
_AT_A_TIME = 4_000_000
# Sums of shares that are equal but for rounding count as equal.
_ROUNDING = 1e-9

NO_ITEMS = "no item that both parsed"
ONE_CLUSTER = "one cluster"
ALIKE = "all clusters differ alike"

Floats = NDArray[np.float64]
Ints = NDArray[np.int_]


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two rates, -1 to 1, with its interval and standard error.

    `shows` is the smallest difference that would show with 80 % power at 5 %. `n` counts items;
    `reason` says why what is None is not there.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    standard_error: float | None = None
    shows: float | None = None
    reason: str = ""


def difference(sums: ClusterSums, level: float = 0.95) -> Difference:
    """The mean difference d = y / n of items, with its two-sided interval.

    In `sums`, y_c is the sum of the differences of a cluster's items, so it may be below 0.
    Standard error: the square root of v = m / (m - 1) sum (y_c - d n_c)^2 / n^2, the linearised
    variance of a ratio of cluster totals; interval d +- t v^0.5 with Student's quantile of m - 1
    degrees of freedom, within -1 and 1. What would show is 2.80 standard errors. One cluster, or
    clusters that all differ alike, show no spread and leave no interval.
    """
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, not at {level}")
    m, n, y = sums.m, sums.n, sums.y
    if n == 0:
        return Difference(None, None, None, 0, reason=NO_ITEMS)
    value = y / n
    if m == 1:
        return Difference(value, None, None, n, reason=ONE_CLUSTER)
    # n^2 times the residual sum of squares, as in rates.design_effect
    residual = sums.yy * n * n - 2 * y * n * sums.ny + y * y * sums.nn
    if residual <= _ROUNDING * sums.yy * n * n:
        return Difference(value, None, None, n, reason=ALIKE)
    error = sqrt(m / (m - 1) * residual) / n / n
    width = float(stdtrit(m - 1, (1 + level) / 2)) * error
    ends = max(-1.0, value - width), min(1.0, value + width)
    return Difference(value, *ends, n, error, SHOWS * error)


def p_value(differences: ArrayLike, rng: np.random.Generator) -> PValue:
    """The two-sided p that two runs have the same rate, of the sum of differences of each cluster.

    Clusters flip their signs. Where none differs by other than one item, as with one item a
    cluster, that is the exact McNemar test, which is then used. `n` counts clusters that differ.
    """
    sums = np.asarray(differences, dtype=float)
    if not sums.size:
        return PValue(None, 0, NO_ITEMS)
    if np.isin(sums, (-1, 0, 1)).all():
        return mcnemar(int((sums == 1).sum()), int((sums == -1).sum()))
    return flip_signs(sums, rng)


def mcnemar(only_first: int, only_second: int) -> PValue:
    """The exact two-sided McNemar test (1947): twice the binomial tail of the rarer of two kinds
    of items that only one run has, at even chances, at most 1. `n` counts those items.

    Where no item differs p is 1. Raises ValueError for counts below 0.
    """
    if min(only_first, only_second) < 0:
        raise ValueError(f"{only_first} and {only_second} are not counts")
    n = only_first + only_second
    p = 1.0 if n == 0 else min(1.0, 2 * float(bdtr(min(only_first, only_second), n, 0.5)))
    return PValue(p, n)


def flip_signs(differences: ArrayLike, rng: np.random.Generator, draws: int = DRAWS) -> PValue:
    """The two-sided p that the sum of clusters' differences is 0, by flipping their signs.

    If the runs are alike, each cluster could as well have differed the other way (Fisher 1935,
    section 21). p is the share of sign patterns whose sum is as far from 0 as the one found: of
    all 2^k where k <= 12 clusters differ, else of `draws` drawn ones, the one found among them:
    (1 + as far) / (1 + draws). `n` is k. Where no cluster differs p is 1.
    """
    sums = np.asarray(differences, dtype=float)
    apart = np.abs(sums[sums != 0])
    k, found = apart.size, abs(float(sums.sum()))
    least = found - _ROUNDING * max(1.0, float(apart.sum()))
    if k <= EXACT_UP_TO:
        signs = 1 - 2 * ((np.arange(2**k)[:, None] >> np.arange(k)) & 1)
        return PValue(float((np.abs(signs @ apart) >= least).mean()), k)
    # Clusters that differ by as much are interchangeable.
    sizes, alike = np.unique(np.round(apart, 9), return_counts=True)
    as_far = sum(
        int((np.abs(flipped @ sizes) >= least).sum()) for flipped in _flips(alike, rng, draws)
    )
    return PValue((1 + as_far) / (1 + draws), k)


def _flips(alike: Ints, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
    """The sum of the signs of each kind of cluster, in blocks of draws x kinds."""
    block = max(1, _AT_A_TIME // len(alike))
    for start in range(0, draws, block):
        size = min(block, draws - start), len(alike)
        yield 2 * rng.binomial(alike, 0.5, size=size).astype(float) - alike
