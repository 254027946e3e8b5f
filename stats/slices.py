"""Is a slice of the items missed more often than the rest? Used to search for blind spots.

The slice is compared with the rest within strata, such as categories, so that a slice with many
items of hard categories is not called blind; without strata it is compared with the whole rest.

The functions that permute return the scores of clusters for random slices.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array
from scipy.special import stdtr, stdtrit

from stats.rates import clustered_wilson, sum_cluster_arrays

# Draws in the first block; most slices need no more.
FIRST_BLOCK = 100
# Up to this many items, permuting all of them is faster than picking some of them.
FEW_DRAWS = 1_000
_AT_A_TIME = 1_000_000

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int_]


@dataclass(frozen=True, slots=True, eq=False)
class SliceTable:
    """Items with their slice membership, the numbers of their cluster and stratum, and their
    residuals (value minus the mean of the stratum)."""

    residuals: Floats
    inside: Bools
    cluster: Ints
    stratum: Ints

    def only(self, these: Bools) -> "SliceTable":
        """Some of the items, with clusters and strata renumbered without gaps."""
        cluster, stratum = (
            np.unique(one[these], return_inverse=True)[1] for one in (self.cluster, self.stratum)
        )
        return SliceTable(self.residuals[these], self.inside[these], cluster, stratum)

    def shares(self) -> Floats:
        """The share of each stratum's items that are in the slice."""
        return np.bincount(self.stratum, weights=self.inside) / np.bincount(self.stratum)

    def lopsided(self) -> bool:
        """True if there is one stratum and one side is so small that picking its items is faster
        than permuting all items."""
        inside = int(self.inside.sum())
        few = min(inside, len(self.inside) - inside)
        return (
            not self.stratum.any() and 4 * few <= len(self.inside) and len(self.inside) > FEW_DRAWS
        )


