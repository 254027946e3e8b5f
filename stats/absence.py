"""Do missing replies depend on what the items are? If so, what is left is no fair sample."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.estimates import PValue

PERMUTATIONS = 999
FEWEST_CLUSTERS = 10
ONE_GROUP = "one group"
ALL_ALIKE = "all replies are missing, or none"
_ROUNDING = 1e-9

Ints = NDArray[np.int_]
Floats = NDArray[np.float64]


def permutation_p_value(
    missing: ArrayLike,
    groups: ArrayLike,
    clusters: ArrayLike,
    rng: np.random.Generator,
    draws: int = PERMUTATIONS,
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
    k, group = _number_names(groups)
    m, cluster = _number_names(clusters)
    n = int(gone.sum())
    if reason := _undefined(k, m, is_alike=n in (0, len(gone))):
        return PValue(None, n, reason)
    cell = cluster * k + group
    items, absent = _table(cell, m, k), _table(cell[gone], m, k)
    found = _statistic(items, absent) - _ROUNDING
    whole = bool(((items > 0).sum(axis=1) == 1).all())
    dealt = _permute_groups(items, absent, rng) if whole else _permute_missing(cell, items, n, rng)
    as_far = sum(one >= found for one in islice(dealt, draws))
    return PValue((1 + as_far) / (1 + draws), n)


def _undefined(groups: int, clusters: int, *, is_alike: bool) -> str:
    """Why there is no p; "" if there is one."""
    if groups < 2:
        return ONE_GROUP
    if is_alike:
        return ALL_ALIKE
    return f"under {FEWEST_CLUSTERS} clusters" if clusters < FEWEST_CLUSTERS else ""


def _permute_groups(items: Ints, absent: Ints, rng: np.random.Generator) -> Iterator[float]:
    """The statistic with the groups of clusters, one each, dealt anew among clusters."""
    m, k = items.shape
    group = items.argmax(axis=1)
    while True:
        cell = np.arange(m) * k + rng.permutation(group)
        tables = (_table(cell, m, k, of.sum(axis=1)) for of in (items, absent))
        yield _statistic(*tables)


def _permute_missing(cell: Ints, items: Ints, n: int, rng: np.random.Generator) -> Iterator[float]:
    """The statistic with as many missing replies dealt anew among the items."""
    settled = _Invariants.of(cell, items, n)
    while True:
        yield settled.statistic(rng.choice(len(cell), n, replace=False, shuffle=False))


@dataclass(frozen=True, slots=True, eq=False)
class _Invariants:
    """What no dealing changes, so that only the missing items need be looked at.

    With a missing replies and i items of a cell, A and I of its cluster and r the rate, the excess
    is e = a - r i and that of the cluster E = A - r I; the sums over clusters of e^2, E^2 and E e
    are those of their parts, of which the ones without a are here. A sum over cells of a times
    something is one over the missing items, each adding that of its cell. `cell`, `cluster`,
    `group`, `beside` (i) and `around` (I) have an entry an item; `table` is clusters x groups.
    """

    cell: Ints
    cluster: Ints
    group: Ints
    beside: Floats
    around: Floats
    table: NDArray[np.floating[Any]]
    of_group: Ints
    rate: float
    squares: Ints
    products: Ints
    whole: float

    @classmethod
    def of(cls, cell: Ints, items: Ints, n: int) -> "_Invariants":
        of_cluster = items.sum(axis=1)
        cluster, group = np.divmod(cell, items.shape[1])
        # Sums of whole numbers below 2^24 are exact at half the room.
        exact = np.float32 if n * int(items.max()) < 2**24 else np.float64
        return cls(
            cell=cell,
            cluster=cluster,
            group=group,
            beside=items[cluster, group].astype(float),
            around=of_cluster[cluster].astype(float),
            table=items.astype(exact),
            of_group=items.sum(axis=0),
            rate=n / items.sum(),
            squares=np.einsum("ck,ck->k", items, items),
            products=of_cluster @ items,
            whole=float(of_cluster @ of_cluster),
        )

    def statistic(self, missing: Ints) -> float:
        """As `_statistic` has it, of the items that are missing."""
        k, r = len(self.of_group), self.rate
        cluster, group, around = self.cluster[missing], self.group[missing], self.around[missing]
        own = np.bincount(cluster, minlength=len(self.table))[cluster]
        a = self._missing_beside(missing, own)
        squares = _sum_by_group(group, a - 2 * r * self.beside[missing], k) + r * r * self.squares
        total = float(own.sum() - 2 * r * around.sum()) + r * r * self.whole
        beside = np.ones(len(missing), self.table.dtype) @ np.take(self.table, cluster, axis=0)
        products = _sum_by_group(group, own - r * around, k) + r * (r * self.products - beside)
        excess = np.bincount(group, minlength=k) - r * self.of_group
        return _studentised(excess, squares, total, products, self.of_group)

    def _missing_beside(self, missing: Ints, own: Ints) -> Floats:
        """How many are missing in the cell of each; few share even a cluster with another."""
        a = np.ones(len(missing))
        shared = np.flatnonzero(own > 1)
        _, place, n = np.unique(self.cell[missing[shared]], return_inverse=True, return_counts=True)
        a[shared] = n[place]
        return a


def _sum_by_group(group: Ints, weights: Floats, k: int) -> Floats:
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


def _number_names(names: ArrayLike) -> tuple[int, Ints]:
    """How many there are, and the number of each."""
    known, number = np.unique(np.asarray(names), return_inverse=True)
    return len(known), number
