"""Ranges of chart axes. This module does not import Altair, which takes a second."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """The range of the values on an axis, and how the values are written; by default for rates."""

    low: float = 0
    high: float = 1
    ticks: str = "%"
    tooltip: str = ".1%"


RATES = Axis()
# What tooltips call the two ends of a line.
INTERVAL_ENDS = ("95 % from", "to")


def coefficient_axis(values: Iterable[float]) -> Axis:
    """Return an axis that ends at 1. It starts at 0, or at -1 if a value is below 0 (correlations,
    kappa, alpha)."""
    return Axis(-1 if min(values, default=0) < 0 else 0, 1, ".1f", ".3f")
