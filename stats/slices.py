"""Is a slice of the items missed more often than the rest? Used to search for blind spots.

The slice is compared with the rest within strata, such as categories, so that a slice with many
items of hard categories is not called blind; without strata it is compared with the whole rest.
All slices of the same items share their permutations.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array
from scipy.special import stdtr, stdtrit

from stats.rates import clustered_wilson, sum_cluster_arrays

# Draws in the first block; most slices need no more.
FIRST_BLOCK = 100
# Bytes of permutations kept for the next slices, enough for 9,999 of 2,500 items. The clusters have
# as many bytes beside, so one set of items needs at most 100 MB.
KEPT_BYTES = 50_000_000
_AT_A_TIME = 1_000_000

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int_]


class Permutations:
    """Random permutations of units within their strata, drawn once for any number of slices.

    Permuted positions come in blocks, draws x units. Each block has its own generator, so it has
    the same numbers whatever was drawn before. At most `KEPT_BYTES` of blocks are kept; those
    beyond are drawn anew for each slice.
    """

    def __init__(self, stratum: Ints, *seed: int) -> None:
        self.units = len(stratum)
        order = np.argsort(stratum, kind="stable").astype(np.min_scalar_type(self.units))
        self.places = np.split(order, np.cumsum(np.bincount(stratum))[:-1])
        self.seed = seed
        self.kept: list[NDArray[Any]] = []

    def blocks(self, draws: int) -> Iterator[NDArray[Any]]:
        """The first `draws` permutations."""
        made = 0
        for number, size in enumerate(_block_sizes(self.units)):
            if made >= draws:
                return
            block = self.kept[number] if number < len(self.kept) else self._draw(number, size)
            yield block[: draws - made]
            made += size

    def _draw(self, number: int, size: int) -> NDArray[Any]:
        rng = np.random.Generator(np.random.PCG64([*self.seed, number]))
        found = np.empty((size, self.units), dtype=self.places[0].dtype)
        for places in self.places:
            found[:, places] = rng.permuted(np.tile(places, (size, 1)), axis=1)
        if number == len(self.kept) and self.kept_bytes + found.nbytes <= KEPT_BYTES:
            self.kept.append(found)
        return found

    @property
    def kept_bytes(self) -> int:
        """The memory of the permutations that are kept."""
        return sum(block.nbytes for block in self.kept)


def _block_sizes(width: int) -> Iterator[int]:
    """Sizes of blocks: small at first, since most slices need few draws."""
    most = max(1, _AT_A_TIME // width)
    size = min(FIRST_BLOCK, most)
    while True:
        yield size
        size = min(2 * size, most)


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
    interval where there is a p; it compares `compared` items of the slice with `rest_compared` of
    the rest, those in strata that have both. `p` is one-sided, for the hypothesis that the slice
    has no higher rate; `reason` says why it is None.
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
    compared: int
    rest_compared: int
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
    each stratum. `rng` gives the seed of these permutations, which are drawn once for all slices of
    a `SliceableItems`; with 20,000 items or more the items of each slice are drawn on their own. p
    is (1 + extreme draws) / (1 + draws), or 100 / the number of draws needed to find 100 extreme
    ones (Besag and Clifford 1991). A draw is extreme if its statistic is at least the observed one.

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
    return SliceableItems.from_values(values, clusters, rng, strata).contrast(inside, draws)


@dataclass(frozen=True, slots=True, eq=False)
class SliceableItems:
    """Items to slice, prepared once for any number of slices.

    `there` says which of all items have a value; the other fields cover only these: values, numbers
    of cluster and stratum, residuals (values minus the mean of their stratum, exactly 0 if all are
    alike), the number of items and the sum of values of each cluster, the number of items of each
    stratum and whether its items differ, and the sums of the residuals, clusters x strata.
    `permuted_items` and `permuted_clusters` are the permutations for all slices; `seed` is that of
    draws for large data.
    """

    there: Bools
    values: Floats
    cluster: Ints
    stratum: Ints
    residuals: Floats
    cluster_items: Ints
    cluster_sums: Floats
    stratum_items: Ints
    stratum_differs: Bools
    summed: csr_array
    permuted_items: Permutations
    permuted_clusters: Permutations
    seed: int

    @classmethod
    def from_values(
        cls,
        values: ArrayLike,
        clusters: ArrayLike,
        rng: np.random.Generator,
        strata: ArrayLike | None = None,
    ) -> "SliceableItems":
        """Prepare items from the values, clusters and strata that `contrast_slice` takes. `rng`
        gives the seed of the permutations of all slices."""
        y = np.asarray(values, dtype=float)
        there = ~np.isnan(y)
        names = np.zeros(y.shape) if strata is None else np.asarray(strata)
        cluster, stratum = (
            np.unique(np.asarray(one)[there], return_inverse=True)[1] for one in (clusters, names)
        )
        y = y[there]
        counts = np.bincount(stratum)
        means = np.bincount(stratum, weights=y) / counts
        residuals = y - means[stratum]
        residuals[np.abs(residuals) <= _ROUNDING] = 0
        summed = (
            csr_array(coo_array((residuals, (cluster, stratum)))) if len(y) else csr_array((0, 0))
        )
        # Clusters are permuted within strata if each is in one.
        first = np.zeros(summed.shape[0], dtype=int)
        first[cluster] = stratum
        whole = bool((first[cluster] == stratum).all())
        seed = int(rng.integers(2**63))
        return cls(
            there=there,
            values=y,
            cluster=cluster,
            stratum=stratum,
            residuals=residuals,
            cluster_items=np.bincount(cluster),
            cluster_sums=np.bincount(cluster, weights=y).astype(float),
            stratum_items=counts,
            stratum_differs=np.bincount(stratum, weights=np.abs(residuals)) > 0,
            summed=summed,
            permuted_items=Permutations(stratum, seed, 0),
            permuted_clusters=Permutations(first if whole else np.zeros_like(first), seed, 1),
            seed=seed,
        )

    def contrast(self, inside: ArrayLike, draws: int = DRAWS) -> SliceContrast:
        """Compare a slice with the other items; `inside` says for each of all items whether it is
        in the slice. The result does not depend on which slices were compared before."""
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
            compared=part.compared,
            rest_compared=part.others,
            p=None if reason else _p_value(self, part, draws),
            reason=reason,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _SliceItems:
    """A slice of the items.

    `chosen` are the positions of its items, `items` their number per cluster, `scores` the
    contribution of each cluster to the statistic, and `weight` the denominator of the difference.
    `compared` and `compared_clusters` count the items and clusters of the slice in the strata with
    both sides, `others` and `other_clusters` those of the rest; `alike` says whether within each of
    these strata all items have equal values.
    """

    chosen: Ints
    items: Ints
    scores: Floats
    weight: float
    compared: int
    compared_clusters: int
    others: int
    other_clusters: int
    alike: bool

    @classmethod
    def from_places(cls, among: SliceableItems, chosen: Ints) -> "_SliceItems":
        m, k = among.summed.shape
        cluster, stratum = among.cluster[chosen], among.stratum[chosen]
        counts, inside = among.stratum_items, np.bincount(stratum, minlength=k)
        own = np.bincount(cluster, weights=among.residuals[chosen], minlength=m)
        weights = inside * (counts - inside) / counts
        beside = (weights > 0)[among.stratum]
        beside[chosen] = False
        return cls(
            chosen=chosen,
            items=np.bincount(cluster, minlength=m),
            scores=own - among.summed @ (inside / counts),
            weight=float(weights.sum()),
            compared=int(inside[weights > 0].sum()),
            compared_clusters=_count_different(cluster[weights[stratum] > 0]),
            others=int(np.count_nonzero(beside)),
            other_clusters=_count_different(among.cluster[beside]),
            alike=not among.stratum_differs[weights > 0].any(),
        )

    @property
    def clusters(self) -> int:
        return int(np.count_nonzero(self.items))

    def sides(self, among: SliceableItems) -> tuple[tuple[Ints, Floats], tuple[Ints, Floats]]:
        """Items and hits per cluster, in the slice and in the rest."""
        cluster, values = among.cluster[self.chosen], among.values[self.chosen]
        own = np.bincount(cluster, weights=values, minlength=len(self.items)).astype(float)
        return (self.items, own), (among.cluster_items - self.items, among.cluster_sums - own)

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


def _count_different(numbers: Ints) -> int:
    """How many different numbers there are. Faster than sorting them, if they are small."""
    return int(np.count_nonzero(np.bincount(numbers)))


def _p_value(among: SliceableItems, part: _SliceItems, draws: int) -> float:
    found = float(_studentised(part.scores[None, :])[0])
    every = among.cluster_items
    many = len(among.values) >= MANY_ITEMS
    beside = int(np.count_nonzero(every > part.items))
    if many and min(part.clusters, beside) >= MANY_CLUSTERS:
        return float(stdtr(len(every) - 1, -found))
    made, far, squares = 0, 0, 0.0
    for block in _permuted_scores(among, part, draws):
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
    shares = np.bincount(among.stratum[part.chosen], minlength=k) / among.stratum_items
    inside = np.bincount(
        among.cluster[part.chosen], weights=1 - 2 * shares[among.stratum[part.chosen]], minlength=m
    )
    squares = np.bincount(among.cluster, weights=shares[among.stratum] ** 2) + inside
    return float(((part.scores - part.scores.sum() / part.weight * squares) ** 2).sum())


def _permuted_scores(among: SliceableItems, part: _SliceItems, draws: int) -> Iterator[Floats]:
    """The clusters' scores for random slices, draws x clusters. If the slice splits no cluster, the
    random slices have the same number of clusters, otherwise of items from each stratum."""
    if ((part.items > 0) & (part.items < among.cluster_items)).any():
        return _permute_items(among, part.chosen, draws)
    return _permute_clusters(among, part.items > 0, draws)


def _permute_clusters(among: SliceableItems, inside: Bools, draws: int) -> Iterator[Floats]:
    m, k = among.summed.shape
    items = np.bincount(among.cluster * k + among.stratum, minlength=m * k).reshape(m, k)
    items, residuals = items.astype(float), among.summed.toarray()
    for order in among.permuted_clusters.blocks(draws):
        dealt = inside[order].astype(float)
        shares = dealt @ items / items.sum(axis=0)
        yield dealt * residuals.sum(axis=1) - shares @ residuals.T


def _permute_items(among: SliceableItems, chosen: Ints, draws: int) -> Iterator[Floats]:
    m, k = among.summed.shape
    counts = among.stratum_items
    inside = np.bincount(among.stratum[chosen], minlength=k)
    # Of each stratum only the smaller side is dealt. If that is the rest, its residuals are
    # subtracted, since those of the slice are the sum of the stratum minus them.
    other = 2 * inside > counts
    dealt = other[among.stratum]
    dealt[chosen] = ~dealt[chosen]
    few = np.flatnonzero(dealt)
    few = few[np.argsort(among.stratum[few], kind="stable")]
    sign = np.where(other, -1.0, 1.0)[among.stratum[few]]
    expected = among.summed @ (inside / counts - other)
    # Small integers, which sparse arrays take without a copy.
    cluster = among.cluster.astype(np.int32)
    many = len(among.values) >= MANY_ITEMS
    for places in _pick_items(among, few, draws) if many else _cut_items(among, few, draws):
        rows = np.arange(0, places.size + 1, len(few), dtype=np.int32)
        scores = (among.residuals[places] * sign).ravel()
        # This sums the items of each cluster, faster than `np.bincount` with weights.
        found = csr_array((scores, cluster[places].ravel(), rows), shape=(len(places), m))
        yield found.toarray() - expected


def _cut_items(among: SliceableItems, few: Ints, draws: int) -> Iterator[NDArray[Any]]:
    """Cut the slice out of the permutations for all slices: positions of items, draws x items."""
    for order in among.permuted_items.blocks(draws):
        yield order[:, few]


def _pick_items(among: SliceableItems, few: Ints, draws: int) -> Iterator[NDArray[Any]]:
    """Pick the items of each random slice anew, since permuting all of many takes longer."""
    rng = np.random.Generator(np.random.PCG64([among.seed, 2]))
    counts = np.bincount(among.stratum[few], minlength=among.summed.shape[1])
    strata = [
        (places, n) for places, n in zip(among.permuted_items.places, counts, strict=True) if n
    ]
    made = 0
    for size in _block_sizes(max(len(few), among.summed.shape[0])):
        if made >= draws:
            return
        found = np.empty((min(size, draws - made), len(few)), dtype=int)
        for row in found:
            picked = [
                places[rng.choice(len(places), n, replace=False, shuffle=False)]
                for places, n in strata
            ]
            np.concatenate(picked, out=row)
        yield found
        made += size


def _studentised(scores: Floats) -> Floats:
    """The sum of each draw's cluster scores divided by the root of their sum of squares; 0 if no
    cluster has a score."""
    spread = np.sqrt(np.einsum("ij,ij->i", scores, scores))
    return np.divide(scores.sum(axis=1), spread, out=np.zeros(len(scores)), where=spread > 0)
