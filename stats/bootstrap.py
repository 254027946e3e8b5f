"""Cluster bootstrap intervals for figures that are functions of sums over items."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array, hstack

from stats.estimates import Estimate

DRAWS = 2_000
FEWEST_CLUSTERS = 10
# Draws without a value are left out of the percentiles. If their share exceeds this number, there
# is no interval.
MOST_UNDEFINED = 0.05
# Draws that differ only by rounding count as equal.
_ROUNDING = 1e-9
# How many numbers are held in memory at once: 32 MB, whatever the number of items.
_AT_A_TIME = 4_000_000

ALL_AGREE, MOST_AGREE = "all draws agree", "nearly all draws agree"

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A figure computed from sums of terms over its items, so a draw needs only weighted sums.

    `terms` is items x terms. `of` takes rows of sums, any number x terms, and returns one value per
    row, nan where undefined. `used` marks the items that enter the figure. `empty` is the reason if
    no item enters, `undefined` the reason if items enter but the value does not exist, and `note`
    says what the value leaves out. `parts` are sets of items that each need enough clusters, such
    as the two sides of a difference.
    """

    terms: csr_array
    of: Callable[[Floats], Floats]
    used: NDArray[np.bool_]
    empty: str
    undefined: str
    note: str = ""
    parts: tuple[NDArray[np.bool_], ...] = ()

    @property
    def n(self) -> int:
        """The number of items that enter the figure."""
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
    """The figure with its percentile interval from `draws` bootstrap samples of the clusters.

    `clusters` gives each item's cluster as a whole number. A sample draws as many clusters as there
    are, with replacement, each with all its items (Davison and Hinkley 1997, section 3.8). The
    interval runs from the (1 - level) / 2 quantile of the values to the (1 + level) / 2 quantile.
    There is no interval, and `reason` says why, if there are under 10 clusters, if more than one
    draw in twenty has no value, or if all or nearly all draws agree. If one draw in twenty or fewer
    has no value, these draws are left out.
    """
    if not 0 < level < 1:
        raise ValueError(f"a level must be between 0 and 1, not {level}")
    point = figure.point()
    if point.value is None:
        return point
    return _with_percentile_interval(point, _draw_values(figure, clusters, rng, draws), level)


def estimates(
    figures: Sequence[Figure],
    clusters: ArrayLike,
    rng: np.random.Generator,
    draws: int = DRAWS,
    level: float = 0.95,
) -> list[Estimate]:
    """Estimate several figures over the same items as `estimate` does, but with shared draws.

    Each draw samples all clusters that at least one figure uses, so several figures cost little
    more than one. Raises ValueError for figures over different numbers of items.
    """
    if not 0 < level < 1:
        raise ValueError(f"a level must be between 0 and 1, not {level}")
    if not figures:
        return []
    cluster = _number_clusters(figures[0], clusters)
    points = [figure.point() for figure in figures]
    exist = [place for place, point in enumerate(points) if point.value is not None]
    drawable = [
        place
        for place in exist
        if _count_fewest_clusters(figures[place], cluster) >= FEWEST_CLUSTERS
    ]
    values = _draw_values_together([figures[place] for place in drawable], cluster, rng, draws)
    by_place: dict[int, Floats] = dict(zip(drawable, values, strict=True))
    return [
        point
        if point.value is None
        else _with_percentile_interval(point, by_place.get(place), level)
        for place, point in enumerate(points)
    ]


def share_not_above(
    figure: Figure, clusters: ArrayLike, rng: np.random.Generator, draws: int
) -> float | None:
    """The share (0 to 1) of `draws` bootstrap samples in which the figure is 0 or less.

    For a difference this is the one-sided p of the paired bootstrap (Koehn 2004, section 4): it is
    small if the difference is above 0 in nearly all draws. A draw without a value counts as not
    above 0. None with under 10 clusters, or if the figure itself does not exist.
    """
    if figure.point().value is None:
        return None
    values = _draw_values(figure, clusters, rng, draws)
    return None if values is None else float((~(values > 0)).mean())


def combine_figures(figures: Sequence[Figure], of: Callable[[Floats], Floats]) -> Figure:
    """Combine several figures over the same items into one; all are drawn together.

    `of` takes rows of their values, any number x figures, and returns one value per row. The notes
    of all figures are joined, and each figure needs enough clusters. Raises ValueError for figures
    over different numbers of items.
    """
    none = [point.reason for point in (one.point() for one in figures) if point.value is None]
    widths = [figure.terms.shape[1] for figure in figures]
    ends = list(accumulate(widths))

    def of_all(sums: Floats) -> Floats:
        parts = zip(figures, widths, ends, strict=True)
        return of(np.column_stack([f.of(sums[:, end - width : end]) for f, width, end in parts]))

    return Figure(
        csr_array(hstack([figure.terms for figure in figures])),
        of_all,
        np.any([figure.used for figure in figures], axis=0),
        figures[0].empty,
        none[0] if none else figures[0].undefined,
        "; ".join(dict.fromkeys(figure.note for figure in figures if figure.note)),
        tuple(part for figure in figures for part in (figure.used, *figure.parts)),
    )


def subtract_figures(one: Figure, other: Figure) -> Figure:
    """One figure minus another over the same items, for the paired cluster bootstrap.

    `n` counts the items that either figure uses; both should use the same items.
    """
    return combine_figures([one, other], lambda values: values[:, 0] - values[:, 1])


