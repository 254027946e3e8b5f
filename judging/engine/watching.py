"""Where a run stands, for the page that follows it and for the API."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q
from django.utils import timezone

from judging.engine import living
from judging.models import Outcome, Reading, Reply, Request, Run
from judging.prompts import frames
from judging.running import steering

MOST_WORDS = 10
# What is answered a second is counted over so many seconds.
WINDOW = 10.0
# No more of the last replies are looked at for that.
LOOKED = 5_000


@dataclass(frozen=True)
class Progress:
    """Counts of a run's requests and items.

    `failures` are requests without a usable answer by cause, most frequent first: those that
    failed, and replies that were cut, refused or unreadable. `to_come` counts calls that are
    still to be made, by planning or as later steps of chains; some of them may share a request.
    """

    requests: int
    answered: int
    failed: int
    waiting: int
    items: int
    settled: int
    failures: dict[str, int]
    to_come: int = 0

    @property
    def share(self) -> float:
        """Share of the requests that are done, 0 to 1; 1 for a run without requests."""
        known = self.requests + self.to_come
        return (self.answered + self.failed) / known if known else 1.0


@dataclass(frozen=True)
class Pace:
    """How fast the run's requests are answered now, and the seconds until the rest is at that pace;
    None where nothing came in the last WINDOW seconds, or the run is not asking."""

    per_second: float | None = None
    seconds_left: float | None = None


@dataclass(frozen=True)
class Watched:
    """A run with its progress.

    `missing` counts items by cause. `failed` and `tried` are what providers said of requests
    that failed, and of those that wait for another try. `unattended`: something is due and no
    worker is alive. `paused_until`: the evaluator asked not to be called before; None if it
    did not. `steps` can be taken now.
    """

    run: Run
    progress: Progress
    missing: dict[str, int]
    failed: list[dict[str, Any]]
    tried: list[dict[str, Any]]
    unattended: bool
    paused_until: datetime | None
    steps: list[str]
    pace: Pace = Pace()


def watch(run: Run) -> Watched:
    """Where the run stands now."""
    now = timezone.now()
    paused = run.state == Run.State.RUNNING and run.endpoint.is_paused(now)
    paused_until = run.endpoint.paused_until if paused else None
    done = progress(run)
    unattended = paused_until is None and _unattended(run, now)
    wanted = Request.objects.wanted_by(run)
    failed = wanted.filter(state="failed").words()[:MOST_WORDS] if done.failed else []
    tried = wanted.filter(state="waiting").words()[:MOST_WORDS] if done.waiting else []
    return Watched(
        run=run,
        progress=done,
        missing={row["cause"]: row["n"] for row in run.outcomes.missing_by_cause()},
        failed=list(failed),
        tried=list(tried),
        unattended=unattended,
        paused_until=paused_until,
        steps=steering.open_steps(run, done.failed),
        pace=Pace() if unattended else _pace(run, done, now),
    )


def _unattended(run: Run, now: datetime) -> bool:
    if run.state not in {Run.State.PLANNING, Run.State.RUNNING}:
        return False
    if living.works(run.endpoint_id, now):
        return False
    return run.state == Run.State.PLANNING or Request.objects.wanted_by(run).idle(now).exists()


def _pace(run: Run, done: Progress, now: datetime) -> Pace:
    if run.state != Run.State.RUNNING or not done.waiting + done.to_come:
        return Pace()
    last = Reply.objects.aggregate(last=Max("pk"))["last"] or 0
    since = now - timedelta(seconds=WINDOW)
    # Only the newest rows, so that a poll costs the same after a million replies.
    recent = Reply.objects.filter(pk__gt=last - LOOKED, created_at__gt=since)
    answered = recent.filter(Exists(run.calls.filter(request=OuterRef("request")))).count()
    if not answered:
        return Pace()
    running = (now - run.created_at).total_seconds()
    per_second = answered / min(WINDOW, max(1.0, running))
    return Pace(per_second, (done.waiting + done.to_come) / per_second)


def progress(run: Run) -> Progress:
    """How far a run has come, in requests and in items."""
    wanted = Request.objects.filter(pk__in=run.calls.values("request"))
    counted = wanted.values("state").annotate(n=Count("pk")).order_by()
    counts = {row["state"]: row["n"] for row in counted}
    # An item may have several axes; it is settled when none of them is pending.
    pending = Count("item", distinct=True, filter=Q(result=Outcome.Result.PENDING))
    items = run.outcomes.aggregate(all=Count("item", distinct=True), pending=pending)
    return Progress(
        requests=sum(counts.values()),
        answered=counts.get("answered", 0),
        failed=counts.get("failed", 0),
        waiting=counts.get("waiting", 0) + counts.get("leased", 0),
        failures=_failures(run),
        items=items["all"],
        settled=items["all"] - items["pending"],
        to_come=_to_come(run) if items["pending"] else 0,
    )


def _to_come(run: Run) -> int:
    """Calls that the pending outcomes of a run may still need, beside those that are made."""
    strategy = run.asked()
    if run.state != Run.State.PLANNING and not strategy.last_step:
        return 0
    a_sample = sum(len(frames.calls(strategy, step=n)) for n in range(strategy.last_step + 1))
    pending = run.outcomes.pending()
    made = run.calls.filter(outcome__in=pending).count()
    return max(0, pending.count() * run.samples * a_sample - made)


def _failures(run: Run) -> dict[str, int]:
    """Requests that failed, or whose reply says nothing, by cause."""
    # Both begin with the few that are useless, of which there is an index, and not with the run's.
    readings = Reading.objects.filter(parser=run.parser).exclude(cause="")
    useless = [
        Request.objects.wanted_by(run).filter(state="failed"),
        readings.filter(Exists(run.calls.filter(request=OuterRef("reply__request")))),
    ]
    counts: Counter[str] = Counter()
    for found in useless:
        for row in found.values("cause").annotate(n=Count("pk")).order_by():
            counts[row["cause"]] += row["n"]
    return dict(sorted(counts.items(), key=lambda count: (-count[1], count[0])))
