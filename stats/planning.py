"""How many items would settle a question, if they come in questions (clusters) of the same kind as
those that are there."""

from collections.abc import Callable
from math import ceil, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

from stats.paired import POWER, RateDifference
from stats.rates import ClusterSums, clustered_wilson, design_effect, repeat_clusters

# More than so many times as many items as there are is no advice.
MOST_TIMES = 10_000.0
# An observed rate with fewer hits or misses than this is too uncertain to plan with.
FEWEST = 10
# A number of items is found to one part in so many.
_PRECISION = 200


def find_times(is_enough: Callable[[float], bool], least: float = 1.0) -> float | None:
    """The smallest multiple of the present clusters, at least `least`, that is enough; None if
    10,000 times as many are not.

    `is_enough` must stay true once it is true. The result is at most half a per cent too large.
    """
    if is_enough(least):
        return least
    if not is_enough(MOST_TIMES):
        return None
    few, enough = least, MOST_TIMES
    while enough > few * (1 + 1 / _PRECISION):
        middle = sqrt(few * enough)
        few, enough = (few, middle) if is_enough(middle) else (middle, enough)
    return enough


def choose_rate(sums: ClusterSums, level: float = 0.95) -> float | None:
    """The rate to plan with: the observed one if it has at least ten hits and ten misses, each
    divided by the design effect; else the rate in the `clustered_wilson` interval for which most
    items are needed: one half if the interval contains it, or else the end that is nearer to it.

    A rate of 0 or 1, and any rate of few items, are known too little to be taken for the truth: 0
    of 4 may be 49 %. None with one cluster or none, which have no interval.
    """
    found = clustered_wilson(sums, level)
    if found.low is None or found.high is None:
        return None
    if min(sums.y, sums.n - sums.y) >= FEWEST * design_effect(sums):
        return found.value
    return min(max(0.5, found.low), found.high)


def suppose_rate(sums: ClusterSums, rate: float) -> ClusterSums:
    """The sums of the same clusters with another rate. Many of them (`rates.repeat_clusters`) have
    the design effect that is measured now.

    Raises ValueError for a rate outside (0, 1) or fewer than two clusters.
    """
    if not 0 < rate < 1 or sums.m < 2:
        raise ValueError(f"a rate of {rate} in {sums.m} clusters")
    effect = design_effect(sums) * sums.m / (sums.m - 1)
    return _spread_rate(sums.m, sums.n, sums.nn, rate, effect)


def suppose_clusters(rate: float, per_cluster: float, correlation: float) -> ClusterSums:
    """The sums of a thousand clusters of one size, with a supposed rate and intra-cluster
    correlation, to plan before there are results.

    Their design effect is 1 + (per_cluster - 1) correlation (Kish 1965). Raises ValueError for a
    rate outside (0, 1), fewer than one item a cluster, or a correlation outside 0 to 1.
    """
    if not (0 < rate < 1 and per_cluster >= 1 and 0 <= correlation <= 1):
        raise ValueError(f"{rate}, {per_cluster} items a cluster, correlation {correlation}")
    m = 1_000
    n, nn = round(m * per_cluster), round(m * per_cluster**2)
    return _spread_rate(m, n, nn, rate, 1 + (per_cluster - 1) * correlation)


def _spread_rate(m: int, n: int, nn: int, rate: float, effect: float) -> ClusterSums:
    """The sums of m clusters that all have this rate on average, with the design effect `effect`,
    that `rates.design_effect` gets back from the sum of squares."""
    yy = effect * (m - 1) / m * n * rate * (1 - rate) + nn * rate**2
    return ClusterSums(m, n, n * rate, nn, nn * rate, yy)


def estimate_spread_of_samples(shares: ArrayLike, samples: int) -> tuple[float, float]:
    """How much of the variance of an item's share of repeats lies between items, and how much
    within an item: the variances (between, within), such that the share of k samples varies by
    between + within / k over items.

    `shares` are the shares of `samples` samples each, 0 to 1. Within: the mean of s (1 - s)
    samples / (samples - 1), the unbiased variance of one sample; between: what remains of the
    variance of the shares, at least 0. Raises ValueError for fewer than two samples or items.
    """
    each = np.asarray(shares, dtype=float)
    if samples < 2 or each.size < 2:
        raise ValueError(f"{samples} samples of {each.size} items have no two variances")
    within = float((each * (1 - each)).mean()) * samples / (samples - 1)
    return max(0.0, float(each.var(ddof=1)) - within / samples), within


def items_for_samples(
    sums: ClusterSums, within: float, samples: int, k: int, half: float, level: float = 0.95
) -> int | None:
    """The items with k samples each for which a rate is known to `half` on either side.

    `sums` are those of shares of `samples` samples, `within` the variance of one sample within an
    item (`estimate_spread_of_samples`). v = m / (m - 1) sum (y_c - p n_c)^2 / n^2 is the linearised
    variance of the rate with the present samples; with k it is v + within (1 / k - 1 / samples) /
    n, since samples of an item err independently. Enough is where t v^0.5, for so many times as
    many clusters, is at most `half`; t is Student's quantile for the effective clusters minus 1.

    `rates.clustered_wilson` takes an item for one observation at most and stays wider where k > 1.
    None with one cluster, if nothing varies, or if no number is enough.
    """
    if sums.m < 2:
        return None
    p, n, m = sums.y / sums.n, sums.n, sums.m
    residual = sums.yy - 2 * p * sums.ny + p * p * sums.nn
    variance = m / (m - 1) * residual / n**2 + within * (1 / k - 1 / samples) / n
    if variance <= 0:
        return None
    clusters = n**2 / sums.nn

    def is_enough(times: float) -> bool:
        quantile = float(stdtrit(max(1.0, clusters * times - 1), (1 + level) / 2))
        return quantile * sqrt(variance / times) <= half

    return _count(n, find_times(is_enough, 2 / m))


