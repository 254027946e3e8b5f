"""Agreement on marked passages: the F1 of the characters that two raters marked."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stats.bootstrap import Figure

Passage = tuple[Hashable, int, int]
"""What must be equal to match (the text, and the label if there are labels), and where the passage
starts and ends: characters from 0, without the one at the end."""

Marked = Sequence[Sequence[Collection[Passage] | None]]
"""Items x raters: the passages that the rater marked, none at all if empty; None if the rater has
not labelled the item."""

NO_PAIR = "no item with two labels"
NOTHING = "nobody marked a passage"

Floats = NDArray[np.float64]


def count_characters(one: Iterable[Passage], other: Iterable[Passage]) -> tuple[int, int, int]:
    """Count the characters that both raters, the first and the second rater marked.

    A character that a rater marked twice with the same label counts once, with two labels twice.
    """
    first, second = _merge(one), _merge(other)
    shared = sum(
        max(0, min(end, last) - max(start, begin))
        for key, passages in first.items()
        for start, end in passages
        for begin, last in second.get(key, ())
    )
    return shared, _length(first), _length(second)


def overlap_f1(one: Iterable[Passage], other: Iterable[Passage]) -> float | None:
    """The F1 of the characters that two raters marked in one item: 2 both / (first + second).

    This is the harmonic mean of precision and recall, whichever rater is taken as the reference,
    and the Dice coefficient. 1 if both marked the same characters with the same labels; 0 if they
    share none, also if one of them marked nothing; None if neither marked anything.
    """
    both, first, second = count_characters(one, other)
    return 2 * both / (first + second) if first + second else None


def pooled_f1(marked: Marked) -> Figure:
    """The F1 over all items: 2 x the sum of shared characters / the sum of marked characters.

    Long passages weigh more than short ones. In an item with more than two raters, both sums are
    means over its pairs. Items in which no pair marked anything add nothing and do not count in n.
    Undefined if there is no other item.
    """
    terms = np.zeros((len(marked), 2))
    for row, item in enumerate(marked):
        counts = [count_characters(one, other) for one, other in _pair_raters(item)]
        if counts:
            terms[row] = np.mean([(2 * both, one + two) for both, one, two in counts], axis=0)

    return _ratio_figure(marked, terms, terms[:, 1] > 0)


def mean_f1(marked: Marked) -> Figure:
    """The mean over items of the mean F1 of the item's pairs of raters.

    Every item weighs the same, however long its passages. Pairs that marked nothing are left out,
    and so are items that have only such pairs. Undefined if there is no other item.
    """
    terms = np.zeros((len(marked), 2))
    for row, item in enumerate(marked):
        found = [overlap_f1(one, other) for one, other in _pair_raters(item)]
        known = [f1 for f1 in found if f1 is not None]
        if known:
            terms[row] = np.mean(known), 1

    return _ratio_figure(marked, terms, terms[:, 1] > 0)


def _ratio_figure(marked: Marked, terms: Floats, used: NDArray[np.bool_]) -> Figure:
    def of(sums: Floats) -> Floats:
        there = sums[:, 1] > 0
        return np.divide(sums[:, 0], sums[:, 1], out=np.full(len(sums), np.nan), where=there)

    labelled = any(sum(one is not None for one in item) > 1 for item in marked)
    return Figure(csr_array(terms), of, used, NOTHING if labelled else NO_PAIR, NOTHING)


def _pair_raters(
    item: Sequence[Collection[Passage] | None],
) -> Iterable[tuple[Collection[Passage], Collection[Passage]]]:
    return combinations([one for one in item if one is not None], 2)


def _merge(passages: Iterable[Passage]) -> dict[Hashable, list[tuple[int, int]]]:
    """The passages of each key, joined where they overlap or touch, in ascending order."""
    merged: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    for key, start, end in sorted(passages, key=lambda one: one[1:]):
        joined = merged[key]
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif start < end:
            joined.append((start, end))
    return merged


def _length(merged: dict[Hashable, list[tuple[int, int]]]) -> int:
    return sum(end - start for passages in merged.values() for start, end in passages)
