"""Titles of the audit log's events about runs, strategies, endpoints and exports."""

from annotation.projects import event_types

EVENT_TITLES = {
    "budget": "budget",
    "demo made": "example project made",
    "endpoint": "endpoint",
    "export": "export",
    "freeze": "archive of results made",
    "job again": "job tried again",
    "run archived": "run archived",
    "run unarchived": "run taken out of the archive",
    "run cap": "cap of a run raised",
    "run cancelled": "run cancelled",
    "run derived": "run counted over others",
    "run finished": "run finished",
    "run moved": "run moved to another endpoint",
    "run paused": "run paused",
    "run recorded": "replies recorded",
    "run running": "run goes on",
    "run started": "run started",
    "strategy": "strategy written",
    "strategy taken back": "strategy brought back",
    "strategy deleted": "strategy deleted",
    "strategy retired": "strategy retired",
}


def register() -> None:
    """Add the events of runs to the titles of the audit page."""
    event_types.EVENT_TITLES.update(EVENT_TITLES)
