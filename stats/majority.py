"""The majority of several raters on each item, and how often an evaluator agrees with it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.estimates import Estimate
from stats.rates import estimate_rate

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MajorityValues:
    """The aggregated value of the raters for each item, nan where there is none.

    `decided` is 1 if more than half of the labels have that value, 0 if not, nan without any label.
    Its mean is the share of items with a majority (`rates.estimate_rate(majority.decided,
    clusters)`).
    """

    values: Floats
    decided: Floats


def majority_values(table: ArrayLike) -> MajorityValues:
    """The value that more than half of an item's labels have; `table` is items x raters, nan for
    a missing label.

    Three labels with three different values have no majority and get their median, which is 2 on
    study 003's scale of 1 to 3, as the study specifies (section 3.4). Any other item without a
    majority has no value.
    """
    given = np.asarray(table, dtype=float)
    given = given if given.ndim == 2 else given.reshape(0, 0)
    there = ~np.isnan(given)
    labels = there.sum(axis=1)
    ordered = np.sort(given, axis=1)
    # If more than half of the labels have a value, it is in the middle of the sorted labels; nan
    # sorts last.
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
    """How often the evaluator gives the same score as people, for each score (003, 4.3).

    An example is the agreement on the items that people scored 1. Both arrays hold one value per
    item, nan if missing. Returns rates by score; `n` counts items with both.
    """
    said, given = np.asarray(people, dtype=float), np.asarray(evaluator, dtype=float)
    same = np.where(np.isnan(given), np.nan, (said == given).astype(float))
    cluster = np.asarray(clusters)
    values = np.unique(said[~np.isnan(said)]).tolist()
    return {value: estimate_rate(same[said == value], cluster[said == value]) for value in values}
