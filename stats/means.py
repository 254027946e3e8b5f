"""Means of independent values."""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

from scipy.special import stdtrit

from stats.estimates import Estimate


def student(values: Sequence[float], level: float = 0.95) -> Estimate:
    """The mean with Student's two-sided interval, in the unit of the values.

    mean +- t s / sqrt(n), with t the quantile of n - 1 degrees of freedom (Student 1908). Without
    values there is no mean, with one no interval. `n` counts values.
    """
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, not at {level}")
    if not values:
        return Estimate(None, None, None, 0, "no values")
    mean, n = fmean(values), len(values)
    if n == 1:
        return Estimate(mean, None, None, 1, "one value")
    width = float(stdtrit(n - 1, (1 + level) / 2)) * stdev(values) / sqrt(n)
    return Estimate(mean, mean - width, mean + width, n)
