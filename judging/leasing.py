"""The database side of asking: who may ask, what is asked next, what came of it.

Every change is one short transaction. The rows are the truth: a lease that its holder does not
renew runs out, and the request is as good as waiting.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import connection
from django.db.models import F, Q
from django.utils import timezone

from annotation import writing
from annotation.models import Event, Item
from judging import outcomes, runs
from judging.frames import CallSpec
from judging.models import Budget, Call, Dispatcher, Endpoint, Outcome, Reply, Request, Run
from judging.providers import PROVIDERS, Answer
from judging.providers.errors import EvaluatorError, Halting
from judging.providers.prices import Prices, cost, estimate
from judging.providers.retries import next_try

# A worker that was killed is noticed after this long, so it is also how long its requests rest.
LEASE = timedelta(seconds=12)
# How long nothing may happen before a page says that no worker is running.
QUIET = timedelta(seconds=10)
ZERO = Decimal(0)
_REQUESTS = Request._meta.db_table


@dataclass(frozen=True, slots=True)
class Leased:
    """A request that this worker asks now: its exact body and what was reserved for it."""

    request_id: int
    run_id: int
    attempts: int
    body: bytes
    reserved: Decimal


@dataclass(frozen=True, slots=True)
class Batch:
    """What was leased, and the runs that are being worked on now."""

    runs: frozenset[int]
    leased: list[Leased]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one leased request: an answer, an error, or neither (it was not asked)."""

    leased: Leased
    answer: Answer | None = None
    error: EvaluatorError | None = None


def take_dispatcher(endpoint_id: int, holder: str, now: datetime) -> bool:
    """Whether `holder` may ask this endpoint until `now` + LEASE.

    One holder at a time for each endpoint keeps its limits true however many workers there are.
    """
    name = _dispatcher(endpoint_id)
    Dispatcher.objects.get_or_create(name=name, defaults={"held_until": now})
    free = Q(holder=holder) | Q(held_until__lte=now)
    with writing.transact():
        return bool(
            Dispatcher.objects.filter(free, name=name).update(holder=holder, held_until=now + LEASE)
        )


def leave_dispatcher(endpoint_id: int, holder: str, now: datetime) -> None:
    with writing.transact():
        Dispatcher.objects.filter(name=_dispatcher(endpoint_id), holder=holder).update(
            holder="", held_until=now
        )


def renew(endpoint_id: int, holder: str, now: datetime) -> bool:
    """Keep the dispatcher row and all leases; False if another worker took over meanwhile."""
    mine = Dispatcher.objects.filter(name=_dispatcher(endpoint_id), holder=holder)
    with writing.transact():
        if not mine.update(held_until=now + LEASE):
            return False
        Request.objects.filter(endpoint_id=endpoint_id, state="leased", leased_by=holder).update(
            leased_until=now + LEASE
        )
    return True


def _dispatcher(endpoint_id: int) -> str:
    return f"endpoint {endpoint_id}"


