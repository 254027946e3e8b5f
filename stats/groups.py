"""Figures over groups of items, such as tasks, languages or models, with equal weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev


@dataclass(frozen=True, slots=True)
class GroupMean:
    """The mean of a figure over groups: `groups` counts the groups with a value, `undefined` those
    without.

    `mean` is None without such groups; `sd` (of a sample, n - 1) is None with fewer than two.
    """

    mean: float | None
    sd: float | None
    groups: int
    undefined: int


def mean_over_groups(values: Sequence[float | None]) -> GroupMean:
    """The unweighted mean and standard deviation of a figure over groups, such as tasks.

    The value of a group is None if it is undefined, as for task 034 of study 003.
    """
    there = [value for value in values if value is not None]
    return GroupMean(
        mean=fmean(there) if there else None,
        sd=stdev(there) if len(there) > 1 else None,
        groups=len(there),
        undefined=len(values) - len(there),
    )
