"""Sets of rows of the evaluator half, in the words of the field."""

from judging.querysets.leases import WorkerQuerySet, over
from judging.querysets.outcomes import NUL, CallQuerySet, OutcomeQuerySet
from judging.querysets.results import SavedViewQuerySet, StoredFigureQuerySet
from judging.querysets.runs import (
    BY_HAND,
    EndpointQuerySet,
    Held,
    RequestQuerySet,
    RunQuerySet,
    StrategyVersionQuerySet,
)

__all__ = [
    "BY_HAND",
    "NUL",
    "CallQuerySet",
    "EndpointQuerySet",
    "Held",
    "OutcomeQuerySet",
    "RequestQuerySet",
    "RunQuerySet",
    "SavedViewQuerySet",
    "StoredFigureQuerySet",
    "StrategyVersionQuerySet",
    "WorkerQuerySet",
    "over",
]
