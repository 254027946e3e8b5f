"""Labelling times per item, computed from the number of times that each value occurs."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from annotation.db.counting import Tenths, count_by_keys
from annotation.labelling.models.labels import LabelQuerySet
from stats.spread import Quartiles, quartiles

# Longer times most likely include time away from the item.
LONG_SECONDS = 30 * 60

Times = Mapping[float, int]


def count_times(labels: LabelQuerySet, key: Any) -> dict[str, dict[float, int]]:
    """Count how often each time occurs (in seconds, rounded to tenths), by a key given as SQL."""
    found: dict[str, dict[float, int]] = defaultdict(dict)
    for row in count_by_keys(labels.timed(), key=key, tenths=Tenths("seconds")):
        found[key_as_text(row["key"])][row["tenths"] / 10] = row["n"]
    return found


def measure_spread(times: Times) -> Quartiles:
    """Compute the quartiles in seconds. Times over half an hour are left out and counted in
    `beyond`."""
    return quartiles(times, LONG_SECONDS)


def merge_times(several: Mapping[str, Times]) -> dict[float, int]:
    """Merge the times of all keys."""
    every: dict[float, int] = defaultdict(int)
    for times in several.values():
        for value, n in times.items():
            every[value] += n
    return every


def key_as_text(value: object) -> str:
    """Return a key as text, since a field may be a number or empty."""
    return "" if value is None else str(value)
