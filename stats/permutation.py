"""Slices dealt anew: what the scores of clusters are where chance says who is in a slice."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

# Draws of the first block: most slices need no more.
FIRST_BLOCK = 100
# So many items are dealt as a whole faster than some of them are picked.
FEW_DRAWS = 1_000
_AT_A_TIME = 1_000_000

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int_]


@dataclass(frozen=True, slots=True, eq=False)
class SliceTable:
    """Items: in the slice or not, the numbers of their cluster and stratum, and their values less
    the mean of their stratum."""

    residuals: Floats
    inside: Bools
    cluster: Ints
    stratum: Ints

    def only(self, these: Bools) -> "SliceTable":
        """Some of the items, with numbers that leave none out."""
        cluster, stratum = (
            np.unique(one[these], return_inverse=True)[1] for one in (self.cluster, self.stratum)
        )
        return SliceTable(self.residuals[these], self.inside[these], cluster, stratum)

    def shares(self) -> Floats:
        """The share of each stratum's items that is in the slice."""
        return np.bincount(self.stratum, weights=self.inside) / np.bincount(self.stratum)

    def lopsided(self) -> bool:
        """Is one side of a single stratum so small that picking it costs less than dealing all?"""
        inside = int(self.inside.sum())
        few = min(inside, len(self.inside) - inside)
        return (
            not self.stratum.any() and 4 * few <= len(self.inside) and len(self.inside) > FEW_DRAWS
        )


def permute_clusters(table: SliceTable, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
    """Scores of clusters, draws x clusters, with other clusters in the slice, as many; of the same
    stratum, if each cluster lies in one."""
    m, k = int(table.cluster.max()) + 1, int(table.stratum.max()) + 1
    cell = table.cluster * k + table.stratum
    items, residuals = (
        np.bincount(cell, weights=weights, minlength=m * k).reshape(m, k)
        for weights in (None, table.residuals)
    )
    inside = np.bincount(table.cluster, weights=table.inside) > 0
    whole = bool(((items > 0).sum(axis=1) == 1).all())
    stratum = items.argmax(axis=1) if whole else np.zeros(m, dtype=int)
    for size in _block_sizes(draws, m):
        dealt = _permute_membership(inside, stratum, rng, size)
        shares = dealt @ items / items.sum(axis=0)
        yield dealt * residuals.sum(axis=1) - shares @ residuals.T


def permute_items(table: SliceTable, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
    """The same with other items of each stratum in the slice, as many."""
    residual = table.residuals
    # Sparse times dense: the other way round takes a hundred times as long.
    groups = csr_array(coo_array((residual, (table.cluster, np.arange(len(residual))))))
    expected = groups @ table.shares()[table.stratum]
    for size in _block_sizes(draws, len(residual)):
        dealt = _permute_membership(table.inside, table.stratum, rng, size)
        yield np.asarray(groups @ dealt.T).T - expected


def _permute_membership(
    inside: Bools, stratum: Ints, rng: np.random.Generator, draws: int
) -> Floats:
    """Memberships dealt anew within each stratum: draws x units, draws side by side in memory."""
    found = np.empty((len(inside), draws))
    for one in range(int(stratum.max()) + 1):
        places = np.flatnonzero(stratum == one)
        found[places] = rng.permuted(np.tile(inside[places], (draws, 1)), axis=1).T
    return found.T


def permute_few_items(table: SliceTable, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
    """The same, touching only the items of the smaller side."""
    residual, cluster, stratum = table.residuals, table.cluster, table.stratum
    m = int(cluster.max()) + 1
    inside = 2 * int(table.inside.sum()) <= len(table.residuals)
    few = table.inside if inside else ~table.inside
    order = np.argsort(stratum, kind="stable")
    places = np.split(order, np.cumsum(np.bincount(stratum))[:-1])
    counts = np.bincount(stratum, weights=few).astype(int)
    shares = table.shares() if inside else table.shares() - 1
    expected = np.bincount(cluster, weights=shares[stratum] * residual)
    for size in _block_sizes(draws, m):
        found = np.empty((size, m))
        for draw in range(size):
            picked = [
                of[rng.choice(len(of), n, replace=False, shuffle=False)]
                for of, n in zip(places, counts, strict=True)
            ]
            chosen = np.concatenate(picked)
            found[draw] = np.bincount(cluster[chosen], weights=residual[chosen], minlength=m)
        yield (found if inside else -found) - expected


def _block_sizes(draws: int, width: int) -> Iterator[int]:
    """Sizes of blocks: small at first, since most slices need few draws."""
    made, size = 0, FIRST_BLOCK
    while made < draws:
        block = max(1, min(size, _AT_A_TIME // width, draws - made))
        yield block
        made, size = made + block, 2 * size
