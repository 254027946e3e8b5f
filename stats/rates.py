"""Rates over clustered items: interval and bounds."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from stats.estimates import Estimate


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """What a rate's interval needs of its clusters, as a database can sum it.

    With n_c items and y_c hits in cluster c: `m` clusters with at least one item, `n` = sum n_c,
    `y` = sum y_c, `nn` = sum n_c^2, `ny` = sum n_c y_c, `yy` = sum y_c^2. Hits may be fractions
    (an item's share of repeats).
    """

    m: int
    n: int
    y: float
    nn: int
    ny: float
    yy: float


@dataclass(frozen=True, slots=True)
class RateBounds:
    """The lowest and highest a rate can be, fractions of 1; None when there are no items."""

    lowest: float | None
    highest: float | None


def sum_clusters(clusters: Iterable[tuple[int, float]]) -> ClusterSums:
    """Sum (items, hits) pairs, one a cluster. Clusters without items do not count.

    Raises ValueError unless 0 <= hits <= items in every pair.
    """
    m = n = nn = 0
    y: float = 0
    ny: float = 0
    yy: float = 0
    for items, hits in clusters:
        if not 0 <= hits <= items:
            raise ValueError(f"a cluster of {items} items cannot have {hits} hits")
        m += items > 0
        n, nn = n + items, nn + items * items
        y, ny, yy = y + hits, ny + items * hits, yy + hits * hits
    return ClusterSums(m, n, y, nn, ny, yy)


def sum_cluster_arrays(items: NDArray[np.int_], hits: NDArray[np.float64]) -> ClusterSums:
    """The same of arrays with an entry a cluster; sums that are shares but for rounding are whole
    again."""
    held = items > 0
    n, y = items[held], np.round(hits[held], 9)
    return ClusterSums(
        m=len(n),
        n=int(n.sum()),
        y=float(y.sum()),
        nn=int((n * n).sum()),
        ny=float((n * y).sum()),
        yy=float((y * y).sum()),
    )


def estimate_rate(hits: ArrayLike, clusters: ArrayLike) -> Estimate:
    """The rate of items, each with its hit (0, 1 or a share between, nan where missing) and its
    cluster's number, with the interval of `clustered_wilson`. `n` counts items that have a hit.
    """
    values = np.asarray(hits, dtype=float)
    there = ~np.isnan(values)
    _, cluster = np.unique(np.asarray(clusters)[there], return_inverse=True)
    items, y = np.bincount(cluster), np.bincount(cluster, weights=values[there])
    # Shares such as thirds leave a rest when they are added up.
    totals = ((int(one) if one.is_integer() else one) for one in np.round(y, 9).tolist())
    return clustered_wilson(sum_clusters(zip(items.tolist(), totals, strict=True)))


def estimate_mean_rate(
    hits: ArrayLike, cases: ArrayLike, clusters: ArrayLike, level: float = 0.95
) -> Estimate:
    """The plain mean of several rates over the same items, such as the precision by each of four
    prompts, with the interval of `clustered_wilson`; one rate has exactly that.

    `hits` and `cases` are items x rates, 1 or 0; p_j = hits / cases of rate j, of n_j cases, 0
    without one. Rates are fixed, items drawn: an item weighs u = the mean over j of its cases /
    n_j, so that n = (sum u)^2 / sum u^2 (Kish 1965) items of m clusters have the linearised
    variance v = m / (m - 1) sum e_c^2, e_c summing the mean over j of (hit - p_j case) / n_j over
    the items of cluster c. `n` of the estimate counts items with a case; without one there is no
    value, in one cluster no interval.
    """
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, not at {level}")
    hit, case = np.asarray(hits, dtype=float), np.asarray(cases, dtype=float)
    weights = np.divide(case, case.sum(axis=0), out=np.zeros(case.shape), where=case > 0)
    used = weights.any(axis=1)
    items = int(used.sum())
    if items == 0:
        return Estimate(None, None, None, 0, "no items")
    each = (hit * weights).sum(axis=0)
    value = float(np.round(each.mean(), 12))
    _, cluster = np.unique(np.asarray(clusters)[used], return_inverse=True)
    m = int(cluster.max()) + 1
    if m == 1:
        return Estimate(value, None, None, items, "one cluster")
    weight = weights[used].mean(axis=1)
    n = float(weight.sum() ** 2 / (weight**2).sum())
    apart = ((hit[used] - each) * weights[used]).mean(axis=1)
    variance = m / (m - 1) * float((np.bincount(cluster, weights=apart) ** 2).sum())
    upper = (1 + level) / 2
    if m == items:
        effective, quantile = n, float(ndtri(upper))
    else:
        quantile = float(stdtrit(m - 1, upper))
        alike = value in (0, 1)
        effective = min(n, m if alike else value * (1 - value) / max(variance, 1e-300))
    return Estimate(value, *_wilson(value, effective, quantile), items)


def clustered_wilson(sums: ClusterSums, level: float = 0.95) -> Estimate:
    """Rate y / n with a two-sided interval that knows items of one cluster are alike.

    Wilson's interval (1927) on n / design effect items with Student's quantile of m - 1 degrees
    of freedom; with one item in every cluster it is Wilson's plain interval. Without items there
    is no value, with one cluster no interval; `reason` says so. Always within [0, 1].
    """
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, not at {level}")
    if sums.n == 0:
        return Estimate(None, None, None, 0, "no items")
    rate = sums.y / sums.n
    if sums.m == 1:
        return Estimate(rate, None, None, sums.n, "one cluster")
    low, high = _wilson(rate, sums.n / design_effect(sums), _quantile(sums, level))
    return Estimate(rate, low, high, sums.n)


def design_effect(sums: ClusterSums) -> float:
    """How many times the rate's variance exceeds that of independent items, at least 1.

    Linearised variance of a ratio of cluster totals over p (1 - p) / n. Where p is 0 or 1 nothing
    shows how alike items are and the worst case n / m is taken. Needs two clusters or more.
    """
    m, n, y = sums.m, sums.n, sums.y
    if m == n:
        return 1.0
    if y in (0, n):
        return n / m
    # n^2 times the residual sum of squares: whole hits stay whole, so nothing cancels away.
    residual = sums.yy * n * n - 2 * y * n * sums.ny + y * y * sums.nn
    return max(1.0, m / (m - 1) * residual / n / (y * (n - y)))


def bound_rate(undetected: int, missing: int, total: int) -> RateBounds:
    """What the undetected rate could be had all missing outcomes gone one way or the other.

    `total` counts all items, the missing ones included. A pair of which one order was read and
    did not choose gold is undetected either way, so count it there. Raises ValueError on counts
    that do not fit into each other.
    """
    if undetected < 0 or missing < 0 or undetected + missing > total:
        raise ValueError(f"{undetected} undetected and {missing} missing do not fit in {total}")
    if total == 0:
        return RateBounds(None, None)
    return RateBounds(undetected / total, (undetected + missing) / total)


def bound_difference(one: RateBounds, other: RateBounds) -> RateBounds:
    """What one rate minus another could be: each at its opposite extreme, -1 to 1."""
    if one.lowest is None or one.highest is None or other.lowest is None or other.highest is None:
        return RateBounds(None, None)
    return RateBounds(one.lowest - other.highest, one.highest - other.lowest)


def _quantile(sums: ClusterSums, level: float) -> float:
    upper = (1 + level) / 2
    return float(ndtri(upper) if sums.m == sums.n else stdtrit(sums.m - 1, upper))


def _wilson(rate: float, n: float, z: float) -> tuple[float, float]:
    shrink = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / shrink
    half = z / shrink * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return (
        0.0 if rate == 0 else max(0.0, centre - half),
        1.0 if rate == 1 else min(1.0, centre + half),
    )


def items_to_overturn(sums: ClusterSums, bar: float, level: float = 0.95) -> int | None:
    """How many more items would leave the interval of `clustered_wilson` on its side of the bar.

    The largest k such that k further items, each a cluster of its own and all turning out against
    the rate (misses if the interval lies above the bar, hits if below), leave the whole interval
    on the same side. None if the interval holds the bar, or is not defined: then nothing is
    settled yet. 0 means that a single item could change it. Raises ValueError unless 0 < bar < 1.
    """
    if not 0 < bar < 1:
        raise ValueError(f"a bar lies between 0 and 1, not at {bar}")
    side = _side_of_threshold(clustered_wilson(sums, level), bar)
    if side == 0:
        return None
    # From where the rate itself meets the bar downwards: with few clusters the interval may
    # narrow at first as items come in, so the first k that fails is not the end of it.
    missing = sums.y / bar - sums.n if side > 0 else (bar * sums.n - sums.y) / (1 - bar)
    most = max(0, floor(missing + 1e-9))
    against = (_add_single_clusters(sums, k, hit=side < 0) for k in range(most, 0, -1))
    settled = (
        more.n - sums.n
        for more in against
        if _side_of_threshold(clustered_wilson(more, level), bar) == side
    )
    return next(settled, 0)


def _side_of_threshold(estimate: Estimate, bar: float) -> int:
    """1 if the whole interval lies above the bar, -1 if below, 0 if it holds it or is none."""
    if estimate.low is None or estimate.high is None:
        return 0
    return int(estimate.low > bar) - int(estimate.high < bar)


def _add_single_clusters(sums: ClusterSums, k: int, *, hit: bool) -> ClusterSums:
    """The sums with k more clusters of one item each, all hits or all misses."""
    hits = k if hit else 0
    return ClusterSums(
        m=sums.m + k,
        n=sums.n + k,
        y=sums.y + hits,
        nn=sums.nn + k,
        ny=sums.ny + hits,
        yy=sums.yy + hits,
    )
