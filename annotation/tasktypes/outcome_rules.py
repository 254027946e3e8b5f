"""Aggregation rules: how the labels of one field become its resolution. All rules are pure
functions.

Each rule takes the values in the order in which they were given, and the number of label slots. It
returns a value, or None if the labels so far are not enough to decide.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

Rule = Callable[[Sequence[Any], int], Any]


def first(values: Sequence[Any], places: int) -> Any:
    """Return the first label, whatever the other labels are."""
    return values[0] if values else None


def majority(values: Sequence[Any], places: int) -> Any:
    """Return the value of more than half of all slots, which later labels cannot change.

    For fields with several values: once every slot is filled, return the values that more than half
    of all slots chose.
    """
    if values and isinstance(values[0], list):
        return _majority_of_lists(values, places)
    for value, count in Counter(values).items():
        if 2 * count > places:
            return value
    return None


def unanimous(values: Sequence[Any], places: int) -> Any:
    """Return the value that all slots agree on."""
    agreed = len(values) >= places and all(value == values[0] for value in values)
    return values[0] if values and agreed else None


def adjudicated(values: Sequence[Any], places: int) -> Any:
    """Always return None, so that an adjudicator decides every item."""
    return None


def median_of_all(values: Sequence[Any], places: int) -> Any:
    """Return the median once all slots are filled. For an even number of values, the median is the
    mean of the two middle values.

    None without values. A whole number is returned as an int.
    """
    if not values or len(values) < places:
        return None
    found = median(values)
    return int(found) if found == int(found) else found


def majority_or_median(values: Sequence[Any], places: int) -> Any:
    """Return the majority of all slots, otherwise the median, such as the middle one of three
    different values. This is the rule of study 003."""
    decided = majority(values, places)
    return median_of_all(values, places) if decided is None else decided


RULES: dict[str, Rule] = {
    "first": first,
    "majority": majority,
    "unanimous": unanimous,
    "adjudicated": adjudicated,
    "median": median_of_all,
    "three": majority_or_median,
}

RULE_TITLES = {
    "first": "first label",
    "majority": "majority",
    "unanimous": "unanimous",
    "adjudicated": "adjudication of every item",
    "median": "median",
    "three": "majority, otherwise median (study 003)",
}


def _majority_of_lists(values: Sequence[list[Any]], places: int) -> list[Any] | None:
    if len(values) < places:
        return None
    counts = Counter(one for value in values for one in value)
    return [one for one, count in counts.items() if 2 * count > places]