def permute_clusters(table: SliceTable, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
    """Return the clusters' scores, draws x clusters, for random slices with the same number of
    clusters.

    If each cluster is in one stratum, clusters are permuted within strata.
    """
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
    """Return the clusters' scores, draws x clusters, for random slices with the same number of
    items from each stratum."""
    residual = table.residuals
    # Multiply sparse by dense; the other order takes a hundred times as long.
    groups = csr_array(coo_array((residual, (table.cluster, np.arange(len(residual))))))
    expected = groups @ table.shares()[table.stratum]
    for size in _block_sizes(draws, len(residual)):
        dealt = _permute_membership(table.inside, table.stratum, rng, size)
        yield np.asarray(groups @ dealt.T).T - expected


def _permute_membership(
    inside: Bools, stratum: Ints, rng: np.random.Generator, draws: int
) -> Floats:
    """Membership permuted within each stratum: draws x units, each unit contiguous in memory."""
    found = np.empty((len(inside), draws))
    for one in range(int(stratum.max()) + 1):
        places = np.flatnonzero(stratum == one)
        found[places] = rng.permuted(np.tile(inside[places], (draws, 1)), axis=1).T
    return found.T


def permute_few_items(table: SliceTable, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
    """The same as `permute_items`, but only the items of the smaller side are drawn."""
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


# The conditions for a blind spot on a page: minimum size, and minimum distance above the rest (as
# a share).
FEWEST_ITEMS = 20
FEWEST_CLUSTERS = 10
# The same for the other items, in strata that the slice has too: else a large slice would be
# compared with one or two.
FEWEST_OTHERS, FEWEST_OTHER_CLUSTERS = 10, 5
LEAST_DIFFERENCE = 0.10
LEVEL = 0.95
DRAWS = 9_999
# With this many extreme draws, p is known to a tenth of its value.
ENOUGH_EXTREME = 100
# From these sizes on (clusters on either side), the permuted statistic follows its limiting
# distribution.
MANY_ITEMS, MANY_CLUSTERS = 20_000, 200
_ROUNDING = 1e-9

NO_ITEMS = "no items in the slice"
NO_REST = "no items beside the slice"
ALL_ALIKE = "all comparable items are alike"


@dataclass(frozen=True, slots=True)
class SliceContrast:
    """A slice against the rest: rates as fractions of 1, None where there are no items.

    The slice has `n` items in `clusters` clusters, the rest `rest_n` items. Both rates have the
    interval of `rates.clustered_wilson`. `difference` is the Mantel-Haenszel difference, with an
    interval where there is a p. `p` is one-sided, for the hypothesis that the slice has no higher
    rate; `reason` says why it is None.
    """

    n: int
    clusters: int
    rate: float | None
    low: float | None
    high: float | None
    rest: float | None
    rest_low: float | None
    rest_high: float | None
    rest_n: int
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    p: float | None
    reason: str = ""


def contrast_slice(
    values: ArrayLike,
    inside: ArrayLike,
    clusters: ArrayLike,
    rng: np.random.Generator,
    strata: ArrayLike | None = None,
    draws: int = DRAWS,
) -> SliceContrast:
    """The rate of a slice minus the rate of the rest, and the one-sided p of "it is no higher".

    `values` are 1 for an item that was not detected, 0 for one that was, the share of repeats in
    between, nan if missing (left out); `inside` says which items are in the slice. Let s and y be
    an item's membership and value minus their means in its stratum, and n1k, n0k the items of
    stratum k in the slice and in the rest. Then
    difference = sum s y / sum n1k n0k / nk (Mantel and Haenszel 1959; Greenland and Robins 1985);
    a stratum with only one side has no weight. Its 95 % interval: difference +- t v^0.5, clipped to
    -1 and 1, where v = m / (m - 1) sum over clusters of (sum of s y - difference sum of s^2)^2 /
    (sum n1k n0k / nk)^2 and t has as many degrees of freedom as the side with fewer clusters has
    clusters, minus 1.

    The test statistic is sum s y divided by the root of the sum over clusters of (sum of the
    cluster's s y)^2, so that it remains valid if items of a cluster are alike (Janssen 1997; Chung
    and Romano 2013). It is compared with permuted memberships. If the slice splits no cluster,
    whole clusters are permuted (within strata if each cluster is in one), otherwise the items of
    each stratum. p is (1 + extreme draws) / (1 + draws), or 100 / the number of draws needed to
    find 100 extreme ones (Besag and Clifford 1991). A draw is extreme if its statistic is at least
    the observed one.

    If no draw is extreme, Student's t shows how much smaller p is, so that p can stay small after a
    correction for any number of slices. t is sum s y divided by the root of a sum of squares over
    clusters: either the sum for the scores with the difference subtracted from y, or the mean sum
    over the permuted scores, whichever is larger. Its degrees of freedom are the number of clusters
    on the side with fewer clusters, minus 1. With at least 20,000 items in all and 200 clusters on
    either side, t with m - 1 degrees of freedom (m clusters) replaces the permutation, since it is
    the limit of the permuted statistic.

    There is no p and no interval if the slice has under 20 items or 10 clusters in strata that the
    rest is in too, if the rest has under 10 items or 5 clusters in these strata, or if within every
    such stratum all items are alike.
    """
    return SliceableItems.from_values(values, clusters, strata).contrast(inside, rng, draws)


@dataclass(frozen=True, slots=True, eq=False)
class SliceableItems:
    """Items to slice, prepared once for any number of slices.

    `there` says which of all items have a value; the other fields cover only these: values, numbers
    of cluster and stratum, residuals (values minus the mean of their stratum, exactly 0 if all are
    alike), and the sums of the residuals, clusters x strata.
    """

    there: Bools
    values: Floats
    cluster: Ints
    stratum: Ints
    residuals: Floats
    summed: csr_array

    @classmethod
    def from_values(
        cls, values: ArrayLike, clusters: ArrayLike, strata: ArrayLike | None = None
    ) -> "SliceableItems":
        """Prepare items from the values, clusters and strata that `contrast_slice` takes."""
        y = np.asarray(values, dtype=float)
        there = ~np.isnan(y)
        names = np.zeros(y.shape) if strata is None else np.asarray(strata)
        cluster, stratum = (
            np.unique(np.asarray(one)[there], return_inverse=True)[1] for one in (clusters, names)
        )
        y = y[there]
        means = np.bincount(stratum, weights=y) / np.bincount(stratum)
        residuals = y - means[stratum]
        residuals[np.abs(residuals) <= _ROUNDING] = 0
        summed = (
            csr_array(coo_array((residuals, (cluster, stratum)))) if len(y) else csr_array((0, 0))
        )
        return cls(there, y, cluster, stratum, residuals, summed)

    def contrast(
        self, inside: ArrayLike, rng: np.random.Generator, draws: int = DRAWS
    ) -> SliceContrast:
        """Compare a slice with the other items; `inside` says for each of all items whether it is
        in the slice."""
        part = _SliceItems.from_places(
            self, np.flatnonzero(np.asarray(inside, dtype=bool)[self.there])
        )
        rate, rest = (clustered_wilson(sum_cluster_arrays(*side)) for side in part.sides(self))
        difference = float(part.scores.sum() / part.weight) if part.weight else None
        reason = part.reason()
        width = None if reason or difference is None else _find_width(self, part)
        low = high = None
        if width is not None and difference is not None:
            low, high = max(-1.0, difference - width), min(1.0, difference + width)
        return SliceContrast(
            n=rate.n,
            clusters=part.clusters,
            rate=rate.value,
            low=rate.low,
            high=rate.high,
            rest=rest.value,
            rest_low=rest.low,
            rest_high=rest.high,
            rest_n=rest.n,
            difference=difference,
            difference_low=low,
            difference_high=high,
            p=None if reason else _p_value(self, part, rng, draws),
            reason=reason,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _SliceItems:
    """A slice of the items.

    `chosen` are the positions of its items, `items` their number per cluster, `scores` the
    contribution of each cluster to the statistic, and `weight` the denominator of the difference.
    `mixed` marks the strata with both sides; `compared` and `compared_clusters` count the items and
    clusters of the slice in these, `others` and `other_clusters` those of the rest; `alike` says
    whether within each of these strata all items have equal values.
    """

    chosen: Ints
    items: Ints
    scores: Floats
    weight: float
    mixed: Bools
    compared: int
    compared_clusters: int
    others: int
    other_clusters: int
    alike: bool

    @classmethod
    def from_places(cls, among: SliceableItems, chosen: Ints) -> "_SliceItems":
        m, k = among.summed.shape
        cluster, stratum = among.cluster[chosen], among.stratum[chosen]
        counts, inside = np.bincount(among.stratum), np.bincount(stratum, minlength=k)
        own = np.bincount(cluster, weights=among.residuals[chosen], minlength=m)
        weights = inside * (counts - inside) / counts
        apart = np.bincount(among.stratum, weights=np.abs(among.residuals))
        beside = (weights > 0)[among.stratum]
        beside[chosen] = False
        return cls(
            chosen=chosen,
            items=np.bincount(cluster, minlength=m),
            scores=own - among.summed @ (inside / counts),
            weight=float(weights.sum()),
            mixed=weights > 0,
            compared=int(inside[weights > 0].sum()),
            compared_clusters=len(np.unique(cluster[weights[stratum] > 0])),
            others=int(np.count_nonzero(beside)),
            other_clusters=len(np.unique(among.cluster[beside])),
            alike=not apart[weights > 0].any(),
        )

    @property
    def clusters(self) -> int:
        return int(np.count_nonzero(self.items))

    def sides(self, among: SliceableItems) -> tuple[tuple[Ints, Floats], tuple[Ints, Floats]]:
        """Items and hits per cluster, in the slice and in the rest."""
        cluster = among.cluster
        items = np.bincount(cluster)
        hits = np.bincount(cluster, weights=among.values).astype(float)
        own = np.bincount(
            cluster[self.chosen], weights=among.values[self.chosen], minlength=len(items)
        ).astype(float)
        return (self.items, own), (items - self.items, hits - own)

    def reason(self) -> str:
        """The reason why there is no p; "" if there is one."""
        if len(self.chosen) == 0:
            return NO_ITEMS
        if not self.weight:
            return NO_REST
        if len(self.chosen) < FEWEST_ITEMS:
            return f"under {FEWEST_ITEMS} items"
        if self.compared < FEWEST_ITEMS:
            return f"under {FEWEST_ITEMS} items in categories that others are in too"
        if self.compared_clusters < FEWEST_CLUSTERS:
            return f"under {FEWEST_CLUSTERS} clusters"
        if self.others < FEWEST_OTHERS:
            return f"under {FEWEST_OTHERS} other items to compare with"
        if self.other_clusters < FEWEST_OTHER_CLUSTERS:
            return f"other items to compare with in under {FEWEST_OTHER_CLUSTERS} clusters"
        return ALL_ALIKE if self.alike else ""


def _p_value(
    among: SliceableItems, part: _SliceItems, rng: np.random.Generator, draws: int
) -> float:
    found = float(_studentised(part.scores[None, :])[0])
    every = np.bincount(among.cluster)
    many = len(among.values) >= MANY_ITEMS
    beside = int(np.count_nonzero(every > part.items))
    if many and min(part.clusters, beside) >= MANY_CLUSTERS:
        return float(stdtr(len(every) - 1, -found))
    made, far, squares = 0, 0, 0.0
    for block in _permuted_scores(among, part, rng, draws):
        as_far = np.flatnonzero(_studentised(block) >= found - _ROUNDING)
        if far + len(as_far) >= ENOUGH_EXTREME:
            return ENOUGH_EXTREME / (made + int(as_far[ENOUGH_EXTREME - far - 1]) + 1)
        made, far = made + len(block), far + len(as_far)
        squares += float(np.einsum("ij,ij->", block, block))
    if far:
        return (1 + far) / (1 + draws)
    spread = sqrt(max(_residual_squares(among, part), squares / draws))
    fewer = min(part.clusters, beside)
    return min(1 / (1 + draws), float(stdtr(max(1, fewer - 1), -part.scores.sum() / spread)))


def _find_width(among: SliceableItems, part: _SliceItems) -> float | None:
    """Half the width of the interval of the difference; None if nothing varies."""
    squares = _residual_squares(among, part)
    if squares <= _ROUNDING:
        return None
    m = len(part.items)
    fewer = max(1, min(part.compared_clusters, part.other_clusters) - 1)
    quantile = float(stdtrit(fewer, (1 + LEVEL) / 2))
    return quantile * sqrt(m / (m - 1) * squares) / part.weight


def _residual_squares(among: SliceableItems, part: _SliceItems) -> float:
    """The sum of squares of the clusters' scores after the difference is subtracted from the values
    of the slice.

    With s an item's membership minus its mean, a cluster's score is reduced by the difference times
    its sum s^2.
    """
    m, k = among.summed.shape
    shares = np.bincount(among.stratum[part.chosen], minlength=k) / np.bincount(among.stratum)
    inside = np.bincount(
        among.cluster[part.chosen], weights=1 - 2 * shares[among.stratum[part.chosen]], minlength=m
    )
    squares = np.bincount(among.cluster, weights=shares[among.stratum] ** 2) + inside
    return float(((part.scores - part.scores.sum() / part.weight * squares) ** 2).sum())


def _permuted_scores(
    among: SliceableItems, part: _SliceItems, rng: np.random.Generator, draws: int
) -> Iterator[Floats]:
    inside = np.zeros(len(among.values), dtype=bool)
    inside[part.chosen] = True
    every = SliceTable(among.residuals, inside, among.cluster, among.stratum)
    if not ((part.items > 0) & (part.items < np.bincount(among.cluster))).any():
        return permute_clusters(every, rng, draws)
    # Items of a stratum with only one side have no score in any permutation.
    table = every.only(part.mixed[among.stratum])
    many = len(among.values) >= MANY_ITEMS or table.lopsided()
    return (permute_few_items if many else permute_items)(table, rng, draws)


def _studentised(scores: Floats) -> Floats:
    """The sum of each draw's cluster scores divided by the root of their sum of squares; 0 if no
    cluster has a score."""
    spread = np.sqrt((scores**2).sum(axis=1))
    return np.divide(scores.sum(axis=1), spread, out=np.zeros(len(scores)), where=spread > 0)
