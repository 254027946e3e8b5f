"""Cluster bootstrap intervals for figures that are functions of sums over items.

The intervals are bias-corrected and accelerated (BCa, Efron 1987), and widened for few clusters by
Student's quantile and the factor m / (m - 1) of a variance (Hesterberg 2015, section 4.3).
Simulated for F1, alpha, Pearson and RMSE with 10 to 80 clusters, they cover in 91 % or more,
plain percentile intervals in 85 %; means of values with a long tail in 87 and 80 %.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array, hstack
from scipy.special import ndtr, ndtri, stdtrit

from stats.estimates import Estimate

DRAWS = 2_000
FEWEST_CLUSTERS = 10
# With fewer clusters than this, an interval is marked as rough.
ENOUGH_CLUSTERS = 20
ROUGH = f"rough: under {ENOUGH_CLUSTERS} clusters"
# With more kinds of clusters than this, no single one bends the interval.
MOST_LEFT_OUT = 1_000
# Draws without a value are left out of the percentiles. If their share exceeds this number, there
# is no interval.
MOST_UNDEFINED = 0.05
# Draws that differ only by rounding count as equal.
_ROUNDING = 1e-9
# How many numbers are held in memory at once: 32 MB, whatever the number of items.
_AT_A_TIME = 4_000_000
# Random numbers of one call: enough that its own cost does not count, few enough for a fast memory.
_DRAWN_AT_ONCE = 60_000

ALL_AGREE, MOST_AGREE = "all draws agree", "nearly all draws agree"

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A figure computed from sums of terms over its items, so a draw needs only weighted sums.

    `terms` is items x terms. `of` takes rows of sums, any number x terms, and returns one value per
    row, nan where undefined. `used` marks the items that enter the figure. `empty` is the reason if
    no item enters, `undefined` the reason if items enter but the value does not exist, and `note`
    says what the value leaves out. `parts` are sets of items that each need enough clusters, such
    as the two sides of a difference. A figure that is `combined` from others is computed from their
    values in each draw, so figures that share one cost little more than it alone.
    """

    terms: csr_array
    of: Callable[[Floats], Floats]
    used: NDArray[np.bool_]
    empty: str
    undefined: str
    note: str = ""
    parts: tuple[NDArray[np.bool_], ...] = ()
    combined: "_Combination | None" = None

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

    def drawn_figures(self) -> "Iterator[Figure]":
        """The figures from which it is combined in the end, or itself."""
        if self.combined is None:
            yield self
        else:
            for one in self.combined.figures:
                yield from one.drawn_figures()

    def values_from(self, drawn: "Mapping[Figure, Floats]") -> Floats:
        """Its values, given those of `drawn_figures` in the same draws."""
        if self.combined is None:
            return drawn[self]
        values = [one.values_from(drawn) for one in self.combined.figures]
        return self.combined.of(np.column_stack(values))


@dataclass(frozen=True, slots=True, eq=False)
class _Combination:
    """How a figure is computed from others: `of` takes rows of their values."""

    figures: tuple[Figure, ...]
    of: Callable[[Floats], Floats]


def estimate(
    figure: Figure,
    clusters: ArrayLike,
    rng: np.random.Generator,
    draws: int = DRAWS,
    level: float = 0.95,
) -> Estimate:
    """The figure with its interval from `draws` bootstrap samples of the clusters.

    `clusters` gives each item's cluster as a whole number. A sample draws as many clusters as there
    are, with replacement, each with all its items (Davison and Hinkley 1997, section 3.8). The ends
    are quantiles of the values in the samples, at the levels of `_find_levels`. With 10 to 19
    clusters `reason` says that it is rough. There is no interval, and `reason` says why, if there
    are under 10 clusters, if more than one draw in twenty has no value, or if all or nearly all
    draws agree. If one draw in twenty or fewer has no value, these draws are left out.
    """
    if not 0 < level < 1:
        raise ValueError(f"a level must be between 0 and 1, not {level}")
    point = figure.point()
    if point.value is None:
        return point
    return _with_interval(point, _draw_figure(figure, clusters, rng, draws), level)


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
    drawn = _draw_figures([figures[place] for place in drawable], cluster, rng, draws)
    by_place: dict[int, _Drawn] = dict(zip(drawable, drawn, strict=True))
    return [
        point if point.value is None else _with_interval(point, by_place.get(place), level)
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
    drawn = _draw_figure(figure, clusters, rng, draws)
    return None if drawn is None else float((~(drawn.values > 0)).mean())


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
        _Combination(tuple(figures), of),
    )


def subtract_figures(one: Figure, other: Figure) -> Figure:
    """One figure minus another over the same items, for the paired cluster bootstrap.

    `n` counts the items that either figure uses; both should use the same items.
    """
    return combine_figures([one, other], lambda values: values[:, 0] - values[:, 1])


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """A figure in each draw, and with one cluster left out, for each kind of cluster with their
    number; nan where undefined. `clusters` is their number in the part with the fewest."""

    values: Floats
    without: Floats
    of_kind: NDArray[np.int_]
    clusters: int


def _draw_figure(
    figure: Figure, clusters: ArrayLike, rng: np.random.Generator, draws: int
) -> _Drawn | None:
    """The figure in each draw; None if there are too few clusters."""
    cluster = _number_clusters(figure, clusters)
    if _count_fewest_clusters(figure, cluster) < FEWEST_CLUSTERS:
        return None
    return _draw_figures([figure], cluster, rng, draws)[0]


