"""Find the runs with undetected rates for perturbed answers.

Detectors judge answers with and without errors, and ratings give numbers. Neither has a share of
undetected errors. Their figures are in the tables `detector` and `alignment`.
"""

from collections.abc import Iterable

from judging.models import Run
from judging.results import counted
from judging.strategies import frames

EXPLANATION_FRAME = "explanation"
NEEDS_WITHOUT_RATE = ("detection", "values")


def split_by_rate(runs: Iterable[Run]) -> tuple[list[Run], list[Run]]:
    """Split runs into those with undetected rates and the others. A vote has the strategy of its
    members."""
    runs = list(runs)
    asked = counted.load_strategies(runs)
    others = [run for run in runs if frames.get_item_needs(asked[run.pk]) in NEEDS_WITHOUT_RATE]
    return [run for run in runs if run not in others], others
