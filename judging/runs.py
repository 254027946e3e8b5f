"""What becomes of a run: started, planned, paused, resumed, cancelled, tried again, finished."""

import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any

from django.db.models import Count, Max, Q
from django.utils import timezone

from annotation import writing
from annotation.models import Event, Membership, Project
from judging import calls, frames, outcomes, pinning, selecting
from judging.models import Budget, Endpoint, Outcome, Reading, Request, Run, StrategyVersion
from judging.providers import PROVIDERS
from judging.querysets import RequestQuerySet
from judging.strategies import Strategy

# Calls are planned in small transactions, so that nobody waits long for the write lock.
BATCH = 200


class Refused(ValueError):
    """A run that cannot be started or moved; the message says what to do."""


@dataclass(frozen=True)
class Progress:
    """Counts of a run's requests and items.

    `failures` are requests without a usable answer by cause, most frequent first: those that
    failed, and replies that were cut, refused or unreadable.
    """

    requests: int
    answered: int
    failed: int
    waiting: int
    items: int
    settled: int
    failures: dict[str, int]

    @property
    def share(self) -> float:
        """Share of the requests that are done, 0 to 1; 1 for a run without requests."""
        return (self.answered + self.failed) / self.requests if self.requests else 1.0


def start(
    project: Project,
    *,
    strategy: StrategyVersion,
    endpoint: Endpoint,
    member: Membership | None = None,
    limit: int | None = None,
    cap: Decimal | None = None,
    with_duplicates: bool = False,
    seed: int | None = None,
) -> Run:
    """A new run over the project's judgeable items, or a random `limit` of them.

    Everything the run rests on is pinned at once, in one transaction; its calls are planned by
    whoever works on it first. Raises `Refused` when there is nothing to judge or a cap cannot
    be kept.
    """
    asked = strategy.strategy()
    check(asked, endpoint, cap)
    if Budget.objects.filter(project=project, cap__isnull=False).exists():
        _check_prices(endpoint)
    seed = secrets.randbits(48) if seed is None else seed
    with writing.transact():
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=project.pk)
        items = selecting.items(project, with_duplicates=with_duplicates)
        rows = selecting.chosen(items, seed, limit)
        if not rows:
            raise Refused(
                "No item of this project is resolved as valid or score-invariant yet."
                " Label some, or import items with --accept."
            )
        run = pinning.pin(
            project,
            strategy=strategy,
            endpoint=endpoint,
            member=member,
            cap=cap,
            seed=seed,
            rows=rows,
        )
        _record("run started", run, member, items=len(rows))
    return run


def plan(run: Run, *, keep_on: Callable[[], bool] = lambda: True) -> None:
    """Make the calls of a new run, batch by batch, as long as `keep_on` says so.

    Stopped half-way, it goes on where it was.
    """
    strategy = run.strategy.strategy()
    planned = run.calls.aggregate(last=Max("outcome"))["last"] or 0
    while Run.objects.planning().filter(pk=run.pk).exists() and keep_on():
        later = run.outcomes.pending().filter(pk__gt=planned).select_related("revision")
        batch = list(later.order_by("pk")[:BATCH])
        if not batch:
            Run.objects.planning().filter(pk=run.pk).update(state=Run.State.RUNNING)
            break
        calls.make(run, strategy, batch)
        planned = batch[-1].pk
    run.refresh_from_db(fields=["state"])
    if run.state == Run.State.RUNNING:
        finish_if_done(run)


def pause(run: Run, member: Membership | None, *, reason: str = "Paused by hand.") -> None:
    """No further call is started; those in flight end and are kept."""
    _move(run, {Run.State.RUNNING}, Run.State.PAUSED, member, reason=reason)


def resume(run: Run, member: Membership | None) -> None:
    """Go on with a paused run."""
    _move(run, {Run.State.PAUSED}, Run.State.RUNNING, member)
    finish_if_done(run)


def cancel(run: Run, member: Membership | None) -> None:
    """End a run for good; what was answered stays, the rest is never asked."""
    open_states = {Run.State.PLANNING, Run.State.RUNNING, Run.State.PAUSED}
    _move(run, open_states, Run.State.CANCELLED, member)


def retry_failed(run: Run, member: Membership | None) -> int:
    """Ask the run's failed requests again; the number of them.

    Its missing outcomes are decided anew, also those that another run's retry has mended. Other
    runs that share the requests keep what they found until they are retried themselves.
    """
    states = {Run.State.RUNNING, Run.State.PAUSED, Run.State.FINISHED}
    with writing.transact():
        failed = Request.objects.wanted_by(run).filter(state="failed").order_by("pk")
        ids = list(failed.select_for_update(no_key=True).values_list("pk", flat=True))
        # Waits for whoever is deciding one of them now by the failure that is being undone.
        run.outcomes.lock_unparsed()
        missing = run.outcomes.missing_with_calls()
        if not ids and not missing.exists():
            raise Refused("No request of this run failed.")
        _move(run, states, Run.State.RUNNING, member, requests=len(ids))
        for part in _parts(ids, 500):
            Request.objects.filter(pk__in=part).ask_again(timezone.now())
        missing.update(result=Outcome.Result.PENDING, detail="", cause="", values={})
    finish_if_done(run)
    return len(ids)


