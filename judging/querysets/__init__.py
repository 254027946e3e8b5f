"""Sets of rows of the evaluator half, in the words of the field."""

from judging.querysets.leases import WorkerQuerySet, lease_expired
from judging.querysets.outcomes import NUL, CallQuerySet, OutcomeQuerySet
from judging.querysets.results import SavedViewQuerySet, StoredFigureQuerySet
from judging.querysets.runs import (
    PAUSED_BY_HAND,
    EndpointQuerySet,
    RequestLease,
    RequestQuerySet,
    RunQuerySet,
    StrategyVersionQuerySet,
)

__all__ = [
    "NUL",
    "PAUSED_BY_HAND",
    "CallQuerySet",
    "EndpointQuerySet",
    "OutcomeQuerySet",
    "RequestLease",
    "RequestQuerySet",
    "RunQuerySet",
    "SavedViewQuerySet",
    "StoredFigureQuerySet",
    "StrategyVersionQuerySet",
    "WorkerQuerySet",
    "lease_expired",
]
