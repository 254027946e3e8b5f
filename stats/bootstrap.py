"""Intervals by drawing whole clusters again, for figures that are functions of sums over items."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array

from stats.estimates import Estimate

DRAWS = 2_000
FEWEST_CLUSTERS = 10
# Draws without a value are left out of the percentiles; above this share there is no interval.
MOST_UNDEFINED = 0.05
# Numbers held at a time: 32 MB of them, whatever the number of items.
_AT_A_TIME = 4_000_000

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A figure that needs its items only as sums of terms, so that a draw is a weighted sum.

    `terms` is items x terms. `of` takes sums, any number x terms, and returns that many values,
    nan where undefined. `used` says which items have a say; `empty` is the reason when none has
    one, `undefined` when the value does not exist all the same, `note` what the value leaves out.
    """

    terms: csr_array
    of: Callable[[Floats], Floats]
    used: NDArray[np.bool_]
    empty: str
    undefined: str
    note: str = ""

    @property
    def n(self) -> int:
        return int(self.used.sum())

    def point(self) -> Estimate:
        """The value alone, without an interval."""
        if not self.n:
            return Estimate(None, None, None, 0, self.empty)
        value = float(self.of(np.asarray(self.terms.sum(axis=0), dtype=float).reshape(1, -1))[0])
        if np.isnan(value):
            return Estimate(None, None, None, self.n, self.undefined)
        return Estimate(value, None, None, self.n, self.note)


def estimate(
    figure: Figure,
    clusters: ArrayLike,
    rng: np.random.Generator,
    draws: int = DRAWS,
    level: float = 0.95,
) -> Estimate:
    """The figure with the percentile interval of `draws` samples of its clusters.

    `clusters` names each item's cluster by a whole number. A sample draws as many clusters as
    there are, with replacement, each with all its items (Davison and Hinkley 1997, section 3.8);
    the interval runs between the (1 - level) / 2 quantiles of the values at either end. Under
    10 clusters, or where more than one draw in twenty has no value, there is none and `reason`
    says so; fewer such draws are left out.
    """
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, not at {level}")
    point = figure.point()
    if point.value is None:
        return point
    values = _drawn(figure, clusters, rng, draws)
    if values is None:
        return _without_interval(point, f"under {FEWEST_CLUSTERS} clusters")
    undefined = int(np.isnan(values).sum())
    if undefined > MOST_UNDEFINED * draws:
        return _without_interval(point, f"undefined in {undefined:,} of {draws:,} draws")
    tail = (1 - level) / 2
    low, high = np.nanquantile(values, [tail, 1 - tail])
    return Estimate(point.value, float(low), float(high), point.n, point.reason)


def share_not_above(
    figure: Figure, clusters: ArrayLike, rng: np.random.Generator, draws: int
) -> float | None:
    """The share of `draws` samples of the clusters in which the figure is 0 or less, 0 to 1.

    Of a difference it is the one-sided p of the paired bootstrap (Koehn 2004, section 4): small
    where the difference is above 0 whatever is drawn. A draw without a value is not above. None
    under 10 clusters, and where the figure itself does not exist.
    """
    if figure.point().value is None:
        return None
    values = _drawn(figure, clusters, rng, draws)
    return None if values is None else float((~(values > 0)).mean())


def _drawn(
    figure: Figure, clusters: ArrayLike, rng: np.random.Generator, draws: int
) -> Floats | None:
    """The figure in each draw, nan where undefined; None where there are too few clusters."""
    if np.shape(clusters) != figure.used.shape:
        raise ValueError(f"{figure.used.size} items need as many clusters")
    cluster = np.asarray(clusters)
    if len(np.unique(cluster[figure.used])) < FEWEST_CLUSTERS:
        return None
    kinds = _kinds(figure, cluster)
    return np.concatenate([figure.of(sums) for sums in _samples(kinds, rng, draws)])


def _without_interval(point: Estimate, reason: str) -> Estimate:
    reason = f"{point.reason}; {reason}" if point.reason else reason
    return Estimate(point.value, None, None, point.n, reason)


@dataclass(frozen=True, slots=True, eq=False)
class _Kinds:
    """The distinct sums that clusters have, and how many clusters have each.

    Clusters with the same sums are interchangeable, so a draw need only say how many of each kind
    it took: a hundred kinds stand for a hundred thousand clusters.
    """

    sums: csr_array
    clusters: NDArray[np.int_]


def _kinds(figure: Figure, clusters: NDArray[np.int_]) -> _Kinds:
    terms = figure.terms
    there = np.flatnonzero(np.diff(terms.indptr) > 0)
    _, number = np.unique(clusters[there], return_inverse=True)
    group = coo_array(
        (np.ones(len(there)), (number, there)), shape=(number.max(initial=-1) + 1, terms.shape[0])
    )
    sums = csr_array(group.tocsr() @ terms)
    sums.sort_indices()
    kinds: dict[tuple[bytes, bytes], list[int]] = {}
    for row, (start, end) in enumerate(pairwise(sums.indptr.tolist())):
        key = sums.indices[start:end].tobytes(), sums.data[start:end].tobytes()
        kinds.setdefault(key, []).append(row)
    return _Kinds(
        csr_array(sums[[rows[0] for rows in kinds.values()]]),
        np.array([len(rows) for rows in kinds.values()]),
    )


def _samples(kinds: _Kinds, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
    """The sums of each sample: blocks of draws x terms, of bounded size."""
    m = kinds.clusters.sum()
    block = max(1, _AT_A_TIME // max(kinds.sums.shape))
    for start in range(0, draws, block):
        size = min(block, draws - start)
        yield rng.multinomial(m, kinds.clusters / m, size=size).astype(float) @ kinds.sums