def _draw_figures(
    figures: Sequence[Figure], cluster: NDArray[np.int_], rng: np.random.Generator, draws: int
) -> list[_Drawn]:
    """Each figure in each draw."""
    if not figures:
        return []
    base = list(dict.fromkeys(part for figure in figures for part in figure.drawn_figures()))
    widths = [figure.terms.shape[1] for figure in base]
    places = [
        slice(end - width, end) for end, width in zip(accumulate(widths), widths, strict=True)
    ]
    kinds = _group_clusters(csr_array(hstack([figure.terms for figure in base])), cluster)

    def values_of(blocks: Iterable[Floats]) -> list[Floats]:
        found = [
            [figure.of(sums[:, place]) for figure, place in zip(base, places, strict=True)]
            for sums in blocks
        ]
        joined = [np.concatenate(values) for values in zip(*found, strict=True)]
        by_figure = dict(zip(base, joined or [np.empty(0)] * len(base), strict=True))
        return [figure.values_from(by_figure) for figure in figures]

    drawn, without = values_of(_draw_samples(kinds, rng, draws)), values_of(_leave_out(kinds))
    return [
        _Drawn(values, left, kinds.clusters, _count_fewest_clusters(figure, cluster))
        for figure, values, left in zip(figures, drawn, without, strict=True)
    ]


def _count_fewest_clusters(figure: Figure, cluster: NDArray[np.int_]) -> int:
    """The number of clusters with used items, in the part with the fewest such clusters."""
    parts = (figure.used, *figure.parts)
    return min(int(np.count_nonzero(np.bincount(cluster[part]))) for part in parts)


def _with_interval(point: Estimate, drawn: _Drawn | None, level: float) -> Estimate:
    """The point estimate, with quantiles of the drawn values as its interval."""
    if drawn is None or point.value is None:
        return _add_reason(point, f"under {FEWEST_CLUSTERS} clusters")
    if reason := _why_undefined(drawn.values):
        return _add_reason(point, reason)
    levels = [0.0, *_find_levels(point.value, drawn, level), 1.0]
    least, low, high, most = np.nanquantile(drawn.values, levels).tolist()
    room = _ROUNDING * max(1.0, abs(low))
    if high - low <= room:
        # An interval of zero width would claim that the figure is known exactly.
        return _add_reason(point, ALL_AGREE if most - least <= room else MOST_AGREE)
    found = Estimate(point.value, low, high, point.n, point.reason)
    return _add_reason(found, ROUGH) if drawn.clusters < ENOUGH_CLUSTERS else found


def _find_levels(value: float, drawn: _Drawn, level: float) -> tuple[float, float]:
    """The two levels at which the quantiles of the draws are the ends of the interval.

    Phi(z0 + (z0 + z) / (1 - a (z0 + z))), where z is Student's quantile for the clusters minus 1,
    times the root of m / (m - 1). The bias correction z0 is the normal quantile of the share of
    draws below the value, of those equal to it half. The acceleration a is the skewness of the
    figure with one cluster left out, sum d^3 / 6 (sum d^2)^1.5 with d the mean minus the value.
    """
    values = drawn.values[~np.isnan(drawn.values)]
    room = _ROUNDING * max(1.0, abs(value))
    below, above = (float((side > room).mean()) for side in (value - values, values - value))
    end = 0.5 / len(values)
    z0 = float(ndtri(min(1 - end, max(end, (1 + below - above) / 2))))
    m = drawn.clusters
    z = float(stdtrit(m - 1, (1 + level) / 2)) * sqrt(m / (m - 1))
    a = _find_acceleration(drawn)
    low, high = (_adjust_quantile(z0 + side, z0, a) for side in (-z, z))
    return low, high


def _adjust_quantile(z: float, z0: float, a: float) -> float:
    bent = 1 - a * z
    if bent <= 0:
        return 0.0 if z < 0 else 1.0
    return float(ndtr(z0 + z / bent))


def _find_acceleration(drawn: _Drawn) -> float:
    """0 if there are too many kinds of clusters to leave one out, or if too few have a value."""
    there = ~np.isnan(drawn.without)
    if not there.any() or there.mean() < 1 - MOST_UNDEFINED:
        return 0.0
    left, weight = drawn.without[there], drawn.of_kind[there]
    apart = np.average(left, weights=weight) - left
    square = float(weight @ apart**2)
    return float(weight @ apart**3) / (6 * square**1.5) if square > 0 else 0.0


def _why_undefined(values: Floats) -> str:
    """The reason if too many draws have no value; "" otherwise."""
    undefined = int(np.isnan(values).sum())
    if undefined <= MOST_UNDEFINED * len(values):
        return ""
    return f"undefined in {undefined:,} of {len(values):,} draws"


def _add_reason(found: Estimate, reason: str) -> Estimate:
    return replace(found, reason=f"{found.reason}; {reason}" if found.reason else reason)


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


def _leave_out(kinds: _ClusterKinds) -> Iterator[Floats]:
    """The sums without one cluster of each kind, in blocks; none if there are many kinds."""
    number, terms = kinds.sums.shape
    if number > MOST_LEFT_OUT:
        return
    total = kinds.clusters @ kinds.sums
    block = max(1, _AT_A_TIME // terms)
    for start in range(0, number, block):
        yield total - kinds.sums[start : start + block].toarray()


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
    block = max(1, _DRAWN_AT_ONCE // max(m, kinds))
    for start in range(0, draws, block):
        number = min(block, draws - start)
        taken = kind[rng.integers(m, size=(number, m))] + kinds * np.arange(number)[:, None]
        counts = np.bincount(taken.ravel(), minlength=number * kinds)
        found[start : start + number] = counts.reshape(number, kinds)
    return found
