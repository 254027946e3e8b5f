"""What several labels of one item come to, by rule. Labels are a sequence of any values."""

from collections import Counter
from collections.abc import Sequence
from statistics import median as middle
from typing import TypeVar

T = TypeVar("T")


def majority(labels: Sequence[T]) -> T | None:
    """The value that more than half of the labels have; None if there is none, or no label."""
    if not labels:
        return None
    value, count = Counter(labels).most_common(1)[0]
    return value if 2 * count > len(labels) else None


def unanimous(labels: Sequence[T]) -> T | None:
    """The value of all labels, also of a single one; None if they differ or there is no label."""
    return labels[0] if len(set(labels)) == 1 else None


def median(labels: Sequence[float]) -> float | None:
    """The label in the middle, the mean of two for an even number; None without labels."""
    return middle(labels) if labels else None


def of_three(labels: Sequence[float]) -> float | None:
    """The value of two of three labels; three different ones give 2 (study 003, its 1-3 scale).

    None unless there are exactly three labels.
    """
    if len(labels) != 3:
        return None
    value = majority(labels)
    return 2 if value is None else value
