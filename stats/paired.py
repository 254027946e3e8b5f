"""Compare two runs over the same items: difference of their rates and of J, interval and test.

An item's difference is the first run's value minus the second's: 1, 0 or -1, or a value in between
for shares of repeats. Only items that both runs parsed have a difference.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from heapq import heappop, heappush
from math import exp, gcd, lcm, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import bdtr, expit, gammaln, ndtri, stdtr, stdtrit

from stats import sensitivity
from stats.estimates import Estimate, PValue

# The power with which the smallest difference is found.
POWER = 0.8
# If the grid of possible sums has more points than this, p comes from random draws, or from
# Student's t once enough clusters differ for its tail to be accurate.
MOST_POINTS = 2**22
DRAWS = 10**6
MANY_CLUSTERS = 200
EXACT, DRAWN, TAIL_OF_T = "exact", "drawn", "t"
# A share of repeats is a fraction, and the sum of a cluster adds up a few such fractions.
_LARGEST_DENOMINATOR = 10_000
_AT_A_TIME = 4_000_000
# The signs of so many clusters are one drawn number, for which a table has their sum: drawn one by
# one, a million patterns for each pair of twenty runs would take minutes.
_DRAWN_TOGETHER = 16
# Sums of shares that differ only by rounding count as equal.
_ROUNDING = 1e-9
# Clusters with numbers up to this many times the number of items are counted without sorting.
_SPARSE = 16
# Numbers up to e to this power can be added up.
_MOST_POWER = 600
# No p is smaller than twice this.
_LEAST_TAIL = 1e-300
# Up to this length, direct convolution is as fast as the Fourier transform.
_SHORT = 64

NO_ITEMS = "no item that both parsed"
ONE_CLUSTER = "one cluster"
ALL_ALIKE = "all clusters differ alike"
TOO_FEW = "too few questions to find any difference"

# Where numbers are drawn from, or what makes it: most tests draw nothing.
Generator = np.random.Generator | Callable[[], np.random.Generator]
Floats = NDArray[np.float64]
Ints = NDArray[np.int_]


@dataclass(frozen=True, slots=True)
class RateDifference(Estimate):
    """A difference of two rates, -1 to 1, with its interval and standard error.

    `n` counts items, `clusters` their clusters; `per_cluster` is the number of items of the cluster
    of a random item. `step` is the smallest difference of an item that is not 0: 1, or less for
    shares of repeats. `reason` says why a value is None.
    """

    standard_error: float | None = None
    clusters: int = 0
    per_cluster: float = 1.0
    step: float = 1.0

    def find_smallest(
        self, tests: int = 1, level: float = 0.95, times: float = 1.0
    ) -> float | None:
        """The smallest difference that `test_difference` finds with 80 % power, from 0 to 1.

        alpha is 1 - level, divided by the number of tests in the family: what the first step of
        Holm's correction, or of Benjamini and Hochberg's, asks of a difference that is the only
        one. With n items and the standard error e, the sum of a true difference d varies by n e.
        Flipping the signs of whole clusters takes d for variation too: by n (e^2 + d^2 q / n)^0.5,
        where q is `per_cluster`. The sums that the exact test can reach are two steps apart, so it
        loses one step s on average (for shares, at most that). So d is the smallest with

            n d - s >= z n (e^2 + d^2 q / n)^0.5 + t n e

        where z is the normal quantile of 1 - alpha / 2, and t Student's of 0.8 with `clusters` - 1
        degrees of freedom. This is Miettinen's formula (1968) for pairs, with clusters and the
        step. Simulated with clusters of one item, or of one to eight with a correlation up to .3,
        rates of 25 to 95 %, differences of 5 to 20 points, and 1 or 45 tests: such a difference
        was found in 77 to 97 % of sets; with few clusters it is more than 80 %.

        `times` as many clusters of the same kind divide e^2 by that number. None without a standard
        error, or if no difference can be found: if too few clusters can have so small a p, or the
        difference would be over 1. Raises ValueError for a level outside (0, 1) or fewer tests
        than 1.
        """
        if not 0 < level < 1:
            raise ValueError(f"a level must be between 0 and 1, not {level}")
        if tests < 1:
            raise ValueError(f"a family has at least one test, not {tests}")
        alpha, clusters, n = (1 - level) / tests, self.clusters * times, self.n * times
        if self.standard_error is None or 1 - clusters > log(alpha, 2):
            return None
        error = n * self.standard_error / sqrt(times)
        z = -float(ndtri(alpha / 2))
        apart = self.step + float(stdtrit(clusters - 1, POWER)) * error
        # (n d - apart)^2 = z^2 (error^2 + d^2 n q), solved for d.
        square = n**2 - z**2 * n * self.per_cluster
        if square <= 0:
            return None
        root = sqrt(max(0.0, (n * apart) ** 2 - square * (apart**2 - (z * error) ** 2)))
        found = (n * apart + root) / square
        return found if found <= 1 else None


def estimate_difference(
    differences: ArrayLike, clusters: ArrayLike, level: float = 0.95
) -> RateDifference:
    """The mean difference d of n items in m clusters, with its two-sided interval.

    There is one difference per item, -1 to 1, and the number of its cluster. Standard error: the
    square root of v = m / (m - 1) sum (y_c - d n_c)^2 / n^2, the linearised variance of a ratio of
    cluster totals; y_c is the sum of the differences of a cluster, n_c the number of its items.

    Interval: Bonett and Price's (2012, the adjusted Wald interval of paired rates) for the number
    of independent items that would have the same variance, with one item added to each direction
    and Student's quantile for the effective clusters minus 1 degrees of freedom, as in
    `rates.clustered_wilson`; clipped to -1 and 1. If all clusters have the same difference per
    item, v is 0 and there is no standard error; each cluster then counts as one item. (Simulated
    for 10 to 120 clusters, rates up to 0.98 and a correlation up to .3: it covers 93.5 % or more,
    where d +- t v^0.5 goes down to 85 %.)

    There is no interval with one cluster. Raises ValueError for a level outside (0, 1).
    """
    if not 0 < level < 1:
        raise ValueError(f"a level must be between 0 and 1, not {level}")
    each = np.asarray(differences, dtype=float)
    n = each.size
    if n == 0:
        return RateDifference(None, None, None, 0, NO_ITEMS)
    made = _measure(each, clusters)
    if made is None:
        return RateDifference(float(each.mean()), None, None, n, ONE_CLUSTER)
    low, high = made.find_ends((1 - level) / 2)
    if made.variance is None:
        return RateDifference(made.value, low, high, n, ALL_ALIKE)
    size = np.abs(each)
    return RateDifference(
        made.value,
        low,
        high,
        n,
        standard_error=sqrt(made.variance),
        clusters=made.m,
        per_cluster=made.per_cluster,
        step=float(size[size > 0].min()),
    )


class _Measured(NamedTuple):
    """The mean difference over m clusters, the items of the cluster of a random item, its
    linearised variance (None if all clusters differ alike), and the centre, standard error and
    degrees of freedom of its interval."""

    value: float
    m: int
    per_cluster: float
    variance: float | None
    centre: float
    error: float
    freedom: float

    def find_ends(self, tail: float) -> tuple[float, float]:
        """Both ends of the interval that leaves out this probability on either side."""
        away = -float(stdtrit(self.freedom, tail)) * self.error
        low, high = self.centre - away, self.centre + away
        return max(-1.0, min(self.value, low)), min(1.0, max(self.value, high))


def _measure(each: Floats, clusters: ArrayLike) -> _Measured | None:
    """None with fewer than two clusters."""
    items, sums = _sum_clusters(each, clusters)
    m, n = len(items), each.size
    if m < 2:
        return None
    value = float(sums.sum()) / n
    residual = float(((sums - value * items) ** 2).sum())
    alike = residual <= _ROUNDING * float((sums**2).sum())
    variance = m / (m - 1) * residual / n**2
    ends = _bonett_price(each, m if alike else _count_independent(each, variance))
    per_cluster = float((items**2).sum()) / n
    freedom = max(1.0, n / per_cluster - 1)
    found = None if alike else variance
    return _Measured(value, m, per_cluster, found, ends.centre, ends.error, freedom)


class _Adjusted(NamedTuple):
    """Centre and standard error of Bonett and Price's interval."""

    centre: float
    error: float


