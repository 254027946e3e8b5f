"""All models of the judging app: endpoints, strategies, runs, requests, replies, outcomes and
webhooks."""

from judging.evaluators.models import Endpoint
from judging.results.models import SavedView, StoredFigure, Touch
from judging.runs.engine.models import Dispatcher, Reading, Reply, Request, Worker
from judging.runs.models import Budget, Call, Outcome, Run, Tally
from judging.strategies.models import StrategyVersion
from judging.webhooks.models import Delivery, Webhook

__all__ = [
    "Budget",
    "Call",
    "Delivery",
    "Dispatcher",
    "Endpoint",
    "Outcome",
    "Reading",
    "Reply",
    "Request",
    "Run",
    "SavedView",
    "StoredFigure",
    "StrategyVersion",
    "Tally",
    "Touch",
    "Webhook",
    "Worker",
]