def lease(endpoint: Endpoint, holder: str, count: int, now: datetime) -> Batch:
    """Up to `count` due requests of the endpoint's running runs, shared out among the runs."""
    waiting = list(
        Run.objects.running().filter(endpoint=endpoint).select_related("strategy").order_by("pk")
    )
    _free_expired(endpoint, now)
    leased: list[Leased] = []
    for left, run in zip(range(len(waiting), 0, -1), waiting, strict=True):
        share = -(-(count - len(leased)) // left)
        if share > 0:
            leased += _lease_for(run, endpoint, holder, share, now)
    return Batch(frozenset(run.pk for run in waiting), leased)


def store(endpoint: Endpoint, results: Sequence[Result]) -> None:
    """Put what came of requests on record, in one transaction, and decide what now can be."""
    now = timezone.now()
    answered = [result for result in results if result.answer]
    with writing.transact():
        _store_replies(endpoint, answered, now)
        for result in results:
            if not result.answer:
                _store_failure(result, now)
        _settle_money(endpoint, results)
    ended = [result.leased.request_id for result in results]
    touched = Outcome.objects.filter(calls__request__in=ended).values_list("pk", flat=True)
    outcomes.settle(set(touched))


def halt(endpoint: Endpoint, reason: str) -> None:
    """Pause every running run of the endpoint, in the provider's words."""
    for run in Run.objects.running().filter(endpoint=endpoint):
        runs.pause(run, None, reason=reason)


def due_endpoints(now: datetime) -> list[int]:
    """Endpoints with something to do for a running or a newly made run, in one query."""
    due = Q(requests__state="waiting", requests__next_try__lte=now) | Q(
        requests__state="leased", requests__leased_until__lte=now
    )
    running = Endpoint.objects.filter(due, requests__calls__run__state="running")
    planning = Endpoint.objects.filter(runs__state="planning")
    return list(running.union(planning).values_list("pk", flat=True).distinct())


def unattended(run: Run, now: datetime) -> bool:
    """Whether something of a run is due and no worker has been at its endpoint for QUIET.

    A run that was just started or resumed gets that time too.
    """
    planning = run.state == Run.State.PLANNING
    if not planning and run.state != Run.State.RUNNING:
        return False
    if not planning and not Request.objects.wanted_by(run).idle(now).exists():
        return False
    worked = Dispatcher.objects.filter(
        name=_dispatcher(run.endpoint_id), held_until__gt=now - QUIET
    )
    moved = Event.objects.filter(
        project=run.project_id, subject=f"run {run.number}", created_at__gt=now - QUIET
    )
    return not worked.exists() and not moved.exists()


def _free_expired(endpoint: Endpoint, now: datetime) -> None:
    """Requests of a worker that was killed wait again; what was reserved for them is freed."""
    expired = Request.objects.filter(endpoint=endpoint, state="leased", leased_until__lte=now)
    with writing.transact():
        for request in expired.select_for_update(skip_locked=True):
            _release_money(request.leased_for_id, request.reserved)
            Request.objects.filter(pk=request.pk).update(**_WAITING)


_WAITING = {
    "state": "waiting",
    "leased_by": "",
    "leased_until": None,
    "leased_for": None,
    "reserved": ZERO,
}


def _lease_for(
    run: Run, endpoint: Endpoint, holder: str, count: int, now: datetime
) -> list[Leased]:
    with writing.transact():
        found = list(
            Request.objects.wanted_by(run)
            .filter(endpoint_id=run.endpoint_id)
            .due(now)
            .order_by("place")
            .select_for_update(skip_locked=True)[:count]
        )
        ready = _within_cap(run, _prepared(run, endpoint, found)) if found else []
        Request.objects.filter(pk__in=[leased.request_id for leased in ready]).update(
            state="leased", leased_by=holder, leased_until=now + LEASE, leased_for=run
        )
        _note_reserved(ready)
    if found and not ready:
        runs.pause(run, None, reason="The next call would pass the cost cap. Raise it to go on.")
    return ready


def _prepared(run: Run, endpoint: Endpoint, found: Sequence[Request]) -> list[Leased]:
    """The requests with their bodies, rendered again from one call each of the run."""
    strategy = run.strategy.strategy()
    calls = Call.objects.filter(request__in=found, run=run).order_by("-pk")
    call_of = {call.request_id: call for call in calls.select_related("outcome__revision")}
    prepared = []
    for request in found:
        call = call_of[request.pk]
        spec = CallSpec(call.role, call.order)
        body = runs.body_of(run, call.outcome.revision.texts, spec, strategy)
        if runs.digest_of(run, body, request.sample) != request.digest:
            raise RuntimeError(f"{call} renders to another request than was planned.")
        price = estimate(_prices(endpoint), body, run.pinned["parameters"]) or ZERO
        prepared.append(Leased(request.pk, run.pk, request.attempts, body, price))
    return prepared


def _note_reserved(ready: Sequence[Leased]) -> None:
    rows = [(leased.reserved, leased.request_id) for leased in ready if leased.reserved]
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(f"UPDATE {_REQUESTS} SET reserved = %s WHERE id = %s", rows)


def _within_cap(run: Run, prepared: list[Leased]) -> list[Leased]:
    """As many of the requests as run and project can pay, reserved on both."""
    while prepared:
        total = sum((leased.reserved for leased in prepared), ZERO)
        if total == 0 or _reserve(run, total):
            return prepared
        prepared = prepared[: len(prepared) // 2]
    return []


def _reserve(run: Run, total: Decimal) -> bool:
    """Reserve by updates that refuse to pass a cap; True if run and project could."""
    fits = Q(cap__isnull=True) | Q(cap__gte=F("spent") + F("reserved") + total)
    if not Run.objects.filter(fits, pk=run.pk).update(reserved=F("reserved") + total):
        return False
    budget = Budget.objects.filter(project_id=run.project_id)
    if budget.exists() and not budget.filter(fits).update(reserved=F("reserved") + total):
        Run.objects.filter(pk=run.pk).update(reserved=F("reserved") - total)
        return False
    return True


def _store_replies(endpoint: Endpoint, results: Sequence[Result], now: datetime) -> None:
    rows = [_reply(endpoint, result.leased, result.answer) for result in results if result.answer]
    if not rows:
        return
    # Another worker may have answered after this one's lease ran out: the first reply stands.
    Reply.objects.bulk_create(rows, ignore_conflicts=True)
    ids = [row.request_id for row in rows]
    Request.objects.filter(pk__in=ids).exclude(state="answered").update(
        **{**_WAITING, "state": "answered", "cause": "", "message": ""},
        attempts=F("attempts") + 1,
    )
    if not PROVIDERS[endpoint.provider].offline:
        seen = Item.objects.filter(outcomes__calls__request__in=ids, first_reply_at=None)
        Item.objects.filter(pk__in=list(seen.values_list("pk", flat=True))).update(
            first_reply_at=now
        )


def _reply(endpoint: Endpoint, leased: Leased, answer: Answer) -> Reply:
    return Reply(
        request_id=leased.request_id,
        # PostgreSQL cannot hold NUL, and no model means one.
        text=answer.text.replace("\x00", "\N{REPLACEMENT CHARACTER}"),
        finish=answer.finish,
        model=answer.model[:200],
        tokens_in=answer.tokens_in,
        tokens_out=answer.tokens_out,
        cost=cost(_prices(endpoint), answer.tokens_in, answer.tokens_out),
        asked_at=answer.started,
        seconds=answer.seconds,
    )


def _store_failure(result: Result, now: datetime) -> None:
    """The request waits for its next try, or has failed for good."""
    ours = Request.objects.filter(pk=result.leased.request_id, state="leased")
    error = result.error
    if error is None or isinstance(error, Halting):
        ours.update(**_WAITING)
        return
    attempts = result.leased.attempts + 1
    wait = next_try(attempts, error, random.Random())
    values = {**_WAITING, "attempts": attempts, "message": str(error)}
    if wait is None:
        ours.update(**{**values, "state": "failed", "cause": error.cause})
    else:
        ours.update(**values, next_try=now + timedelta(seconds=wait))


def _settle_money(endpoint: Endpoint, results: Iterable[Result]) -> None:
    """What was reserved becomes what was spent; an unknown cost counts as the estimate."""
    for result in results:
        price = ZERO
        if result.answer:
            answer = result.answer
            known = cost(_prices(endpoint), answer.tokens_in, answer.tokens_out)
            price = result.leased.reserved if known is None else known
        if price or result.leased.reserved:
            _release_money(result.leased.run_id, result.leased.reserved, spent=price)


def _release_money(run_id: int | None, reserved: Decimal, *, spent: Decimal = ZERO) -> None:
    if run_id is None or not (reserved or spent):
        return
    change = {"reserved": F("reserved") - reserved, "spent": F("spent") + spent}
    Run.objects.filter(pk=run_id).update(**change)
    Budget.objects.filter(project__runs=run_id).update(**change)


def _prices(endpoint: Endpoint) -> Prices:
    return Prices(endpoint.price_in, endpoint.price_out)
