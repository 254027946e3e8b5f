"""What several people say of an item taken together, and how an evaluator stands to it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.estimates import Estimate
from stats.rates import estimate_rate

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MajorityValues:
    """Of each item the value that stands for its raters, nan where none does.

    `decided` is 1 where more than half gave that value, 0 where not, nan without any label: its
    mean is the share of items with a majority (`rates.estimate_rate(majority.decided, clusters)`).
    """

    values: Floats
    decided: Floats


def majority_values(table: ArrayLike) -> MajorityValues:
    """The value that more than half of an item's labels have; `table` is items x raters, nan for
    a missing label.

    Three labels with three different values have no majority and take their median, which on
    study 003's scale of 1 to 3 is 2, as it says (section 3.4). Everything else without a majority
    has no value.
    """
    given = np.asarray(table, dtype=float)
    given = given if given.ndim == 2 else given.reshape(0, 0)
    there = ~np.isnan(given)
    labels = there.sum(axis=1)
    ordered = np.sort(given, axis=1)
    # What more than half have stands in the middle of the sorted labels, nan being last.
    middle = np.take_along_axis(
        np.column_stack([ordered, np.full(len(given), np.nan)]), labels[:, None] // 2, axis=1
    )
    votes = (given == middle).sum(axis=1)
    most = 2 * votes > labels
    stands = most | ((labels == 3) & (votes == 1))
    return MajorityValues(
        np.where(stands, middle[:, 0], np.nan), np.where(labels > 0, most.astype(float), np.nan)
    )


def agreement_by_score(
    people: ArrayLike, evaluator: ArrayLike, clusters: ArrayLike
) -> dict[float, Estimate]:
    """How often the evaluator gives people's score, by that score: on 1s, on 3s (003, 4.3).

    Both hold one value an item, nan where missing. Rates; `n` counts items with both.
    """
    said, given = np.asarray(people, dtype=float), np.asarray(evaluator, dtype=float)
    same = np.where(np.isnan(given), np.nan, (said == given).astype(float))
    cluster = np.asarray(clusters)
    values = np.unique(said[~np.isnan(said)]).tolist()
    return {value: estimate_rate(same[said == value], cluster[said == value]) for value in values}
