"""The results that all statistics return."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval.

    `value`, `low` and `high` are in the figure's own unit (rates: fractions of 1) and None where
    undefined; `reason` then says why. `n` counts items, never calls.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PValue:
    """A p value from 0 to 1; None if the test could not be made, and `reason` says why.

    The docstring of the function that returns the p value says what `n` counts. `test` names the
    test if the function has several.
    """

    p: float | None
    n: int
    reason: str = ""
    test: str = ""
