"""What the values of a chart run from and to. Knows no Altair, which takes a second to import."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """What the values run from and to, and how they are written; by default rates."""

    low: float = 0
    high: float = 1
    ticks: str = "%"
    tooltip: str = ".1%"


RATES = Axis()


def coefficient_axis(values: Iterable[float]) -> Axis:
    """To 1, from 0 or, with a value below it, from -1; for correlations, kappa and alpha."""
    return Axis(-1 if min(values, default=0) < 0 else 0, 1, ".1f", ".3f")