def _bonett_price(each: Floats, n: float) -> _Adjusted:
    """The interval for n items that differ as often in each direction as these do."""
    more, fewer = ((n * float(np.maximum(side, 0).mean()) + 1) / (n + 2) for side in (each, -each))
    centre = more - fewer
    return _Adjusted(centre, sqrt((more + fewer - centre**2) / (n + 2)))


def _count_independent(each: Floats, variance: float) -> float:
    """How many independent items, each 1, 0 or -1, would have this variance of their mean: at most
    as many as there are, or more if the differences are shares, which vary less."""
    size, square = float(np.abs(each).mean()), float((each**2).mean())
    return min(len(each) * size / square, (size - float(each.mean()) ** 2) / variance)


def test_difference(differences: ArrayLike, clusters: ArrayLike, rng: Generator) -> PValue:
    """The two-sided p of the hypothesis that two runs have the same rate, from the difference and
    the cluster of each item.

    Uses a sign-flip test over clusters. If the sum of every cluster is -1, 0 or 1, as with one item
    per cluster, this equals the exact McNemar test, which is then used. `n` counts clusters that
    differ.
    """
    _, sums = _sum_clusters(np.asarray(differences, dtype=float), clusters)
    if not sums.size:
        return PValue(None, 0, NO_ITEMS)
    if ((sums == 0) | (np.abs(sums) == 1)).all():
        return mcnemar_test(int((sums == 1).sum()), int((sums == -1).sum()))
    return sign_flip_test(sums, rng)


