"""Test whether missing replies depend on the items; if so, the remaining replies are a biased
sample."""

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
    """Permutation p of the hypothesis that missingness is independent of the item's group.

    A group is, for example, a category. All three arrays hold one value per item; `missing` is true
    or false. For each group, T_k is the number of missing replies minus the number expected from
    the group's share of the items. T_k is divided by the square root of the sum of the clusters'
    squared contributions, since items of a cluster often go missing together. The statistic is the
    sum of the squares over the groups. This statistic is compared with `draws` permutations: if
    each cluster is in one group, the groups are permuted among whole clusters; otherwise the
    missing replies are permuted among items. p = (1 + permutations at least as extreme) / (1 +
    draws). `n` counts missing replies.

    p is None if there is one group, if there are under 10 clusters, or if all or no replies are
    missing.
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
    """The reason why there is no p; "" if there is one."""
    if groups < 2:
        return ONE_GROUP
    if is_alike:
        return ALL_ALIKE
    return f"under {FEWEST_CLUSTERS} clusters" if clusters < FEWEST_CLUSTERS else ""


def _permute_groups(items: Ints, absent: Ints, rng: np.random.Generator) -> Iterator[float]:
    """Yield the statistic for random permutations of the groups among clusters. Each cluster must
    be in one group."""
    m, k = items.shape
    group = items.argmax(axis=1)
    while True:
        cell = np.arange(m) * k + rng.permutation(group)
        tables = (_table(cell, m, k, of.sum(axis=1)) for of in (items, absent))
        yield _statistic(*tables)


def _permute_missing(cell: Ints, items: Ints, n: int, rng: np.random.Generator) -> Iterator[float]:
    """Yield the statistic for random choices of the items with missing replies; their number is
    fixed."""
    settled = _Invariants.from_cells(cell, items, n)
    while True:
        yield settled.statistic(rng.choice(len(cell), n, replace=False, shuffle=False))


@dataclass(frozen=True, slots=True, eq=False)
class _Invariants:
    """The quantities that are the same in every permutation. They are computed once, so that each
    permutation needs only the items with missing replies.

    A cell is the part of a cluster in one group. It has `a` missing replies among `i` items, its
    cluster has A among I, and r is the overall rate of missing replies. The excess of the cell is e
    = a - r i, the excess of the cluster E = A - r I. The sums over clusters of e^2, E^2 and E e are
    expanded; the parts without `a` are stored here. The sum over cells of `a` times a term of the
    cell equals the sum over the missing items of that term, taken for the item's cell. `cell`,
    `cluster`, `group`, `beside` (i) and `around` (I) have one entry per item; `table` is clusters x
    groups.
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
    def from_cells(cls, cell: Ints, items: Ints, n: int) -> "_Invariants":
        of_cluster = items.sum(axis=1)
        cluster, group = np.divmod(cell, items.shape[1])
        # Sums of whole numbers below 2^24 are exact in float32, which takes half the memory.
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
        """Compute the value of `_statistic` from the positions of the missing items."""
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
        """For each missing item, count the missing items in its cell. Most missing items are the
        only one in their cluster, so only the rest need counting."""
        a = np.ones(len(missing))
        shared = np.flatnonzero(own > 1)
        _, place, n = np.unique(self.cell[missing[shared]], return_inverse=True, return_counts=True)
        a[shared] = n[place]
        return a


def _sum_by_group(group: Ints, weights: Floats, k: int) -> Floats:
    sums: Floats = np.bincount(group, weights=weights, minlength=k).astype(float)
    return sums


def _statistic(items: Ints, absent: Ints) -> float:
    """The statistic from the counts of items and of missing replies, both clusters x groups."""
    rate = absent.sum() / items.sum()
    excess = absent - rate * items
    of_cluster = excess.sum(axis=1)
    squares = np.einsum("ck,ck->k", excess, excess)
    total, products = float(of_cluster @ of_cluster), of_cluster @ excess
    return _studentised(excess.sum(axis=0), squares, total, products, items.sum(axis=0))


def _studentised(
    excess: Floats, squares: Floats, total: float, products: Floats, items: Ints
) -> float:
    """Sum over groups of the squared excess divided by its variance.

    The variance comes from the sums over clusters of e^2 (`squares`), E^2 (`total`) and E e
    (`products`). A cluster contributes the excess of its group minus that group's share of the
    cluster's whole excess.
    """
    share = items / items.sum()
    spread = squares + share * (share * total - 2 * products)
    there = spread > _ROUNDING * squares
    return float((excess[there] ** 2 / spread[there]).sum())


def _table(cell: Ints, m: int, k: int, weights: Ints | None = None) -> Ints:
    return np.bincount(cell, weights=weights, minlength=m * k).reshape(m, k)


def _number_names(names: ArrayLike) -> tuple[int, Ints]:
    """Return the number of distinct names and, for each entry, the index of its name."""
    known, number = np.unique(np.asarray(names), return_inverse=True)
    return len(known), number
