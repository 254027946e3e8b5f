"""The status of a run, for its page and for the API.

Counts are cached until the run changes. While a worker calls an evaluator, a run changes all the
time. So the worker counts for all viewers together, and spends only a small part of its time on
counting.
"""

import json
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from annotation.db import sql
from annotation.models import Event
from judging.evaluators.prices import TOKEN_LIMIT_NAMES
from judging.jobs import heartbeat
from judging.models import Call, Outcome, Reading, Reply, Request, Run
from judging.runs import archiving, counts, lifecycle, run_config, warnings
from judging.runs.lifecycle import MAX_MESSAGES
from judging.runs.warnings import ReplyFacts, RunWarning
from judging.strategies import frames

# Seconds between two counts of a worker, or REST_FACTOR times the duration of a count if that is
# longer. The counts are shown for GRACE_FACTOR times this pause, well after the next count is due.
COUNT_EVERY, REST_FACTOR, GRACE_FACTOR = 1.0, 20, 2.5
# Answers per second are measured over the last PACE_WINDOW seconds or the last PACE_REPLIES
# replies, whichever is longer.
PACE_WINDOW, PACE_REPLIES = 10.0, 20
# The number of latest replies, of all runs, among which those of a run are looked for.
MAX_RECENT_REPLIES = 5_000
MAX_SEARCHED_REPLIES = 20_000
# A worker counts its runs every second, and building these queries took longer than running them.
_REQUESTS_BY_STATE = sql.PreparedRows(
    lambda run: (
        Request.objects.filter(pk__in=Call.objects.filter(run=run).values("request"))
        .order_by()
        .values("state", "tried")
        .annotate(n=Count("pk"), amount=Sum("charged"))
        .values_list("state", "tried", "n", "amount")
    ),
    keep_plan=False,
)
# All items of a run, and those that are pending. An item may have several axes; it is settled when
# no axis is pending.
_ITEMS = sql.PreparedRows(
    lambda run: (
        Outcome.objects.filter(run=run)
        .order_by()
        .values("run")
        .annotate(
            items=Count("item", distinct=True),
            pending=Count("item", distinct=True, filter=Q(result=Outcome.Result.PENDING)),
        )
        .values_list("items", "pending")
    ),
    keep_plan=False,
)


@dataclass(frozen=True)
class Progress:
    """Counts of a run's requests and items.

    `failures` counts requests without a usable answer by cause, most frequent first: failed
    requests, and replies that were cut, refused or unparsable, except those of items that have a
    usable reply from a supplement. `to_come` counts calls that are
    still to be created, by planning or as later steps of chains; several calls may share a request.
    `in_flight` of the waiting requests are being sent now, or fewer if other runs share the
    endpoint: a worker holds more requests than it sends. `tries` counts failed tries by cause, most
    frequent first, of all requests whether answered meanwhile or not; a retry of failed requests
    begins them anew. `spent_unanswered` is what tries without an answer counted against caps, by
    whichever run they were sent.
    """

    requests: int
    answered: int
    failed: int
    waiting: int
    items: int
    settled: int
    failures: dict[str, int]
    to_come: int = 0
    in_flight: int = 0
    tries: dict[str, int] = field(default_factory=dict)
    spent_unanswered: float = 0.0

    @property
    def share(self) -> float:
        """The share of the requests that are done, 0 to 1; 1 for a run without requests."""
        known = self.requests + self.to_come
        return (self.answered + self.failed) / known if known else 1.0


@dataclass(frozen=True)
class RunCounts:
    """The counts of a run that take long to compute, see `RunStatus`.

    `per_second` is the number of answers per second that a worker measured at the timestamp `at`.
    """

    progress: Progress
    missing: dict[str, int]
    failed: list[dict[str, Any]]
    tried: list[dict[str, Any]]
    facts: ReplyFacts = field(default_factory=ReplyFacts)
    per_second: float | None = None
    at: float = 0.0


