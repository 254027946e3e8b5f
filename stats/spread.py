"""Quartiles of values, from how often each value occurs."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Quartiles:
    """Quartiles in the values' own unit, None without values; `n` counts values.

    `beyond` counts values above the given limit; they are in no quartile.
    """

    n: int
    low: float | None
    median: float | None
    high: float | None
    beyond: int = 0


def quartiles(counts: Mapping[float, int], limit: float = float("inf")) -> Quartiles:
    """The quartiles of values given as {value: count}, interpolated between neighbours.

    Quartile q of n sorted values is at position q (n - 1), counted from 0 (definition 7 of Hyndman
    and Fan 1996). Values above `limit` are left out and counted in `beyond`.
    """
    within = {value: count for value, count in counts.items() if value <= limit}
    beyond = sum(counts.values()) - sum(within.values())
    values = np.repeat(list(within), list(within.values())) if within else np.empty(0)
    if not values.size:
        return Quartiles(0, None, None, None, beyond)
    low, median, high = (float(value) for value in np.quantile(values, [0.25, 0.5, 0.75]))
    return Quartiles(int(values.size), low, median, high, beyond)
