"""Is a slice of the items missed more than the rest? For the search for blind spots.

The slice is held against the rest within strata, such as categories, so that it is not called
blind for holding the hard categories; without strata, against the rest as a whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array
from scipy.special import stdtr

# What a page calls a blind spot: this large, and this far above the rest (as a share).
FEWEST_ITEMS = 20
FEWEST_CLUSTERS = 10
LEAST_DIFFERENCE = 0.10
DRAWS = 9_999
# Enough draws as far as the slice: p is known to a tenth of itself.
ENOUGH = 100
# From here on, the clusters on either side, the dealt statistic follows its limit.
MANY_ITEMS, MANY_CLUSTERS = 20_000, 200
_AT_A_TIME = 1_000_000
_ROUNDING = 1e-9

NO_ITEMS = "no items in the slice"
NO_REST = "no items beside the slice"
ALIKE = "all items are alike"

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int_]


@dataclass(frozen=True, slots=True)
class Contrast:
    """A slice against the rest: rates as fractions of 1, None where there are no items.

    `n` items in `clusters` clusters are in the slice. `difference` is the Mantel-Haenszel one; `p`
    is one-sided, that the slice has no higher rate; `reason` says why it is None.
    """

    n: int
    clusters: int
    rate: float | None
    rest: float | None
    difference: float | None
    p: float | None
    reason: str = ""


def contrast(
    values: ArrayLike,
    inside: ArrayLike,
    clusters: ArrayLike,
    rng: np.random.Generator,
    strata: ArrayLike | None = None,
    draws: int = DRAWS,
) -> Contrast:
    """The rate of a slice minus that of the rest, and the p that it is no higher.

    `values` are 1 for an item that was not detected, 0 for one that was, the share of repeats
    between, nan where missing (left out); `inside` says which items are in the slice. With s and
    y an item's membership and value less their means in its stratum, and
    n1k, n0k items of stratum k inside and beside:
    difference = sum s y / sum n1k n0k / nk (Mantel and Haenszel 1959; Greenland and Robins 1985),
    a stratum without either side having no say. The test divides sum s y by the root of the sum
    over clusters of (sum of the cluster's s y)^2, so that it stays right where items of a cluster
    are alike (Janssen 1997; Chung and Romano 2013), and compares it with memberships dealt anew:
    among whole clusters (of a stratum, if each lies in one) where the slice cuts none, else among
    the items of each stratum. p is
    (1 + as far) / (1 + draws), or 100 / the draws that it took to find 100 as far (Besag and
    Clifford 1991). With 20,000 items and 200 clusters on either side Student's t of m - 1 degrees
    of freedom takes the place of dealing, being what it tends to.

    No p for under 20 items or 10 clusters in the slice, without a rest, and where all items of
    every stratum are alike.
    """
    y, s = np.asarray(values, dtype=float), np.asarray(inside, dtype=bool)
    there = ~np.isnan(y)
    names = np.zeros(y.shape) if strata is None else np.asarray(strata)
    cluster, stratum = (
        np.unique(np.asarray(one)[there], return_inverse=True)[1] for one in (clusters, names)
    )
    table = _Table(y[there], s[there], cluster, stratum)
    n, held = int(table.inside.sum()), len(np.unique(cluster[table.inside]))
    rate, rest = (_mean(table.values[side]) for side in (table.inside, ~table.inside))
    weight = table.weight()
    difference = float(table.scores().sum() / weight) if weight else None
    reason = _reason(table, n, held)
    p = None if reason else _p(table, rng, draws)
    return Contrast(n, held, rate, rest, difference, p, reason)


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Items with a value: in the slice or not, the numbers of their cluster and stratum."""

    values: Floats
    inside: Bools
    cluster: Ints
    stratum: Ints

    def residuals(self) -> Floats:
        """Values less the mean of their stratum, 0 but for rounding if all are alike."""
        items = np.bincount(self.stratum)
        means = np.bincount(self.stratum, weights=self.values) / items
        apart = self.values - means[self.stratum]
        return np.where(np.abs(apart) > _ROUNDING, apart, 0.0)

    def shares(self) -> Floats:
        """The share of each stratum's items that is in the slice."""
        return np.bincount(self.stratum, weights=self.inside) / np.bincount(self.stratum)

    def scores(self) -> Floats:
        """Each item's part in the statistic."""
        return (self.inside - self.shares()[self.stratum]) * self.residuals()

    def weight(self) -> float:
        inside = np.bincount(self.stratum, weights=self.inside)
        items = np.bincount(self.stratum)
        return float((inside * (items - inside) / items).sum())

    def lopsided(self) -> bool:
        """Is one side of a single stratum so small that picking it costs less than dealing all?"""
        inside = int(self.inside.sum())
        few = min(inside, len(self.inside) - inside)
        return not self.stratum.any() and 4 * few <= len(self.inside)

    def cut(self) -> bool:
        """Is there a cluster with items inside and items beside?"""
        inside = np.bincount(self.cluster, weights=self.inside)
        return bool(((inside > 0) & (inside < np.bincount(self.cluster))).any())


def _reason(table: _Table, n: int, clusters: int) -> str:
    if n == 0:
        return NO_ITEMS
    if not table.weight():
        return NO_REST
    if n < FEWEST_ITEMS:
        return f"under {FEWEST_ITEMS} items"
    if clusters < FEWEST_CLUSTERS:
        return f"under {FEWEST_CLUSTERS} clusters"
    return "" if table.scores().any() else ALIKE


def _p(table: _Table, rng: np.random.Generator, draws: int) -> float:
    of_clusters: Floats = np.bincount(table.cluster, weights=table.scores()).astype(float)
    found = float(_studentised(of_clusters[None, :])[0])
    sides = (len(np.unique(table.cluster[side])) for side in (table.inside, ~table.inside))
    many = len(table.values) >= MANY_ITEMS
    if many and min(sides) >= MANY_CLUSTERS:
        return float(stdtr(len(of_clusters) - 1, -found))
    deal_items = _items_chosen if many or table.lopsided() else _items_dealt
    deal = deal_items if table.cut() else _clusters_dealt
    made = far = 0
    for block in deal(table, rng, draws):
        as_far = np.flatnonzero(_studentised(block) >= found - _ROUNDING)
        if far + len(as_far) >= ENOUGH:
            return ENOUGH / (made + int(as_far[ENOUGH - far - 1]) + 1)
        made, far = made + len(block), far + len(as_far)
    return (1 + far) / (1 + draws)


def _studentised(scores: Floats) -> Floats:
    """Sum over root of sum of squares, of draws x clusters; 0 where no cluster has a score."""
    spread = np.sqrt((scores**2).sum(axis=1))
    return np.divide(scores.sum(axis=1), spread, out=np.zeros(len(scores)), where=spread > 0)


def _clusters_dealt(table: _Table, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
    """Scores of clusters, draws x clusters, with other clusters in the slice, as many; of the same
    stratum, if each cluster lies in one."""
    m, k = int(table.cluster.max()) + 1, int(table.stratum.max()) + 1
    cell = table.cluster * k + table.stratum
    items, residuals = (
        np.bincount(cell, weights=weights, minlength=m * k).reshape(m, k)
        for weights in (None, table.residuals())
    )
    inside = np.bincount(table.cluster, weights=table.inside) > 0
    whole = bool(((items > 0).sum(axis=1) == 1).all())
    stratum = items.argmax(axis=1) if whole else np.zeros(m, dtype=int)
    for size in _blocks(draws, m):
        dealt = _dealt(inside, stratum, rng, size)
        shares = dealt @ items / items.sum(axis=0)
        yield dealt * residuals.sum(axis=1) - shares @ residuals.T


def _items_dealt(table: _Table, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
    """The same with other items of each stratum in the slice, as many."""
    residual = table.residuals()
    groups = csr_array(coo_array((residual, (np.arange(len(residual)), table.cluster))))
    expected = table.shares()[table.stratum] @ groups
    for size in _blocks(draws, len(residual)):
        dealt = _dealt(table.inside, table.stratum, rng, size)
        yield np.asarray(dealt @ groups) - expected


def _dealt(inside: Bools, stratum: Ints, rng: np.random.Generator, draws: int) -> Floats:
    """Memberships dealt anew within each stratum: draws x units."""
    found = np.empty((draws, len(inside)))
    for one in range(int(stratum.max()) + 1):
        places = np.flatnonzero(stratum == one)
        found[:, places] = rng.permuted(np.tile(inside[places], (draws, 1)), axis=1)
    return found


def _items_chosen(table: _Table, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
    """The same, touching only the items of the smaller side."""
    residual, cluster, stratum = table.residuals(), table.cluster, table.stratum
    m = int(cluster.max()) + 1
    inside = 2 * int(table.inside.sum()) <= len(table.values)
    few = table.inside if inside else ~table.inside
    order = np.argsort(stratum, kind="stable")
    places = np.split(order, np.cumsum(np.bincount(stratum))[:-1])
    counts = np.bincount(stratum, weights=few).astype(int)
    shares = table.shares() if inside else table.shares() - 1
    expected = np.bincount(cluster, weights=shares[stratum] * residual)
    for size in _blocks(draws, m):
        found = np.empty((size, m))
        for draw in range(size):
            picked = [
                of[rng.choice(len(of), n, replace=False, shuffle=False)]
                for of, n in zip(places, counts, strict=True)
            ]
            chosen = np.concatenate(picked)
            found[draw] = np.bincount(cluster[chosen], weights=residual[chosen], minlength=m)
        yield (found if inside else -found) - expected


def _blocks(draws: int, width: int) -> Iterator[int]:
    """Sizes of blocks: small at first, since most slices need few draws."""
    made, size = 0, ENOUGH
    while made < draws:
        block = max(1, min(size, _AT_A_TIME // width, draws - made))
        yield block
        made, size = made + block, 2 * size


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None