def _sum_clusters(each: Floats, clusters: ArrayLike) -> tuple[Ints, Floats]:
    """The items of each cluster, and the sum of their differences. Sums of shares such as thirds
    have rounding errors."""
    cluster = np.asarray(clusters)
    # Numbers can be counted without sorting them, unless they are few and large.
    is_counted = cluster.size and cluster.dtype.kind in "iu" and cluster.min() >= 0
    if not is_counted or cluster.max() > _SPARSE * cluster.size:
        _, cluster = np.unique(cluster, return_inverse=True)
    items = np.bincount(cluster)
    there = items > 0
    sums: Floats = np.round(np.bincount(cluster, weights=each).astype(float)[there], 9)
    return items[there], sums


def mcnemar_test(only_first: int, only_second: int) -> PValue:
    """The exact two-sided McNemar test (1947): twice the binomial tail at probability 1/2 of the
    smaller of the two counts, at most 1.

    The counts are the items that only one of the two runs has; `n` is their sum. p is 1 if no item
    differs. Raises ValueError for counts below 0.
    """
    if min(only_first, only_second) < 0:
        raise ValueError(f"{only_first} and {only_second} are not counts")
    n = only_first + only_second
    p = 1.0 if n == 0 else min(1.0, 2 * float(bdtr(min(only_first, only_second), n, 0.5)))
    return PValue(p, n, test=EXACT)


def estimate_j_difference(
    differences: ArrayLike, invariant: ArrayLike, clusters: ArrayLike, level: float = 0.95
) -> Estimate:
    """The difference of J of two runs, detection minus false alarms, -2 to 2, with its interval.

    Each array has one entry per item that both runs parsed: the difference of the two runs, whether
    the item is score-invariant, and its cluster. The interval is Newcombe's
    (`sensitivity.youden_j`), from those of `estimate_difference` for the two kinds. If the two
    differences go in opposite directions within clusters that have items of both kinds, it is
    wider, by their correlation over clusters (Zou and Donner 2008); if they go in the same
    direction, they are treated as independent.
    """
    each, calm, cluster = _as_arrays(differences, invariant, clusters)
    detection, alarms = (
        estimate_difference(each[these], cluster[these], level) for these in (~calm, calm)
    )
    opposite = min(0.0, _correlate_kinds(each, calm, cluster))
    return sensitivity.youden_j(detection, alarms, opposite)


def test_j_difference(differences: ArrayLike, invariant: ArrayLike, clusters: ArrayLike) -> PValue:
    """The two-sided p of the hypothesis that two runs have the same J, from the arrays of
    `estimate_j_difference`: 1 minus the level at which that interval ends at 0.

    So p is below 0.05 just where the 95 % interval leaves out 0. Flipping the signs of clusters, as
    for one rate, does not do: the runs can have the same J at other rates of detection and of false
    alarms, and if few score-invariant items differ, their signs say little of how much the false
    alarms vary (with 5 to 20 of them, up to 19 % of such pairs had p < 0.05). `n` counts items. No
    p without two clusters of each kind.
    """
    each, calm, cluster = _as_arrays(differences, invariant, clusters)
    if not calm.any() or calm.all():
        return PValue(None, 0, NO_ITEMS)
    detection, alarms = (_measure(each[these], cluster[these]) for these in (~calm, calm))
    if detection is None or alarms is None:
        return PValue(None, each.size, ONE_CLUSTER)
    opposite = min(0.0, _correlate_kinds(each, calm, cluster))

    def leaves_out_0(tail: float) -> bool:
        hits, false = (
            Estimate(one.value, *one.find_ends(tail), each.size) for one in (detection, alarms)
        )
        found = sensitivity.youden_j(hits, false, opposite)
        return found.low is not None and found.high is not None and found.low * found.high > 0

    if not leaves_out_0(0.5):
        return PValue(1.0, each.size, test=TAIL_OF_T)
    # The logarithms of two tails, between which the interval ends at 0.
    least, most = log(_LEAST_TAIL), log(0.5)
    for _ in range(50):
        middle = (least + most) / 2
        least, most = (least, middle) if leaves_out_0(exp(middle)) else (middle, most)
    return PValue(2 * exp(most), each.size, test=TAIL_OF_T)