def _draw_values(
    figure: Figure, clusters: ArrayLike, rng: np.random.Generator, draws: int
) -> Floats | None:
    """The figure in each draw, nan where undefined; None if there are too few clusters."""
    cluster = _number_clusters(figure, clusters)
    if _count_fewest_clusters(figure, cluster) < FEWEST_CLUSTERS:
        return None
    return _draw_values_together([figure], cluster, rng, draws)[0]


def _draw_values_together(
    figures: Sequence[Figure], cluster: NDArray[np.int_], rng: np.random.Generator, draws: int
) -> list[Floats]:
    """Each figure in each draw, nan where undefined."""
    if not figures:
        return []
    widths = [figure.terms.shape[1] for figure in figures]
    places = [
        slice(end - width, end) for end, width in zip(accumulate(widths), widths, strict=True)
    ]
    terms = csr_array(hstack([figure.terms for figure in figures]))
    found = [
        [figure.of(sums[:, place]) for figure, place in zip(figures, places, strict=True)]
        for sums in _draw_samples(_group_clusters(terms, cluster), rng, draws)
    ]
    return [np.concatenate(values) for values in zip(*found, strict=True)]


def _count_fewest_clusters(figure: Figure, cluster: NDArray[np.int_]) -> int:
    """The number of clusters with used items, in the part with the fewest such clusters."""
    parts = (figure.used, *figure.parts)
    return min(int(np.count_nonzero(np.bincount(cluster[part]))) for part in parts)


def _with_percentile_interval(point: Estimate, values: Floats | None, level: float) -> Estimate:
    """The point estimate, with quantiles of the drawn values as its interval."""
    if values is None:
        return _without_interval(point, f"under {FEWEST_CLUSTERS} clusters")
    if reason := _why_undefined(values):
        return _without_interval(point, reason)
    tail = (1 - level) / 2
    least, low, high, most = np.nanquantile(values, [0, tail, 1 - tail, 1]).tolist()
    room = _ROUNDING * max(1.0, abs(low))
    if high - low <= room:
        # An interval of zero width would claim that the figure is known exactly.
        return _without_interval(point, ALL_AGREE if most - least <= room else MOST_AGREE)
    return Estimate(point.value, low, high, point.n, point.reason)


def _why_undefined(values: Floats) -> str:
    """The reason if too many draws have no value; "" otherwise."""
    undefined = int(np.isnan(values).sum())
    if undefined <= MOST_UNDEFINED * len(values):
        return ""
    return f"undefined in {undefined:,} of {len(values):,} draws"


def _without_interval(point: Estimate, reason: str) -> Estimate:
    reason = f"{point.reason}; {reason}" if point.reason else reason
    return Estimate(point.value, None, None, point.n, reason)


@dataclass(frozen=True, slots=True, eq=False)
class _ClusterKinds:
    """The distinct rows of sums among the clusters, and the number of clusters with each of them.

    Clusters with the same sums are interchangeable, so a draw only needs the number of clusters
    of each kind: a hundred kinds can represent a hundred thousand clusters.
    """

    sums: csr_array
    clusters: NDArray[np.int_]


def _group_clusters(terms: csr_array, cluster: NDArray[np.int_]) -> _ClusterKinds:
    there = np.flatnonzero(np.diff(terms.indptr) > 0)
    items = np.bincount(cluster[there])
    group = coo_array(
        (np.ones(len(there)), (cluster[there], there)), shape=(len(items), terms.shape[0])
    )
    sums = csr_array(group.tocsr() @ terms)[items > 0]
    sums.sort_indices()
    # Equal sums have equal projections. On a random direction, different sums almost never do.
    side = np.random.Generator(np.random.PCG64(0)).normal(size=terms.shape[1])
    _, first, kind, clusters = np.unique(
        sums @ side, return_index=True, return_inverse=True, return_counts=True
    )
    if 2 * len(first) > len(kind) or abs(sums - sums[first[kind]]).sum():
        return _ClusterKinds(sums, np.ones(len(kind), dtype=int))
    return _ClusterKinds(csr_array(sums[first]), clusters)


def _number_clusters(figure: Figure, clusters: ArrayLike) -> NDArray[np.int_]:
    """Each item's cluster as a number small enough to be counted with bincount."""
    if np.shape(clusters) != figure.used.shape:
        raise ValueError(f"{figure.used.size} items need as many cluster entries")
    cluster = np.asarray(clusters)
    small = cluster.size and cluster.dtype.kind == "i" and cluster.min() >= 0
    if small and cluster.max() < 2 * cluster.size:
        return cluster
    return np.unique(cluster, return_inverse=True)[1]


def _draw_samples(kinds: _ClusterKinds, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
    """The sums of each bootstrap sample, in blocks of draws x terms of limited size."""
    block = max(1, _AT_A_TIME // max(kinds.sums.shape))
    for start in range(0, draws, block):
        yield _draw_weights(kinds.clusters, rng, min(block, draws - start)) @ kinds.sums


def _draw_weights(clusters: NDArray[np.int_], rng: np.random.Generator, draws: int) -> Floats:
    """The number of clusters of each kind in each draw: draws x kinds.

    Draws either a multinomial number per kind or one number per cluster, whichever is less work:
    a multinomial number costs about five times as much.
    """
    m, kinds = int(clusters.sum()), len(clusters)
    if m > 5 * kinds:
        return rng.multinomial(m, clusters / m, size=draws).astype(float)
    found = np.empty((draws, kinds))
    kind = np.repeat(np.arange(kinds), clusters)
    for draw in range(draws):
        taken = rng.integers(m, size=m)
        found[draw] = np.bincount(taken if m == kinds else kind[taken], minlength=kinds)
    return found
