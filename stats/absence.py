"""Do missing replies depend on what the items are? If so, what is left is no fair sample."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.estimates import PValue

DRAWS = 999
FEWEST_CLUSTERS = 10
ONE_GROUP = "one group"
ALIKE = "all replies are missing, or none"
_ROUNDING = 1e-9

Ints = NDArray[np.int_]
Floats = NDArray[np.float64]


def depends(
    missing: ArrayLike,
    groups: ArrayLike,
    clusters: ArrayLike,
    rng: np.random.Generator,
    draws: int = DRAWS,
) -> PValue:
    """The p that replies are missing regardless of the item's group, such as its category.

    All three hold one value an item, `missing` true or false. Of each group, the number of its
    missing replies less what its share of the items lets expect, T_k, is divided by the root of
    the sum over clusters of the squares of the cluster's part in it, since items of a cluster go
    missing together; the statistic is the sum over groups of the squares. It is compared with
    `draws` others: groups dealt anew among whole clusters if each lies in one group, else missing
    replies among items. p = (1 + as far) / (1 + draws); `n` counts missing replies.

    None with one group, under 10 clusters, and where all replies are missing or none is.
    """
    gone = np.asarray(missing, dtype=bool)
    k, group = _numbered(groups)
    m, cluster = _numbered(clusters)
    n = int(gone.sum())
    if k < 2:
        return PValue(None, n, ONE_GROUP)
    if n in (0, len(gone)):
        return PValue(None, n, ALIKE)
    if m < FEWEST_CLUSTERS:
        return PValue(None, n, f"under {FEWEST_CLUSTERS} clusters")
    cell = cluster * k + group
    items, absent = _table(cell, m, k), _table(cell[gone], m, k)
    found = _statistic(items, absent) - _ROUNDING
    whole = bool(((items > 0).sum(axis=1) == 1).all())
    dealt = _groups_dealt(items, absent, rng) if whole else _missing_dealt(cell, items, n, rng)
    as_far = sum(one >= found for one in islice(dealt, draws))
    return PValue((1 + as_far) / (1 + draws), n)


def _groups_dealt(items: Ints, absent: Ints, rng: np.random.Generator) -> Iterator[float]:
    """The statistic with the groups of clusters, one each, dealt anew among clusters."""
    m, k = items.shape
    group = items.argmax(axis=1)
    while True:
        cell = np.arange(m) * k + rng.permutation(group)
        tables = (_table(cell, m, k, of.sum(axis=1)) for of in (items, absent))
        yield _statistic(*tables)


def _missing_dealt(cell: Ints, items: Ints, n: int, rng: np.random.Generator) -> Iterator[float]:
    """The statistic with as many missing replies dealt anew among the items."""
    settled = _Settled.of(items, n / items.sum())
    while True:
        chosen = rng.choice(len(cell), n, replace=False, shuffle=False)
        yield settled.statistic(cell[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class _Settled:
    """What no dealing changes, so that only cells with a missing reply need be looked at.

    With a missing replies and i items of a cell, A and I of its cluster and r the rate, the excess
    is e = a - r i and that of the cluster E = A - r I; the sums over clusters of e^2, E^2 and E e
    are those of their parts, of which the ones without a are here.
    """

    items: Ints
    of_cluster: Ints
    of_group: Ints
    rate: float
    squares: Ints
    products: Ints

    @classmethod
    def of(cls, items: Ints, rate: float) -> "_Settled":
        of_cluster = items.sum(axis=1)
        squares = np.einsum("ck,ck->k", items, items)
        return cls(items, of_cluster, items.sum(axis=0), rate, squares, of_cluster @ items)

    def statistic(self, missing: Ints) -> float:
        """As `_statistic` has it, of the cells of the missing replies, each as often as it has."""
        k, r = len(self.of_group), self.rate
        cells, a = np.unique(missing, return_counts=True)
        cluster, group = np.divmod(cells, k)
        i = self.items[cluster, group]
        of_cluster = _by(cluster, a, len(self.of_cluster))
        held = np.flatnonzero(of_cluster)
        own = of_cluster[held]
        squares = _by(group, a * (a - 2 * r * i), k) + r * r * self.squares
        whole = float(self.of_cluster @ self.of_cluster)
        total = float(own @ (own - 2 * r * self.of_cluster[held])) + r * r * whole
        products = _by(group, a * (of_cluster[cluster] - r * self.of_cluster[cluster]), k)
        products += r * (r * self.products - own @ self.items[held])
        excess = _by(group, a, k) - r * self.of_group
        return _studentised(excess, squares, total, products, self.of_group)


def _by(group: Ints, weights: ArrayLike, k: int) -> Floats:
    sums: Floats = np.bincount(group, weights=weights, minlength=k).astype(float)
    return sums


def _statistic(items: Ints, absent: Ints) -> float:
    """Of items and missing replies, both clusters x groups."""
    rate = absent.sum() / items.sum()
    excess = absent - rate * items
    of_cluster = excess.sum(axis=1)
    squares = np.einsum("ck,ck->k", excess, excess)
    total, products = float(of_cluster @ of_cluster), of_cluster @ excess
    return _studentised(excess.sum(axis=0), squares, total, products, items.sum(axis=0))


def _studentised(
    excess: Floats, squares: Floats, total: float, products: Floats, items: Ints
) -> float:
    """Sum over groups of squared excess by its spread, of the sums over clusters of e^2, E^2 and
    E e: a cluster's part is its group's excess less that group's share of all its excess."""
    share = items / items.sum()
    spread = squares + share * (share * total - 2 * products)
    there = spread > _ROUNDING * squares
    return float((excess[there] ** 2 / spread[there]).sum())


def _table(cell: Ints, m: int, k: int, weights: Ints | None = None) -> Ints:
    return np.bincount(cell, weights=weights, minlength=m * k).reshape(m, k)


def _numbered(names: ArrayLike) -> tuple[int, Ints]:
    """How many there are, and the number of each."""
    known, number = np.unique(np.asarray(names), return_inverse=True)
    return len(known), number
