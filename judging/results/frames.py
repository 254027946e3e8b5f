"""Which runs say of perturbed answers whether the error was noticed.

Detectors judge answers with and without an error, ratings give numbers: of neither is what was not
noticed a share of anything. Their figures are the tables `detector` and `alignment`.
"""

from collections.abc import Iterable

from judging.models import Run
from judging.results import counted
from judging.strategies import frames

NEEDS_WITHOUT_RATE = ("detection", "values")


def split_by_rate(runs: Iterable[Run]) -> tuple[list[Run], list[Run]]:
    """The runs that have undetected rates, and the others; votes are as their members."""
    runs = list(runs)
    asked = counted.load_strategies(runs)
    others = [run for run in runs if frames.get_item_needs(asked[run.pk]) in NEEDS_WITHOUT_RATE]
    return [run for run in runs if run not in others], others
