"""Do missing replies depend on what the items are? If so, what is left is no fair sample."""

from collections.abc import Iterator
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
Tables = tuple[Ints, Ints]


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
    as_far = sum(_statistic(*drawn) >= found for drawn in islice(dealt, draws))
    return PValue((1 + as_far) / (1 + draws), n)


def _groups_dealt(items: Ints, absent: Ints, rng: np.random.Generator) -> Iterator[Tables]:
    """Items and missing replies with the groups of clusters, one each, dealt among clusters."""
    m, k = items.shape
    group = items.argmax(axis=1)
    while True:
        cell = np.arange(m) * k + rng.permutation(group)
        yield _table(cell, m, k, items.sum(axis=1)), _table(cell, m, k, absent.sum(axis=1))


def _missing_dealt(cell: Ints, items: Ints, n: int, rng: np.random.Generator) -> Iterator[Tables]:
    """The items as they are, and as many missing replies dealt among them."""
    while True:
        chosen = rng.choice(len(cell), n, replace=False, shuffle=False)
        yield items, _table(cell[chosen], *items.shape)


def _statistic(items: Ints, absent: Ints) -> float:
    """Of items and missing replies, both clusters x groups."""
    rate = absent.sum() / items.sum()
    share = items.sum(axis=0) / items.sum()
    excess = absent - rate * items
    of_cluster = excess.sum(axis=1)
    # A cluster's part is its group's excess less that group's share of all its excess; here its
    # square multiplied out, which goes over the table once instead of five times.
    squares = np.einsum("ck,ck->k", excess, excess)
    spread = squares + share * (share * (of_cluster @ of_cluster) - 2 * (of_cluster @ excess))
    there = spread > _ROUNDING * squares
    return float((excess.sum(axis=0)[there] ** 2 / spread[there]).sum())


def _table(cell: Ints, m: int, k: int, weights: Ints | None = None) -> Ints:
    return np.bincount(cell, weights=weights, minlength=m * k).reshape(m, k)


def _numbered(names: ArrayLike) -> tuple[int, Ints]:
    """How many there are, and the number of each."""
    known, number = np.unique(np.asarray(names), return_inverse=True)
    return len(known), number