def items_for_width(sums: ClusterSums, width: float, level: float = 0.95) -> int | None:
    """The items with which the `clustered_wilson` interval of a rate would be at most this wide
    (both sides together, a fraction of 1), if the rate stays as it is.

    May be fewer than there are. None with one cluster or none, or if no number is enough. Raises
    ValueError unless the width is between 0 and 1.
    """
    if not 0 < width < 1:
        raise ValueError(f"a width must be between 0 and 1, not {width}")
    if sums.m < 2:
        return None

    def is_enough(times: float) -> bool:
        found = clustered_wilson(repeat_clusters(sums, times), level)
        return found.low is not None and found.high is not None and found.high - found.low <= width

    return _count(sums.n, find_times(is_enough, 2 / sums.m))


def items_for_difference(
    found: RateDifference, difference: float, tests: int = 1, level: float = 0.95
) -> int | None:
    """The items with which a difference of this size would be found with 80 % power.

    From the difference of two runs as it is now: so many times as many clusters of the same kind
    are needed that `RateDifference.find_smallest` is at most `difference`. May be fewer items than
    there are. None without a standard error, or if no number is enough. Raises ValueError for a
    difference that is not above 0.
    """
    if difference <= 0:
        raise ValueError(f"a difference of {difference} needs no items")
    if found.standard_error is None:
        return None

    def is_enough(times: float) -> bool:
        smallest = found.find_smallest(tests, level, times)
        return smallest is not None and smallest <= difference

    return _count(found.n, find_times(is_enough, 2 / found.clusters))


def items_for_two_rates(
    rate: float,
    other: float,
    per_cluster: float = 1,
    correlation: float = 0,
    level: float = 0.95,
) -> int:
    """The items that two runs with these detection rates need for the exact test of their
    difference (`paired.test_difference`) to find it with 80 % power, before there are results.

    The overlap of the runs is assumed: at every item they detect independently of each other. Runs
    that miss the same items differ at fewer items, and need fewer. `per_cluster` is the number of
    items of the cluster of a random item, and `correlation` that of the results of one run within a
    cluster. With d = |rate - other|, an item's difference has the variance s = rate (1 - rate) +
    other (1 - other); over clusters v = (1 + (per_cluster - 1) correlation) s. Flipping the signs
    of whole clusters gives the sum over n items the variance n (v + per_cluster d^2), so n is the
    smallest number with n d - 1 >= n^0.5 (z of 1 - alpha / 2 (v + per_cluster d^2)^0.5 + z of 0.8
    v^0.5), where alpha is 1 - level. This is Miettinen's formula (1968) for pairs, but for the 1:
    the sums that an exact test can reach are two apart, so it loses one on average.

    With one item a cluster the exact McNemar test has 80 to 86 % power at this number, for rates of
    30 to 95 % and differences of 5 to 20 points; in simulations with four items a cluster, or 1 to
    8, and a correlation up to .3, the power was 79 to 93 %. Raises ValueError for equal rates, a
    rate outside 0 to 1, fewer than one item a cluster, a correlation outside 0 to 1 or a level
    outside (0, 1).
    """
    if not (0 <= rate <= 1 and 0 <= other <= 1 and rate != other and 0 < level < 1):
        raise ValueError(f"rates of {rate} and {other}, level {level}")
    if not (per_cluster >= 1 and 0 <= correlation <= 1):
        raise ValueError(f"{per_cluster} items a cluster, correlation {correlation}")
    d = abs(rate - other)
    effect = 1 + (per_cluster - 1) * correlation
    variance = effect * (rate * (1 - rate) + other * (1 - other))
    flipped = variance + per_cluster * d * d
    spread = float(ndtri((1 + level) / 2)) * sqrt(flipped) + float(ndtri(POWER)) * sqrt(variance)
    return ceil(((spread + sqrt(spread**2 + 4 * d)) / (2 * d)) ** 2 - 1e-9)


def items_to_ask(needed: int | None, usable: int, asked: int) -> int | None:
    """The items to ask for `needed` of them to have a usable reply, if as many replies are missing
    as now: needed / (usable / asked), rounded up.

    `usable` of the `asked` items have a usable reply now. None if no number is enough (`needed` is
    None), or if no reply is usable. Raises ValueError for more usable items than were asked.
    """
    if not 0 <= usable <= asked:
        raise ValueError(f"{usable} of {asked} items cannot have a usable reply")
    return None if needed is None or not usable else -(-needed * asked // usable)


def _count(items: float, times: float | None) -> int | None:
    return None if times is None else ceil(items * times - 1e-9)
