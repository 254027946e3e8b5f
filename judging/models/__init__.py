"""The evaluator half in tables: who is asked, how, what came back, what it says of an item."""

from judging.models.asking import Dispatcher, Reading, Reply, Request, Worker
from judging.models.evaluators import Endpoint, StrategyVersion
from judging.models.figures import StoredFigure, Touch
from judging.models.runs import Budget, Call, Outcome, Run
from judging.models.saving import SavedView
from judging.models.tallies import Tally

__all__ = [
    "Budget",
    "Call",
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
    "Worker",
]