def _as_arrays(
    differences: ArrayLike, invariant: ArrayLike, clusters: ArrayLike
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.generic]]:
    each, calm = np.asarray(differences, dtype=float), np.asarray(invariant, dtype=bool)
    return each, calm, np.asarray(clusters)


def _correlate_kinds(each: Floats, calm: NDArray[np.bool_], clusters: NDArray[np.generic]) -> float:
    """The correlation, over clusters, of the differences of error items and of score-invariant
    items, as sums less what their means give; 0 if one of the two does not vary."""
    _, cluster = np.unique(clusters, return_inverse=True)
    m = int(cluster.max()) + 1 if cluster.size else 0
    error, alarm = (
        np.bincount(cluster[these], each[these] - each[these].mean(), m)
        if these.any()
        else np.zeros(m)
        for these in (~calm, calm)
    )
    size = sqrt(float(error @ error) * float(alarm @ alarm))
    return float(error @ alarm) / size if size > _ROUNDING else 0.0


def sign_flip_test(
    differences: ArrayLike, rng: Generator, most_points: int = MOST_POINTS
) -> PValue:
    """The two-sided p for the sum of the clusters' differences, by flipping their signs.

    If the runs are alike, each cluster could as well have differed in the other direction (Fisher
    1935, section 21). If k clusters differ, there are 2^k sign patterns. p is the share of patterns
    whose sum is at least as far from 0 as the observed sum. Sums of shares of repeats are multiples
    of one fraction, so p is counted exactly on the grid of these multiples. If that grid has more
    than `most_points`, by default 4 million, p comes from a million random patterns plus the
    observed one, (1 + as far) / (1 + draws), or, with 200 clusters or more, from the tail of
    Student's t; `test` says which. `n` is k. p is 1 if no cluster differs.
    """
    sums = np.asarray(differences, dtype=float)
    apart = np.abs(sums[sums != 0])
    k = apart.size
    if not k:
        return PValue(1.0, 0, test=EXACT)
    # Clusters with differences of the same size are interchangeable.
    sizes, alike = np.unique(np.round(apart, 9), return_counts=True)
    found = abs(float(sums.sum()))
    steps = _on_grid(sizes)
    if steps is not None and (total := int(steps @ alike)) < most_points:
        # The total steps of the clusters that differ in the rarer direction.
        least = round((total - found * total / float(apart.sum())) / 2)
        return PValue(min(1.0, 2 * _share_up_to(least, steps, alike)), k, test=EXACT)
    if k < MANY_CLUSTERS:
        far = _count_extreme_draws(apart, found - _ROUNDING * max(1.0, float(apart.sum())), rng)
        return PValue((1 + far) / (1 + DRAWS), k, test=DRAWN)
    z = found / sqrt(float((apart**2).sum()))
    t = z * sqrt((k - 1) / max(k - z * z, _ROUNDING))
    return PValue(min(1.0, 2 * float(stdtr(k - 1, -t))), k, test=TAIL_OF_T)