# What a person may do to a run, by the name that pages and the API have for it.
STEPS: dict[str, Callable[[Run, Membership], object]] = {
    "pause": pause,
    "resume": resume,
    "cancel": cancel,
    "retry": retry_failed,
}


def open_steps(run: Run, failed: int) -> list[str]:
    """The steps that a run with this many failed requests can take now."""
    steps = {
        Run.State.PLANNING: ["cancel"],
        Run.State.RUNNING: ["pause", "cancel"],
        Run.State.PAUSED: ["resume", "cancel"],
    }.get(Run.State(run.state), [])
    return [*steps, "retry"] if failed and run.state != Run.State.CANCELLED else steps


def finish_if_done(run: Run) -> bool:
    """Mark a running run as finished if no request of it is open; whether none is.

    Outcomes that nobody decided, since a worker was killed between two transactions, are decided
    here.
    """
    if Request.objects.wanted_by(run).still_open().exists():
        return False
    pending = list(run.outcomes.pending().values_list("pk", flat=True))
    for part in _parts(pending, 500):
        outcomes.settle(part)
    with writing.transact():
        # Looked at once more under the run's lock: a retry may have come meanwhile.
        Run.objects.select_for_update(no_key=True).only("pk").get(pk=run.pk)
        if Request.objects.wanted_by(run).still_open().exists():
            return False
        with suppress(Refused):
            _move(run, {Run.State.RUNNING}, Run.State.FINISHED, None)
    return True


def progress(run: Run) -> Progress:
    """How far a run has come, in requests and in items."""
    wanted = Request.objects.filter(pk__in=run.calls.values("request"))
    counted = wanted.values("state").annotate(n=Count("pk")).order_by()
    counts = {row["state"]: row["n"] for row in counted}
    items = run.outcomes.aggregate(
        items=Count("pk"), settled=Count("pk", filter=~Q(result=Outcome.Result.PENDING))
    )
    return Progress(
        requests=sum(counts.values()),
        answered=counts.get("answered", 0),
        failed=counts.get("failed", 0),
        waiting=counts.get("waiting", 0) + counts.get("leased", 0),
        failures=_failures(run, wanted),
        **items,
    )


def _failures(run: Run, wanted: RequestQuerySet) -> dict[str, int]:
    """Requests that failed, or whose reply says nothing, by cause."""
    replies = Reading.objects.filter(reply__request__in=wanted, parser=run.parser)
    useless = [wanted.filter(state="failed"), replies.exclude(cause="")]
    counts: Counter[str] = Counter()
    for found in useless:
        for row in found.values("cause").annotate(n=Count("pk")).order_by():
            counts[row["cause"]] += row["n"]
    return dict(sorted(counts.items(), key=lambda count: (-count[1], count[0])))


def check(strategy: Strategy, endpoint: Endpoint, cap: Decimal | None = None) -> None:
    """Raise `Refused` if the endpoint cannot be asked this way, or not within a cap."""
    provider = PROVIDERS[endpoint.provider]
    if bool(strategy.metric) != provider.offline:
        wanted = "the offline baseline endpoint" if strategy.metric else "an evaluator LLM"
        raise Refused(f"Strategy {strategy.slug} needs {wanted}; {endpoint.name} is not one.")
    if cap is not None:
        _check_prices(endpoint)
    for spec, sources in frames.FRAMES[strategy.frame].items():
        prompt = frames.render(strategy, dict.fromkeys(sources.values(), ""), spec)
        try:
            provider.body(model=endpoint.model, parameters=endpoint.parameters, prompt=prompt)
        except ValueError as error:
            raise Refused(f"{endpoint.name} cannot be asked: {error}") from error


def _check_prices(endpoint: Endpoint) -> None:
    prices = endpoint.prices()
    if None in (prices.per_million_in, prices.per_million_out):
        raise Refused(
            f"A cap needs prices, and those of {endpoint.name} are unknown."
            " Enter them (0 for a free evaluator) or leave the cap out."
        )


def _move(
    run: Run,
    allowed: Collection[str],
    state: str,
    member: Membership | None,
    *,
    reason: str = "",
    **data: Any,
) -> None:
    """Move a run on, unless somebody else moved it out of the allowed states meanwhile."""
    ended = state in {Run.State.FINISHED, Run.State.CANCELLED}
    values = {"state": state, "reason": reason, "finished_at": timezone.now() if ended else None}
    with writing.transact():
        moved = Run.objects.filter(pk=run.pk, state__in=allowed).update(**values)
        run.refresh_from_db(fields=list(values))
        if not moved:
            raise Refused(f"Run {run.number} is {run.state}, so it cannot become {state}.")
        _record(f"run {state}", run, member, reason=reason, **data)


def _record(kind: str, run: Run, member: Membership | None, **data: Any) -> None:
    Event.record(
        kind,
        f"run {run.number}",
        project_id=run.project_id,
        member_id=member.pk if member else None,
        **data,
    )


def _parts(ids: Sequence[int], size: int) -> Iterable[Sequence[int]]:
    stream = iter(ids)
    while part := list(islice(stream, size)):
        yield part
