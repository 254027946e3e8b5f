"""Does a value rise or fall with a dose, such as the number of errors in an answer?"""

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from stats.bootstrap import ENOUGH_CLUSTERS, FEWEST_CLUSTERS, ROUGH
from stats.estimates import Estimate

# Sums of squares below this share of their parts are rounding errors.
_ROUNDING = 1e-9

NO_ITEMS = "no items"
ONE_DOSE = "one dose"
CONSTANT = "all values are the same"
ALL_ALIKE = "all clusters rise alike"
FLAT = "no cluster rises or falls"
HELD_BY_FEW = "too few clusters hold the rarer doses"

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Trend(Estimate):
    """The slope of a line over doses, in the unit of the values per unit of dose, with its interval
    and the two-sided p of the hypothesis that it is 0.

    `n` counts items, `clusters` and `doses` the different clusters and doses among them.
    """

    p: float | None = None
    clusters: int = 0
    doses: int = 0


def estimate_trend(
    values: ArrayLike, doses: ArrayLike, clusters: ArrayLike, level: float = 0.95
) -> Trend:
    """The least-squares line of values over doses, with cluster-robust interval and test.

    Each item has a value (nan if missing; such items are left out), a dose and the number of its
    cluster. Items of one cluster may be alike in any way, and may have one dose or several. For
    values of 0 and 1 the slope is the linear trend of a rate (Cochran 1954, Armitage 1955).

    The test is a score test: cluster c has the score u_c = sum (x - mean x) (y - mean y) over its
    items, whose sum is 0 in expectation if there is no trend, and p is that of a t test of the m
    scores (the residuals are those without a trend, as in Kline and Santos 2012, since others are
    too small where a rate is near 0 or 1). Since flipped signs of k scores that are not 0 (Fisher
    1935) have no smaller p, p is at least 2^(1 - k). The interval has the slopes b that the test of
    y - b x does not reject; it is the solution of a quadratic equation (as in Fieller 1954), and
    need not be symmetric.

    Student's t has m_e - 1 degrees of freedom, at least 1, where m_e = (sum h_c)^2 / sum h_c^2 is
    the effective number of clusters (Carter, Schnepel and Steigerwald 2017) and h_c the cluster's
    sum of (x - mean x)^2. (Simulated with 10 to 40 clusters, rates of .5 to .97 and a correlation
    up to .3 within clusters: without a trend p is below 0.05 in at most 7 % of cases, and seldom at
    all where nearly all values are alike. With one, the interval contains it in 92 % or more.)

    There is no slope without items or with one dose. There is no interval and no p, and `reason`
    says why, with under 10 clusters, if all values are the same (the slope is then 0), or if so few
    clusters hold the rarer doses that every slope is possible. If all clusters rise alike, or none
    rises or falls (p is then 1), there is a p but no interval. With 10 to 19 clusters `reason` says
    that the interval is rough. Raises ValueError for a level outside (0, 1).
    """
    if not 0 < level < 1:
        raise ValueError(f"a level must be between 0 and 1, not {level}")
    y = np.asarray(values, dtype=float)
    there = ~np.isnan(y)
    y, x = y[there], np.asarray(doses, dtype=float)[there]
    n, kinds = y.size, len(np.unique(x))
    if kinds < 2:
        return Trend(None, None, None, n, ONE_DOSE if n else NO_ITEMS, doses=kinds)
    _, cluster = np.unique(np.asarray(clusters)[there], return_inverse=True)
    m = int(cluster.max()) + 1
    x, y = x - x.mean(), y - y.mean()
    u: Floats = np.bincount(cluster, weights=x * y).astype(float)
    h: Floats = np.bincount(cluster, weights=x * x).astype(float)
    constant = float(np.ptp(y)) <= _ROUNDING
    slope = 0.0 if constant else float(u.sum() / h.sum())
    if constant or m < FEWEST_CLUSTERS:
        reason = CONSTANT if constant else f"under {FEWEST_CLUSTERS} clusters"
        return Trend(slope, None, None, n, reason, None, m, kinds)
    freedom = max(1.0, float(h.sum() ** 2 / (h @ h)) - 1)
    if float(np.abs(u).max()) <= _ROUNDING * sqrt(float(h.sum()) * float(y @ y)):
        return Trend(0.0, None, None, n, FLAT, 1.0, m, kinds)
    ends = _invert(u, h, float(stdtrit(freedom, (1 + level) / 2)))
    if ends is None:
        return Trend(slope, None, None, n, HELD_BY_FEW, None, m, kinds)
    p = _score_p(u, freedom)
    low, high = ends
    if high - low <= _ROUNDING * max(1.0, abs(slope)):
        return Trend(slope, None, None, n, ALL_ALIKE, p, m, kinds)
    return Trend(slope, low, high, n, ROUGH if m < ENOUGH_CLUSTERS else "", p, m, kinds)


def _score_p(u: Floats, freedom: float) -> float:
    """The two-sided p of the hypothesis that the scores of clusters have the mean 0."""
    m, spread = len(u), float(u.std(ddof=1))
    largest = float(np.abs(u).max())
    t = float(u.sum()) / (sqrt(m) * spread) if spread > _ROUNDING * largest else inf
    flips = 2.0 ** (1 - int((np.abs(u) > _ROUNDING * largest).sum()))
    return max(2 * float(stdtr(freedom, -abs(t))), flips)


def _invert(u: Floats, h: Floats, t: float) -> tuple[float, float] | None:
    """The least and the largest b for which the scores u - b h have a t of at most `t`; None if
    arbitrarily large ones have."""
    m, whole = len(u), float(h.sum())
    # With S and Q the sum and the sum of squares of u - b h, |t| is at most `t` where
    # S^2 (1 + t^2 / (m - 1)) <= t^2 m / (m - 1) Q, and both sides are quadratic in b.
    one, other = 1 + t * t / (m - 1), t * t * m / (m - 1)
    a = one * whole**2 - other * float(h @ h)
    if a <= _ROUNDING * whole**2:
        return None
    b = one * float(u.sum()) * whole - other * float(u @ h)
    c = one * float(u.sum()) ** 2 - other * float(u @ u)
    half = sqrt(max(0.0, b * b - a * c)) / a
    return b / a - half, b / a + half
