"""Families of tests: p values adjusted for multiple testing, and compact letter displays.

If a test could not be made, its p is None. The test does not count in the family, and its p stays
None.
"""

from collections.abc import Callable, Collection, Sequence
from itertools import combinations, islice, product
from string import ascii_lowercase

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# With more groups than this, the letters come from `_cover_pairs`: runs over different items can
# make more than a million.
MOST_GROUPS = 100


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down p values, which control the family-wise error rate (Holm 1979).

    The adjusted value of the i-th smallest of m p values is

        max over j <= i of (m - j + 1) p_j

    capped at 1.
    """
    return _adjust(ps, lambda p: np.maximum.accumulate(p * np.arange(len(p), 0, -1)))


def benjamini_hochberg(ps: Sequence[float | None]) -> list[float | None]:
    """q values that control the false discovery rate if tests are independent or positively
    dependent (Benjamini and Hochberg 1995).

    The adjusted value of the i-th smallest of m p values is

        min over j >= i of m p_j / j

    capped at 1.
    """
    return _adjust(ps, lambda p: _step_up(p, 1.0))


def benjamini_yekutieli(ps: Sequence[float | None]) -> list[float | None]:
    """q values that control the false discovery rate under any dependence of the tests.

    The adjusted value of the i-th smallest of m p values is

        min over j >= i of (1 + 1/2 + ... + 1/m) m p_j / j

    capped at 1 (Benjamini and Yekutieli 2001).
    """
    return _adjust(ps, lambda p: _step_up(p, float((1 / np.arange(1, len(p) + 1)).sum())))


def compact_letters(runs: int, different: Collection[tuple[int, int]]) -> list[str]:
    """Letters for runs 0 to runs - 1: two runs share a letter unless they are in `different`.

    Insert and absorb (Piepho 2004): for each pair that differs, every group that contains both runs
    is split into two groups, each without one of the two runs. Groups contained in other groups are
    dropped. If that makes more than `MOST_GROUPS` groups, only so many are kept that every other
    pair still shares a letter. Letters follow the order of the runs, so pass the runs sorted. After
    z, the letters continue with aa, ab ...; they are then separated by spaces.
    """
    groups = {frozenset(range(runs))}
    for one, other in sorted(different):
        both = {group for group in groups if {one, other} <= group}
        split = (groups - both) | {group - {each} for group in both for each in (one, other)}
        groups = {group for group in split if not any(group < wider for wider in split)}
        if len(groups) > MOST_GROUPS:
            groups = _cover_pairs(runs, different)
            break
    ordered = sorted(groups, key=sorted)
    names = _letter_names(len(ordered))
    between = "" if len(names) <= len(ascii_lowercase) else " "
    return [
        between.join(name for name, group in zip(names, ordered, strict=True) if run in group)
        for run in range(runs)
    ]


def split_letters(shown: Sequence[str]) -> list[set[str]]:
    """The letters of each run, from what `compact_letters` gave all of them; none for ""."""
    has_words = any(" " in one for one in shown) or len(set(shown)) > len(ascii_lowercase)
    return [set(one.split() if has_words else one) for one in shown]


def different_pairs(
    ps: Sequence[float | None], runs: int, alpha: float = 0.05
) -> set[tuple[int, int]]:
    """The pairs of runs whose adjusted p is below alpha; `ps` follow combinations(range(runs), 2).

    A pair without a p is not different. Raises ValueError unless there is one p for each pair.
    """
    pairs = combinations(range(runs), 2)
    return {pair for pair, p in zip(pairs, ps, strict=True) if p is not None and p < alpha}


def _cover_pairs(runs: int, different: Collection[tuple[int, int]]) -> set[frozenset[int]]:
    """Groups without a pair that differs, until each other pair is in one: each begins with a pair
    that is in none, and takes all runs that differ from none in it."""
    alike = [set(range(runs)) for _ in range(runs)]
    for one, other in different:
        alike[one].discard(other)
        alike[other].discard(one)
    groups: set[frozenset[int]] = set()
    for one in range(runs):
        left = {other for other in alike[one] if other >= one}
        left -= {other for group in groups if one in group for other in group}
        while left:
            group = {one, min(left)}
            # Runs that still have to share a letter with the first one come first.
            for more in sorted(range(runs), key=lambda run: run not in left):
                if group <= alike[more]:
                    group.add(more)
            groups.add(frozenset(group))
            left -= group
    return groups


def _letter_names(count: int) -> list[str]:
    names = (name for length in (1, 2, 3) for name in product(ascii_lowercase, repeat=length))
    return ["".join(name) for name in islice(names, count)]


def _adjust(
    ps: Sequence[float | None], of_sorted: Callable[[Floats], Floats]
) -> list[float | None]:
    made = [p for p in ps if p is not None]
    if wrong := [p for p in made if not 0 <= p <= 1]:
        raise ValueError(f"{wrong[0]} is not a p-value")
    order = np.argsort(made, kind="stable")
    adjusted = np.empty(len(made))
    adjusted[order] = np.minimum(of_sorted(np.array(made)[order]), 1.0)
    found = iter(adjusted.tolist())
    return [None if p is None else next(found) for p in ps]


def _step_up(p: Floats, factor: float) -> Floats:
    scaled = p * factor * len(p) / np.arange(1, len(p) + 1)
    return np.minimum.accumulate(scaled[::-1])[::-1]
