"""Rates over clustered items: intervals and bounds."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import floor, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from stats.estimates import Estimate


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """The sums over clusters for the interval of a rate; a database can compute them.

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
    """The lowest and highest possible rate, fractions of 1; None without items."""

    lowest: float | None
    highest: float | None


def sum_clusters(clusters: Iterable[tuple[int, float]]) -> ClusterSums:
    """Sum pairs (items, hits), one per cluster. Clusters without items do not count.

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
    """Do the same as `sum_clusters` for arrays with one entry per cluster. Hits are rounded to 9
    digits, so that sums of shares that should be whole numbers are whole."""
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
    """The rate over items with the interval of `clustered_wilson`.

    Each item has a hit (0, 1 or a share between, nan if missing) and the number of its cluster.
    `n` counts items that have a hit.
    """
    return clustered_wilson(sum_items(hits, clusters))


def sum_items(hits: ArrayLike, clusters: ArrayLike) -> ClusterSums:
    """The sums over clusters of items as in `estimate_rate`."""
    values = np.asarray(hits, dtype=float)
    there = ~np.isnan(values)
    _, cluster = np.unique(np.asarray(clusters)[there], return_inverse=True)
    items, y = np.bincount(cluster), np.bincount(cluster, weights=values[there])
    # Sums of shares such as thirds have rounding errors.
    totals = ((int(one) if one.is_integer() else one) for one in np.round(y, 9).tolist())
    return sum_clusters(zip(items.tolist(), totals, strict=True))


def repeat_clusters(sums: ClusterSums, times: float) -> ClusterSums:
    """The sums of `times` as many clusters of the same kind, to plan for more items. The counts
    need not be whole."""
    return ClusterSums(*(times * getattr(sums, one.name) for one in fields(sums)))


def estimate_mean_rate(
    hits: ArrayLike, cases: ArrayLike, clusters: ArrayLike, level: float = 0.95
) -> Estimate:
    """The unweighted mean of several rates over the same items, with a `clustered_wilson` interval.

    An example is the precision for each of four prompts. A single rate has exactly the interval of
    `clustered_wilson`. `hits` and `cases` are items x rates, 1 or 0. p_j = hits / cases is rate j
    over n_j cases, and 0 without a case. The rates are fixed, the items are sampled: an item has
    the weight u, the mean over j of its cases / n_j. The effective n = (sum u)^2 / sum u^2 (Kish
    1965) items in m clusters have the linearised variance v = m / (m - 1) sum e_c^2, where e_c is
    the sum over the items of cluster c of the mean over j of (hit - p_j case) / n_j. The effective
    number of clusters is (sum u)^2 / sum u_c^2, u_c being the sum of u in cluster c. `n` of the
    estimate counts items with a case. Without such items there is no value, and with one cluster
    there is no interval.
    """
    if not 0 < level < 1:
        raise ValueError(f"a level must be between 0 and 1, not {level}")
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
    if m == items:
        return Estimate(value, *wilson(value, n, find_quantile(level, None)), items)
    of_clusters = np.bincount(cluster, weights=weight)
    clusters = float(of_clusters.sum() ** 2 / (of_clusters**2).sum())
    effective = min(n, m if value in (0, 1) else value * (1 - value) / max(variance, 1e-300))
    return Estimate(value, *wilson(value, effective, find_quantile(level, clusters)), items)


def clustered_wilson(sums: ClusterSums, level: float = 0.95) -> Estimate:
    """Rate y / n with a two-sided interval that takes clusters into account.

    Wilson's interval (1927) on n / design effect items with Student's quantile for m_e - 1 degrees
    of freedom, at least 1, where m_e = n^2 / sum n_c^2 is the effective number of clusters (Kish
    1965): as many as there are if all have the same size, fewer otherwise. With one item in every
    cluster it is Wilson's plain interval. There is no value without items and no interval with one
    cluster; `reason` says so. Always within [0, 1].
    """
    if not 0 < level < 1:
        raise ValueError(f"a level must be between 0 and 1, not {level}")
    if sums.n == 0:
        return Estimate(None, None, None, 0, "no items")
    rate = sums.y / sums.n
    if sums.m == 1:
        return Estimate(rate, None, None, sums.n, "one cluster")
    quantile = find_quantile(level, None if sums.m == sums.n else sums.n**2 / sums.nn)
    low, high = wilson(rate, sums.n / design_effect(sums), quantile)
    return Estimate(rate, low, high, sums.n)


def design_effect(sums: ClusterSums) -> float:
    """How many times the rate's variance exceeds that of independent items, at least 1.

    The linearised variance of a ratio of cluster totals, divided by p (1 - p) / n. If p is 0 or 1,
    the data do not show how similar the items of a cluster are, so the worst case n / m is used.
    Needs two clusters or more.
    """
    m, n, y = sums.m, sums.n, sums.y
    if m == n:
        return 1.0
    if y in (0, n):
        return n / m
    # This is n^2 times the residual sum of squares. If the hits are whole, it is whole and loses no
    # digits.
    residual = sums.yy * n * n - 2 * y * n * sums.ny + y * y * sums.nn
    return max(1.0, m / (m - 1) * residual / n / (y * (n - y)))


def bound_difference(one: RateBounds, other: RateBounds) -> RateBounds:
    """The bounds of one rate minus another, -1 to 1, where the two rates are at opposite
    extremes."""
    if one.lowest is None or one.highest is None or other.lowest is None or other.highest is None:
        return RateBounds(None, None)
    return RateBounds(one.lowest - other.highest, one.highest - other.lowest)


def bound_wrong_labels(rate: float, n: int, share: float) -> RateBounds:
    """The bounds of a rate over n items, had a share of their labels been wrong.

    k = share n items do not belong to those that the rate is about, and nobody knows which. Without
    them the rate is lowest if all of them are hits, (rate n - k) / (n - k), and highest if none is,
    rate n / (n - k); both are cut to 0 and 1. Raises ValueError unless 0 <= share < 1; there are no
    bounds without items.
    """
    if not 0 <= share < 1:
        raise ValueError(f"a share of wrong labels must be 0 or more and below 1, not {share}")
    if n == 0:
        return RateBounds(None, None)
    right = 1 - share
    return RateBounds(max(0.0, (rate - share) / right), min(1.0, rate / right))


def find_quantile(level: float, clusters: float | None) -> float:
    """The upper quantile of a two-sided interval: Student's for the effective number of clusters,
    with at least 1 degree of freedom; the normal one for single items (None)."""
    upper = (1 + level) / 2
    return float(ndtri(upper) if clusters is None else stdtrit(max(1.0, clusters - 1), upper))


def wilson(rate: float, n: float, z: float) -> tuple[float, float]:
    """The ends of Wilson's interval (1927) of a rate over n items, which need not be whole, with
    the quantile z. An end at 0 or 1 is exact if the rate is."""
    shrink = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / shrink
    half = z / shrink * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return (
        0.0 if rate == 0 else max(0.0, centre - half),
        1.0 if rate == 1 else min(1.0, centre + half),
    )


def items_to_overturn(sums: ClusterSums, bar: float, level: float = 0.95) -> int | None:
    """How many opposite items can be added while the `clustered_wilson` interval stays on its side
    of `bar`.

    The largest k such that k further items, each a cluster of its own and all against the rate
    (misses if the interval is above the threshold, hits if below), leave the whole interval on the
    same side. None if the interval contains the threshold or is not defined, since then nothing is
    settled. 0 means that a single item could change the result. Raises ValueError unless 0 < bar <
    1.
    """
    if not 0 < bar < 1:
        raise ValueError(f"a threshold must be between 0 and 1, not {bar}")
    side = _side_of_threshold(clustered_wilson(sums, level), bar)
    if side == 0:
        return None
    # Count down from where the rate itself reaches the threshold: with few clusters the interval
    # may narrow at first as items are added, so the first k that fails may not be the last.
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
    """1 if the whole interval is above `bar`, -1 if below, 0 if it contains `bar` or is
    undefined."""
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