@dataclass(frozen=True)
class RunPace:
    """Answers per second over the last PACE_REPLIES replies, however old, and the seconds left at
    that pace; None if nothing arrived since the run was started or resumed, or it is not
    running."""

    per_second: float | None = None
    seconds_left: float | None = None


@dataclass(frozen=True)
class RunStatus:
    """A run with its progress.

    `missing` counts outcomes by cause. `failed` and `tried` are the providers' messages for
    requests that failed, and for requests that wait for another try. `unattended` is True if work
    is due and no worker is alive. `paused_until` is the time until which the provider asked for no
    calls, or None. `steps` are the actions that are possible now. `refused` is a parameter of ours
    that the evaluator refused, "" for none, and `instead` is the parameter that the evaluator asked
    for in its place. `answered_by` counts the replies by the model that they name. `sharing` is the
    number of other running runs whose calls go to the same endpoint.
    """

    run: Run
    progress: Progress
    missing: dict[str, int]
    failed: list[dict[str, Any]]
    tried: list[dict[str, Any]]
    unattended: bool
    paused_until: datetime | None
    steps: list[str]
    pace: RunPace = RunPace()
    refused: str = ""
    instead: str = ""
    answered_by: dict[str, int] = field(default_factory=dict)
    warnings: list[RunWarning] = field(default_factory=list)
    sharing: int = 0

    @property
    def is_unusable(self) -> bool:
        """True if the run is finished and all of its outcomes are missing."""
        if self.run.state != Run.State.FINISHED or not self.progress.items:
            return False
        return not self.run.outcomes.exclude(result=Outcome.Result.MISSING).exists()

    @property
    def is_mostly_cut(self) -> bool:
        """True if most of the missing items had replies that were cut off."""
        return 2 * self.missing.get("truncated", 0) > sum(self.missing.values())

    @property
    def leaves_no_limit(self) -> bool:
        """True if no length limit for answers would be sent without the refused parameter."""
        return self.refused in TOKEN_LIMIT_NAMES and not self.instead

    @property
    def corrected_parameters(self) -> str:
        """The parameters for a new endpoint, as JSON: without the refused one, and with the one
        that the evaluator asked for in its place."""
        kept = {self.instead: self.run.sends()[self.refused]} if self.instead else {}
        return json.dumps({self.refused: None, **kept})


def load_status(run: Run) -> RunStatus:
    """Load the current status of a run, and set its `counted`; while it runs, the counts may be a
    moment old."""
    now = timezone.now()
    counts.with_item_counts([run], now)
    paused = run.state == Run.State.RUNNING and run.endpoint.is_paused(now)
    paused_until = run.endpoint.paused_until if paused else None
    counted = _load_counts(run, now)
    unattended = paused_until is None and _is_unattended(run, now)
    refused, instead = lifecycle.find_refused_parameter(run, counted.failed)
    return RunStatus(
        run=run,
        progress=counted.progress,
        missing=counted.missing,
        failed=counted.failed,
        tried=counted.tried,
        unattended=unattended,
        paused_until=paused_until,
        steps=archiving.list_open_steps(
            run, counted.progress.failed, answered=counted.progress.answered, refused=refused
        ),
        pace=RunPace() if unattended else _pace(run, counted, now),
        refused=refused,
        instead=instead,
        answered_by={name: n for name, n in counted.facts.models.items() if name},
        warnings=warnings.list_warnings(run.pinned["model"], counted.facts),
        sharing=_count_sharing(run) if counted.progress.in_flight else 0,
    )


def _count_sharing(run: Run) -> int:
    if run.state != Run.State.RUNNING:
        return 0
    return Run.objects.running().filter(endpoint=run.endpoint_id).exclude(pk=run.pk).count()


def update_counts(runs: Iterable[int], now: datetime) -> float:
    """Count these runs for all viewers; return the seconds until they should be counted again."""
    begun = time.monotonic()
    listed = list(Run.objects.filter(pk__in=runs).select_related("strategy"))
    states = counts.load_states(listed)
    counted = {
        run.pk: asdict(
            replace(count_run(run), per_second=_per_second(run, now), at=now.timestamp())
        )
        for run in listed
    }
    items = counts.count_items(list(states))
    rest = max(COUNT_EVERY, REST_FACTOR * (time.monotonic() - begun))
    until = now + timedelta(seconds=rest * GRACE_FACTOR)
    counts.store_counts(counts.Kind.PROGRESS, states, counted, until)
    counts.store_counts(counts.Kind.ITEMS, states, items, until)
    return rest


