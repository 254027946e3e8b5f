"""The shape in which every statistic comes back."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval.

    `value`, `low` and `high` are in the figure's own unit (rates: fractions of 1) and are None
    where they are not defined; `reason` then says why. `n` counts items, never calls.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str = ""
