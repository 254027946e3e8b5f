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


@dataclass(frozen=True, slots=True)
class PValue:
    """A p, 0 to 1; None where the test could not be made, and `reason` says why.

    `n` counts what the test rests on, as the function that makes it says. `test` names the way
    where a function has several.
    """

    p: float | None
    n: int
    reason: str = ""
    test: str = ""