def release_counts(run: Run) -> None:
    """End the extra time for which the run's counts may be shown, since no worker updates them any
    more.

    A finished run is counted now, so that its first viewer need not wait.
    """
    counts.release_counts(run)
    if run.state == Run.State.FINISHED:
        _load_counts(run, timezone.now())
        counts.with_item_counts([run], timezone.now())


def _load_counts(run: Run, now: datetime) -> RunCounts:
    states = counts.load_states([run])
    kept = counts.load_counts(counts.Kind.PROGRESS, states, now)
    # Counts that an earlier version stored have no facts.
    if run.pk in kept and "facts" in kept[run.pk]:
        return _build_counts(kept[run.pk])
    counted = count_run(run)
    counts.store_counts(counts.Kind.PROGRESS, states, {run.pk: asdict(counted)})
    return counted


def _build_counts(kept: counts.Counts) -> RunCounts:
    parts = {"progress": Progress(**kept["progress"]), "facts": ReplyFacts(**kept["facts"])}
    return RunCounts(**{**kept, **parts})


def count_run(run: Run) -> RunCounts:
    """Compute all counts of a run, in a few queries over its requests and outcomes."""
    done = count_progress(run)
    wanted = Request.objects.wanted_by(run)
    failed = wanted.filter(state="failed").failure_messages()[:MAX_MESSAGES] if done.failed else []
    tried = wanted.filter(state="waiting").failure_messages()[:MAX_MESSAGES] if done.waiting else []
    return RunCounts(
        progress=done,
        missing={row["cause"]: row["n"] for row in run.outcomes.missing_by_cause()},
        failed=list(failed),
        tried=list(tried),
        facts=warnings.count_facts(run),
    )


def _is_unattended(run: Run, now: datetime) -> bool:
    if run.state not in {Run.State.PLANNING, Run.State.RUNNING}:
        return False
    if heartbeat.has_worker(run.endpoint_id, now):
        return False
    return run.state == Run.State.PLANNING or Request.objects.wanted_by(run).idle(now).exists()


def _pace(run: Run, counted: RunCounts, now: datetime) -> RunPace:
    done = counted.progress
    left = done.waiting + done.to_come
    if run.state != Run.State.RUNNING or not left:
        return RunPace()
    # If no worker counts the run, its counts stay valid, but its pace does not.
    old = now.timestamp() - counted.at > PACE_WINDOW / 2
    per_second = _per_second(run, now) if old else counted.per_second
    return RunPace(per_second, left / per_second) if per_second else RunPace()


def _per_second(run: Run, now: datetime) -> float | None:
    """Return how many replies of the run arrived per second, over the last PACE_WINDOW seconds or
    the last PACE_REPLIES replies, whichever is longer; None if no reply arrived since the run was
    started or resumed."""
    if run.state != Run.State.RUNNING:
        return None
    last = Reply.objects.aggregate(last=Max("pk"))["last"] or 0
    window = now - timedelta(seconds=PACE_WINDOW)
    recent = _find_recent(run, last - MAX_RECENT_REPLIES).filter(created_at__gt=window).count()
    running = (now - run.created_at).total_seconds()
    if recent >= PACE_REPLIES:
        return recent / min(PACE_WINDOW, max(1.0, running))
    events = Event.objects.filter(project=run.project_id, subject=f"run {run.number}")
    resumed = events.filter(kind=f"run {Run.State.RUNNING}").aggregate(at=Max("created_at"))["at"]
    begun = max(run.created_at, resumed or run.created_at)
    found = _find_recent(run, last - MAX_SEARCHED_REPLIES).filter(created_at__gt=begun)
    times = list(found.order_by("-pk").values_list("created_at", flat=True)[: PACE_REPLIES + 1])
    # The reply before the last PACE_REPLIES only tells when the time of these began.
    counted = min(len(times), PACE_REPLIES)
    since = times[PACE_REPLIES] if len(times) > PACE_REPLIES else begun
    return counted / max(1.0, (now - since).total_seconds()) if counted else None