def _on_grid(sizes: Floats) -> Ints | None:
    """Express the sizes as whole multiples of their greatest common divisor, which may be a
    fraction.

    None if a size is not a fraction, or if there is no useful common denominator.
    """
    fractions = [Fraction(size).limit_denominator(_LARGEST_DENOMINATOR) for size in sizes.tolist()]
    if any(abs(float(one) - size) > _ROUNDING for one, size in zip(fractions, sizes, strict=True)):
        return None
    common = lcm(*(one.denominator for one in fractions))
    whole = [one.numerator * (common // one.denominator) for one in fractions]
    steps = [one // gcd(*whole) for one in whole]
    return np.array(steps) if max(steps) < MOST_POINTS else None


def _share_up_to(most: int, steps: Ints, alike: Ints) -> float:
    """P(T <= most) for T = sum of steps x Binomial(alike, 1/2), exact up to rounding even if tiny.

    `most` is at most half of the largest T. The distribution is computed by convolving one kind of
    cluster after the other. First it is tilted so that T has the mean `most` (Esscher 1932);
    otherwise a small probability would be lost in the rounding of larger terms.
    """
    k = int(alike.sum())
    if most <= 0:
        return exp(-k * log(2))
    tilt = _saddle_point(most, steps, alike)
    parts: list[tuple[int, int, Floats]] = []
    for order, (step, n) in enumerate(zip(steps.tolist(), alike.tolist(), strict=True)):
        part = _binomial(n, step, tilt)[: most + 1]
        heappush(parts, (len(part), order, part))
    # Convolve the two shortest first, so that each array is convolved as few times as possible.
    while len(parts) > 2:
        (_, order, one), (_, _, other) = heappop(parts), heappop(parts)
        both = _convolve(one, other)[: most + 1]
        heappush(parts, (len(both), order, both))
    scale = float(alike @ np.logaddexp(0, tilt * steps)) - k * log(2) - tilt * most
    *shorter, longest = (part for _, _, part in sorted(parts, key=lambda one: one[0]))
    return exp(scale) * _sum_up_to(most, shorter[0] if shorter else np.ones(1), longest, tilt)


def _sum_up_to(most: int, one: Floats, other: Floats, tilt: float) -> float:
    """The sum of e^(tilt (most - i - j)) one_i other_j over all i + j <= most.

    The last of the convolutions is the longest by far, and only its sum is needed: a running sum
    does that, unless its powers overflow.
    """
    if -tilt * len(other) > _MOST_POWER:
        both = _convolve(one, other)[: most + 1]
        return float(both @ np.exp(tilt * (most - np.arange(len(both)))))
    places = np.arange(len(other))
    sums = np.cumsum(other * np.exp(-tilt * places))
    left = most - np.arange(min(len(one), most + 1))
    within = sums[np.minimum(left, len(other) - 1)] * np.exp(tilt * left)
    return float(one[: len(left)] @ within)


def _saddle_point(most: int, steps: Ints, alike: Ints) -> float:
    """Find x <= 0 where sum steps alike / (1 + e^(-x steps)) is approximately `most`."""
    low, high, weights = -log(float(steps @ alike)), 0.0, steps * alike
    for _ in range(30):
        middle = (low + high) / 2
        mean = float(weights @ expit(middle * steps))
        low, high = (middle, high) if mean < most else (low, middle)
    return (low + high) / 2


def _binomial(n: int, step: int, tilt: float) -> Floats:
    """The distribution of step x Binomial(n, q) at 0 to n step; q = 1 / (1 + e^(-tilt step))."""
    i = np.arange(n + 1)
    found = np.zeros(n * step + 1)
    found[::step] = np.exp(_log_choose(n) + i * tilt * step - n * np.logaddexp(0, tilt * step))
    return found


# Pairs of runs over the same items have numbers of clusters in common.
@lru_cache(500)
def _log_choose(n: int) -> Floats:
    """The logarithms of the binomial coefficients of n and 0 to n."""
    i = np.arange(n + 1)
    found: Floats = gammaln(n + 1) - gammaln(i + 1) - gammaln(n - i + 1)
    return found


def _convolve(one: Floats, other: Floats) -> Floats:
    """The distribution of the sum of two independent variables."""
    if min(len(one), len(other)) <= _SHORT:
        return np.convolve(one, other)
    length = len(one) + len(other) - 1
    room = next_fast_len(length, real=True)
    found: Floats = irfft(rfft(one, room) * rfft(other, room), room)[:length]
    return np.maximum(found, 0)


def _count_extreme_draws(apart: Floats, least: float, rng: Generator) -> int:
    """Count the sign patterns, out of `DRAWS` random ones, with a sum at least `least` away from
    0."""
    rng = rng() if callable(rng) else rng
    tables = [
        _list_signed_sums(apart[start : start + _DRAWN_TOGETHER])
        for start in range(0, len(apart), _DRAWN_TOGETHER)
    ]
    far, block = 0, _AT_A_TIME // len(tables)
    for start in range(0, DRAWS, block):
        sums = np.zeros(min(block, DRAWS - start))
        for table in tables:
            sums += table[rng.integers(len(table), size=len(sums), dtype=np.uint16)]
        far += int((np.abs(sums) >= least).sum())
    return far


def _list_signed_sums(sizes: Floats) -> Floats:
    """The sums of these numbers under all patterns of their signs."""
    sums = np.zeros(1)
    for size in sizes.tolist():
        sums = np.concatenate([sums - size, sums + size])
    return sums
