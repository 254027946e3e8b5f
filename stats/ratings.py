"""Labels of several raters on the same items: the data for all measures of agreement."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

MISSING = -1

Ints = NDArray[np.int_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """Labels as items x raters.

    `codes` holds each label's position in `values`, or MISSING (-1) if the rater has none. `values`
    are the classes in ascending order, in the scale's own unit. `clusters` holds the number of each
    item's cluster. Create it with `ratings_from_values` or `ratings_from_names`.
    """

    codes: Ints
    values: Floats
    clusters: Ints

    @property
    def classes(self) -> int:
        """The number of classes, including classes without labels."""
        return len(self.values)

    def only(self, *raters: int) -> "Ratings":
        """The same items with the labels of only these raters (columns)."""
        return Ratings(self.codes[:, list(raters)], self.values, self.clusters)

    def shared(self, a: int, b: int) -> "Ratings":
        """The items that both raters labelled, with the labels of only these two."""
        both = (self.codes[:, [a, b]] != MISSING).all(axis=1)
        return Ratings(self.codes[both][:, [a, b]], self.values, self.clusters[both])

    def counts(self) -> Floats:
        """Number of labels of each class on each item: items x classes."""
        there = self.codes != MISSING
        items, _ = np.nonzero(there)
        cells = np.bincount(
            items * self.classes + self.codes[there], minlength=len(self.codes) * self.classes
        )
        return cells.reshape(len(self.codes), self.classes).astype(float)


@dataclass(frozen=True, slots=True, eq=False)
class RatingPairs:
    """All pairs of labels of the same item, each pair once; `a` and `b` are raters, a before b."""

    item: Ints
    a: Ints
    b: Ints
    code_a: Ints
    code_b: Ints


def ratings_from_values(
    table: ArrayLike, scale: Iterable[float] | None = None, clusters: ArrayLike | None = None
) -> Ratings:
    """Ratings from numbers, items x raters, with nan for a missing label.

    `scale` declares all possible values; without it the values found are the scale. Without
    `clusters` each item is its own cluster. Raises ValueError for a value that is not on the scale.
    """
    numbers = np.array(table, dtype=float)
    if numbers.ndim != 2:
        numbers = numbers.reshape(0, 0)
    there = ~np.isnan(numbers)
    found = np.unique(numbers[there])
    values = found if scale is None else np.unique(np.array(list(scale), dtype=float))
    if (off := np.setdiff1d(found, values)).size:
        raise ValueError(f"{off[0]:g} is not on the scale {', '.join(f'{v:g}' for v in values)}")
    codes = np.full(numbers.shape, MISSING)
    codes[there] = np.searchsorted(values, numbers[there])
    return Ratings(codes, values, _clusters(clusters, len(codes)))


def rating_pairs(ratings: Ratings) -> RatingPairs:
    """All pairs of labels of the same item. The cost depends on the number of labels, not of
    raters."""
    item, rater = np.nonzero(ratings.codes != MISSING)
    code = ratings.codes[item, rater]
    labels = np.bincount(item, minlength=len(ratings.codes))
    first, second = [], []
    # Labels are sorted by item: pair each label with the label `step` positions further if both are
    # of the same item.
    for step in range(1, int(labels.max(initial=0))):
        left = np.flatnonzero(item[:-step] == item[step:])
        first.append(left)
        second.append(left + step)
    one = np.concatenate(first) if first else np.zeros(0, dtype=int)
    two = np.concatenate(second) if second else one
    return RatingPairs(item[one], rater[one], rater[two], code[one], code[two])


def _clusters(clusters: ArrayLike | None, items: int) -> Ints:
    if clusters is None:
        return np.arange(items)
    _, number = np.unique(np.asarray(clusters), return_inverse=True)
    if number.shape != (items,):
        raise ValueError(f"{items} items need {items} clusters, not {number.size}")
    return number