def _find_recent(run: Run, after: int) -> QuerySet[Reply]:
    # Read only the newest rows, so that the query takes the same time after a million replies.
    newest = Reply.objects.filter(pk__gt=after)
    return newest.filter(Exists(run.calls.filter(request=OuterRef("request"))))


def count_progress(run: Run) -> Progress:
    """Count the progress of a run, in requests and in items."""
    counts: Counter[str] = Counter()
    tries: Counter[str] = Counter()
    # Few combinations of causes occur, so this reads a few rows.
    spent_unanswered = 0.0
    for state, tried, n, amount in _REQUESTS_BY_STATE.fetch(run=run.pk):
        counts[state] += n
        spent_unanswered += float(amount)
        tries.update({cause: times * n for cause, times in tried.items()})
    items, pending = next(iter(_ITEMS.fetch(run=run.pk)), (0, 0))
    return Progress(
        requests=sum(counts.values()),
        answered=counts.get("answered", 0),
        failed=counts.get("failed", 0),
        waiting=counts.get("waiting", 0) + counts.get("leased", 0),
        failures=_failures(run, any_failed=bool(counts["failed"])),
        items=items,
        settled=items - pending,
        to_come=_count_calls_to_come(run) if pending else 0,
        # A worker holds more requests than the endpoint takes at a time; the others wait.
        in_flight=min(counts.get("leased", 0), run.endpoint.in_flight),
        tries=_sort_counts(tries),
        spent_unanswered=spent_unanswered,
    )


def _count_calls_to_come(run: Run) -> int:
    """Count the calls that the pending outcomes of a run may still need and that are not created
    yet."""
    strategy = run.pinned_strategy()
    if run.state != Run.State.PLANNING and not strategy.last_step:
        return 0
    a_sample = sum(len(frames.list_calls(strategy, step=n)) for n in range(strategy.last_step + 1))
    # Filter by each call's own outcome. With a filter by the run's outcomes, PostgreSQL may search
    # all outcomes for each call, since it has no statistics during planning.
    made = run.calls.filter(outcome__result=Outcome.Result.PENDING).count()
    return max(0, run.outcomes.pending().count() * run.samples * a_sample - made)


def _failures(run: Run, *, any_failed: bool) -> dict[str, int]:
    """Count the requests that failed or have a reply that could not be parsed, by cause, but not
    those that a supplement repaired."""
    calls = run.calls.all()
    if run_config.SUPPLEMENTS_KEY in run.pinned:
        # The outcome alone finds its few calls. With the run beside it, PostgreSQL may read all
        # calls of the run for each of them, since it has no statistics during planning.
        later = Call.objects.filter(
            outcome=OuterRef("outcome"),
            supplement__gt=OuterRef("supplement"),
            outcome__result__in=set(Outcome.Result)
            - {Outcome.Result.MISSING, Outcome.Result.PENDING},
        )
        calls = calls.exclude(Exists(later))
    # Both queries start from the few failed or unusable rows, which have an index, and not from all
    # rows of the run.
    readings = Reading.objects.filter(parser=run.parser).exclude(cause="")
    useless: list[QuerySet[Any]] = [
        readings.filter(Exists(calls.filter(request=OuterRef("reply__request"))))
    ]
    if any_failed:
        failed = Request.objects.filter(state="failed")
        useless.append(failed.filter(Exists(calls.filter(request=OuterRef("pk")))))
    counts: Counter[str] = Counter()
    for found in useless:
        for row in found.values("cause").annotate(n=Count("pk")).order_by():
            counts[row["cause"]] += row["n"]
    return _sort_counts(counts)


def _sort_counts(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda count: (-count[1], count[0])))
