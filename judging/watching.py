"""Where a run stands, for the page that follows it and for the API."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from judging import leasing, runs
from judging.models import Request, Run

MOST_WORDS = 10


@dataclass(frozen=True)
class Watched:
    """A run with its progress.

    `missing` counts items by cause. `failed` and `tried` are what providers said of requests
    that failed, and of those that wait for another try. `unattended`: something is due and no
    worker takes it up. `paused_until`: the evaluator asked not to be called before; None if it
    did not. `steps` can be taken now.
    """

    run: Run
    progress: runs.Progress
    missing: dict[str, int]
    failed: list[dict[str, Any]]
    tried: list[dict[str, Any]]
    unattended: bool
    paused_until: datetime | None
    steps: list[str]


def watch(run: Run) -> Watched:
    """Where the run stands now."""
    now = timezone.now()
    paused = run.state == Run.State.RUNNING and run.endpoint.is_paused(now)
    paused_until = run.endpoint.paused_until if paused else None
    progress = runs.progress(run)
    wanted = Request.objects.wanted_by(run)
    failed = wanted.filter(state="failed").words()[:MOST_WORDS] if progress.failed else []
    tried = wanted.filter(state="waiting").words()[:MOST_WORDS] if progress.waiting else []
    return Watched(
        run=run,
        progress=progress,
        missing={row["cause"]: row["n"] for row in run.outcomes.missing_by_cause()},
        failed=list(failed),
        tried=list(tried),
        unattended=paused_until is None and leasing.unattended(run, now),
        paused_until=paused_until,
        steps=runs.open_steps(run, progress.failed),
    )
