"""Titles of the audit log's events about runs, strategies, endpoints, exports and webhooks."""

from annotation.projects import event_types

EVENT_TITLES = {
    "archive loaded": "archive of results loaded",
    "budget": "budget",
    "demo made": "example project created",
    "endpoint": "endpoint",
    "endpoint archived": "endpoint archived",
    "endpoint deleted": "endpoint deleted",
    "endpoint pause ended": "pause of an endpoint ended",
    "endpoint restored": "endpoint restored",
    "export": "export",
    "freeze": "archive of results created",
    "job again": "job tried again",
    "run archived": "run archived",
    "run unarchived": "run unarchived",
    "run cap": "cap of a run raised",
    "run cancelled": "run cancelled",
    "run described": "description of a run changed",
    "run derived": "run combined from other runs",
    "run finished": "run finished",
    "run moved": "run moved to another endpoint",
    "run paused": "run paused",
    "run recorded": "replies recorded",
    "run running": "run continued",
    "run started": "run started",
    "strategy": "strategy saved",
    "strategy taken back": "strategy restored",
    "strategy deleted": "strategy deleted",
    "strategy retired": "strategy retired",
    "webhook": "webhook",
    "webhook deleted": "webhook deleted",
    "webhook secret": "new secret of a webhook",
}


def register() -> None:
    """Add the events of runs to the titles of the audit page."""
    event_types.EVENT_TITLES.update(EVENT_TITLES)
