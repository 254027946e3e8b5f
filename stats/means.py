"""Means of independent values and of clustered values."""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import stdtrit

from stats.bootstrap import ENOUGH_CLUSTERS, FEWEST_CLUSTERS, ROUGH, Figure
from stats.estimates import Estimate
from stats.rates import ClusterSums, find_quantile

ALL_ALIKE = "all clusters have the same mean"


def student_mean(values: Sequence[float], level: float = 0.95) -> Estimate:
    """The mean with Student's two-sided interval, in the unit of the values.

    mean +- t s / sqrt(n), with t the quantile for n - 1 degrees of freedom (Student 1908). There
    is no mean without values and no interval with one value. `n` counts values.
    """
    if not 0 < level < 1:
        raise ValueError(f"a level must be between 0 and 1, not {level}")
    if not values:
        return Estimate(None, None, None, 0, "no values")
    mean, n = fmean(values), len(values)
    if n == 1:
        return Estimate(mean, None, None, 1, "one value")
    width = float(stdtrit(n - 1, (1 + level) / 2)) * stdev(values) / sqrt(n)
    return Estimate(mean, mean - width, mean + width, n)


def mean_of_sums(sums: ClusterSums, level: float = 0.95) -> Estimate:
    """The mean y / n of clustered values, in their unit, from sums over clusters.

    `sums.y` adds up the values of all items, which need not be hits. The variance is linearised, as
    of a ratio of cluster totals: v = m / (m - 1) sum (y_c - mean n_c)^2 / n^2. Interval: mean +- t
    v^0.5, with Student's quantile for the effective number of clusters minus 1, as in
    `rates.clustered_wilson`. There is no mean without items, and no interval with under 10 clusters
    or if all clusters have the same mean; `reason` says so, or that the interval is rough with
    under 20 clusters. `n` counts items.
    """
    if sums.n == 0:
        return Estimate(None, None, None, 0, "no values")
    mean, m = sums.y / sums.n, sums.m
    if m < FEWEST_CLUSTERS:
        return Estimate(mean, None, None, sums.n, f"under {FEWEST_CLUSTERS} clusters")
    residual = sums.yy - 2 * mean * sums.ny + mean * mean * sums.nn
    if residual <= 1e-9 * max(1.0, sums.yy):
        return Estimate(mean, None, None, sums.n, ALL_ALIKE)
    width = find_quantile(level, sums.n**2 / sums.nn) * sqrt(m / (m - 1) * residual) / sums.n
    reason = ROUGH if m < ENOUGH_CLUSTERS else ""
    return Estimate(mean, mean - width, mean + width, sums.n, reason)


def clustered_mean(values: ArrayLike) -> Figure:
    """The mean sum x / n of one value per item, in the unit of the values; missing values are nan.

    Items without a value are left out; `n` counts the others. Pass it to `bootstrap.estimate` for
    an interval that takes clusters into account.
    """
    x = np.asarray(values, dtype=float)
    there = ~np.isnan(x)
    terms = csr_array(np.column_stack([np.where(there, x, 0.0), there]))
    return Figure(terms, _ratio, there, "no values", "no values")


def _ratio(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean from each row of sums, nan where no item was drawn."""
    total, n = sums[:, 0], sums[:, 1]
    return np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0)


def clustered_sd(values: ArrayLike) -> Figure:
    """The standard deviation of one value per item, with n - 1 below; missing values are nan. It
    does not exist with under two values. Pass it to `bootstrap.estimate` for an interval."""
    x = np.asarray(values, dtype=float)
    there = ~np.isnan(x)
    # Centred, so that the difference of squares below loses no digits.
    apart = np.where(there, x - (x[there].mean() if there.any() else 0.0), 0.0)
    terms = csr_array(np.column_stack([apart, apart**2, there]))
    return Figure(terms, _sd, there, "no values", "one value")


def _sd(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    total, squares, n = sums[:, 0], sums[:, 1], sums[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.maximum(squares - total**2 / n, 0.0) / (n - 1)
    return np.where(n > 1, np.sqrt(variance), np.nan)
