"""The database side of the engine: it decides which worker may call an endpoint, and which requests
are sent next.

Every change is one short transaction. Leases exist only as rows: a lease that its holder does not
renew expires, and then the request is waiting again.
"""

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple
from zlib import crc32

from django.conf import settings
from django.db.models import Q

from annotation.db import bulk, sql, transactions
from judging.errors import Refused
from judging.evaluators.prices import estimate_tokens
from judging.models import Dispatcher, Endpoint, Request, Run
from judging.runs import lifecycle, run_config, spending
from judging.runs.engine import rendering
from judging.runs.engine.models import lease_expired
from judging.strategies.replies.outputs import strip_unstorable

# A killed worker is noticed after this time. Until then, nobody sends its requests again.
LEASE_DURATION = timedelta(seconds=12)
# What a slice of time has leased waits in memory: prompts may have megabytes each.
MAX_LEASED_BYTES = 64_000_000
# So many requests of a run are rendered first, and then as many at once as fit if none is longer
# than the longest before, but no more than before: a few short ones do not tell how long all are.
_FIRST_RENDERED, _MOST_RENDERED = 16, 1_024
# The longest body of each run, and how many were rendered.
_rendered: dict[int, tuple[int, int]] = {}
_REQUEST_TABLE = Request._meta.db_table
# Statements of each lease, and of each look at the runs and the calls in flight.
_RUNNING_RUNS = sql.PreparedRows(
    lambda endpoint: Run.objects.running().filter(endpoint=endpoint).values_list("pk")
)
_LOCK_DUE = sql.PreparedRows(
    lambda ids, now: Request.objects.filter(pk__among=ids).due(now).with_lock(skip_locked=True)
)
_LEASE = sql.PreparedUpdate(
    lambda ids, holder, until, run: (
        Request.objects.filter(pk__among=ids),
        {"state": "leased", "leased_by": holder, "leased_until": until, "leased_for": run},
    )
)
_UNWANTED = sql.PreparedRows(
    # A cancelled retry ends its leases, and the requests failed as before.
    lambda ids: (
        Request.objects.filter(
            Q(leased_for__in=Run.objects.stopped()) | Q(state=Request.State.FAILED), pk__among=ids
        )
        .wanted_by_none(Run.objects.going_on())
        .values_list("pk")
    )
)
# The lease holders in this process. Their leases stay valid even if a clock jumps.
_local_holders: set[str] = set()
# The endpoint id of each holder that only waits for calls in flight. Meanwhile the next slice of
# this process may begin.
_ending_slices: dict[str, int] = {}
_handover_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class LeasedRequest:
    """A request that this worker sends now, with its exact body and the number of tokens it may
    use. `sent` has the names of the parameters in the body. `timeout` are the seconds that its run
    allows, None for those of the endpoint. `price` is what it costs at most, None if unknown."""

    request_id: int
    run_id: int
    attempts: int
    body: bytes
    tokens: int = 0
    tried: Mapping[str, int] = field(default_factory=dict)
    sent: Collection[str] = ()
    timeout: int | None = None
    price: Decimal | None = None


@dataclass(frozen=True, slots=True)
class LeasedBatch:
    """The leased requests, and the ids of the runs that are running now."""

    runs: frozenset[int]
    leased: list[LeasedRequest]


def acquire_endpoint(endpoint_id: int, holder: str, now: datetime) -> bool:
    """Reserve the endpoint for `holder` until `now` + LEASE_DURATION; return True if that
    succeeded.

    If limits are in memory, only one holder at a time may call the endpoint, so that the limits are
    enforced with any number of workers. If limits are in Redis, every holder may call it, and the
    row only shows that some holder does.
    """
    taken = _acquire_row(_asking(endpoint_id), holder, now, alone=not settings.REDIS_URL)
    if taken:
        _local_holders.add(holder)
    return taken


def hand_over_endpoint(endpoint_id: int, holder: str) -> None:
    """Mark that `holder` sends no more requests and only waits for its calls in flight. The next
    slice of this process may begin meanwhile, since both slices share the limits in memory."""
    _ending_slices[holder] = endpoint_id


def is_ending(endpoint_id: int) -> bool:
    """True if a slice of this process sends no more requests but still waits for calls to the
    endpoint."""
    return endpoint_id in list(_ending_slices.values())


def release_endpoint(endpoint_id: int, holder: str, now: datetime) -> None:
    """Release the endpoint when the slice `holder` has ended. If another slice of this process
    still waits for calls, the row passes to that slice, so that no other process calls the endpoint
    meanwhile."""
    with _handover_lock:
        _local_holders.discard(holder)
        _ending_slices.pop(holder, None)
        heir = next((one for one, pk in list(_ending_slices.items()) if pk == endpoint_id), "")
        _release_row(_asking(endpoint_id), holder, now, heir)


def acquire_planning(endpoint_id: int, holder: str, now: datetime) -> bool:
    """Reserve the planning of the endpoint's runs for `holder` until `now` + LEASE_DURATION; return
    True if that succeeded."""
    return _acquire_row(_planning(endpoint_id), holder, now, alone=True)


def release_planning(endpoint_id: int, holder: str, now: datetime) -> None:
    """Let other workers plan the endpoint's runs. Do nothing if `holder` has lost the row
    meanwhile."""
    _release_row(_planning(endpoint_id), holder, now)


def renew_leases(endpoint_id: int, holder: str, now: datetime, *, planning: bool = False) -> bool:
    """Renew the dispatcher rows and all leases; False if another worker took over meanwhile."""
    rows = [_asking(endpoint_id)] if not settings.REDIS_URL else []
    rows += [_planning(endpoint_id)] if planning else []
    until = now + LEASE_DURATION
    with transactions.transact():
        kept = Dispatcher.objects.filter(name__in=rows, holder=holder).update(held_until=until)
        # If this holder is ending, the row may belong to the next slice of this process.
        if kept < len(rows) and holder not in _ending_slices:
            return False
        if settings.REDIS_URL:
            Dispatcher.objects.filter(name=_asking(endpoint_id)).update(held_until=until)
        Request.objects.leased_by(holder).update(leased_until=until)
    return True


def _acquire_row(name: str, holder: str, now: datetime, *, alone: bool) -> bool:
    given_up = lease_expired("held_until", now) & ~Q(holder__in=_local_holders)
    handed_over = Q(holder__in=list(_ending_slices))
    free = Q(holder=holder) | handed_over | given_up if alone else Q()
    with transactions.transact():
        Dispatcher.objects.get_or_create(name=name, defaults={"held_until": now})
        return bool(
            Dispatcher.objects.filter(free, name=name).update(
                holder=holder, held_until=now + LEASE_DURATION
            )
        )


def _release_row(name: str, holder: str, now: datetime, heir: str = "") -> None:
    until = now + LEASE_DURATION if heir else now
    with transactions.transact():
        Dispatcher.objects.filter(name=name, holder=holder).update(holder=heir, held_until=until)


def _asking(endpoint_id: int) -> str:
    return f"endpoint {endpoint_id}"


def _planning(endpoint_id: int) -> str:
    return f"planning {endpoint_id}"


def lease_requests(
    endpoint: Endpoint, holder: str, count: int, now: datetime, *, room: int = MAX_LEASED_BYTES
) -> LeasedBatch:
    """Lease up to `count` due requests of the endpoint's running runs, divided among the runs; no
    more of a run once the bodies of its requests have its part of `room` bytes.

    Each holder, which is a slice of time, begins at another run. If calls are slow, a slice sends
    only the first few of the requests that it leases, and the later runs would wait until the
    earlier ones have finished.

    With a count of 0, nothing is leased, and the result only lists the running runs.
    """
    if not count:
        ids = _RUNNING_RUNS.fetch(endpoint=endpoint.pk)
        return LeasedBatch(frozenset(pk for (pk,) in ids), [])
    running = list(Run.objects.running().filter(endpoint=endpoint).order_by("pk"))
    first = crc32(holder.encode()) % len(running) if running else 0
    running = running[first:] + running[:first]
    _free_expired(now)
    leased: list[LeasedRequest] = []
    for left, run in zip(range(len(running), 0, -1), running, strict=True):
        share = -(-(count - len(leased)) // left)
        if share > 0:
            part = (room - measure_bodies(leased)) // left
            leased += _lease_run_requests(run, endpoint, holder, share, now, part)
    return LeasedBatch(frozenset(run.pk for run in running), leased)


def measure_bodies(leased: Iterable[LeasedRequest]) -> int:
    """The bytes of the bodies of these requests."""
    return sum(len(one.body) for one in leased)


def find_unwanted(ids: Iterable[int]) -> set[int]:
    """Find the requests that no run waits for any more, because a person stopped the run that sends
    them, or its retry, and no other active run wants them."""
    return {pk for (pk,) in _UNWANTED.fetch(ids=list(ids))}


def pause_endpoint_runs(endpoint: Endpoint, reason: str) -> None:
    """Pause every running run of the endpoint, with the provider's message as the reason."""
    for run in Run.objects.running().filter(endpoint=endpoint):
        pause_run(run, reason)


def find_due_endpoints(now: datetime) -> list[int]:
    """Find the ids of endpoints with work to do, in one query.

    Work is a run to plan or to finish, a request to send, or a request to take over from a dead
    worker.
    """
    return list(Endpoint.objects.due(now).values_list("pk", flat=True))


def _free_expired(now: datetime) -> None:
    """Return the requests of a killed worker to the queue, and free the money reserved for them."""
    with transactions.transact():
        elsewhere = Request.objects.expired(now).exclude(leased_by__in=_local_holders)
        expired = elsewhere.lock_leases(skip_locked=True)
        if expired:
            spending.settle(expired, ())
            Request.objects.filter(pk__in=[request.pk for request in expired]).give_back()


def _lease_run_requests(
    run: Run, endpoint: Endpoint, holder: str, count: int, now: datetime, room: int
) -> list[LeasedRequest]:
    if (run.pinned["provider"], run.pinned["address"]) != (endpoint.provider, endpoint.address):
        pause_run(run, f"The address of {endpoint.name} was changed. Change it back, then resume.")
        return []
    found = _find_due_requests(run, endpoint, count, now)
    if not found:
        return []
    try:
        prepared = _render_requests(run, endpoint, found, room)
    except Refused as error:
        pause_run(run, str(error))
        return []
    # Render before the transaction, so that replies do not wait long for the write lock.
    with transactions.transact():
        prepared, stuck = _reserve_money(run, _lock_still_due(prepared, now))
        ids = [leased.request_id for leased in prepared]
        until = sql.to_database_time(now + LEASE_DURATION)
        _LEASE.run(ids=ids, holder=holder, until=until, run=run.pk)
    if stuck:
        pause_run(run, stuck)
    return prepared


class _DueRequest(NamedTuple):
    """The columns of a due request. Building model objects would take longer than the query."""

    pk: int
    digest: str
    sample: int
    attempts: int
    tried: Mapping[str, int]


def _find_due_requests(
    run: Run, endpoint: Endpoint, count: int, now: datetime
) -> list[_DueRequest]:
    alike = list(Endpoint.objects.alike(endpoint).values_list("pk", flat=True))
    due = Request.objects.filter(endpoint__in=alike).due(now).wanted_by(run)
    return [
        _DueRequest(*row) for row in due.order_by("place").values_list(*_DueRequest._fields)[:count]
    ]


def _lock_still_due(prepared: Sequence[LeasedRequest], now: datetime) -> list[LeasedRequest]:
    """Lock the requests that no other worker has taken meanwhile, for this transaction."""
    ids = [leased.request_id for leased in prepared]
    free = {row[0] for row in _LOCK_DUE.fetch(ids=ids, now=sql.to_database_time(now))}
    return [leased for leased in prepared if leased.request_id in free]


def _render_requests(
    run: Run, endpoint: Endpoint, found: Sequence[_DueRequest], room: int
) -> list[LeasedRequest]:
    """Return the first of the requests with their bodies: as many as fit in `room` bytes, or
    slightly more."""
    prepared: list[LeasedRequest] = []
    while len(prepared) < len(found) and (left := room - measure_bodies(prepared)) > 0:
        longest, before = _rendered.get(run.pk, (1, 0))
        known = max(_FIRST_RENDERED, min(before, _MOST_RENDERED))
        size = min(known, -(-left // longest)) if before else _FIRST_RENDERED
        part = _render_part(run, endpoint, found[len(prepared) : len(prepared) + size])
        longest = max(longest, *(len(one.body) for one in part))
        _rendered[run.pk] = longest, before + len(part)
        prepared += part
    return prepared


def _render_part(run: Run, endpoint: Endpoint, found: Sequence[_DueRequest]) -> list[LeasedRequest]:
    """Return the requests with their bodies; each body is rendered again from a call of the run."""
    numbers = rendering.load_supplements(run, [request.pk for request in found])
    bodies = rendering.render_bodies(run, [request.pk for request in found])
    senders = {number: rendering.with_supplement(run, number) for number in {*numbers.values()}}
    digests = {number: rendering.build_digest_function(one) for number, one in senders.items()}
    names = {number: tuple(one.sends()) for number, one in senders.items()}
    timeout = run.pinned.get(run_config.TIMEOUT_KEY)
    prepared = []
    for request in found:
        body, number = bodies[request.pk], numbers[request.pk]
        sender, sent, digest_of = senders[number], names[number], digests[number]
        if digest_of(body, request.sample) != request.digest:
            raise Refused(
                "This run was planned by another version of the program, and its prompts cannot be "
                "rebuilt. Start a new run."
            )
        prepared.append(
            LeasedRequest(
                request.pk,
                run.pk,
                request.attempts,
                body,
                tokens=estimate_tokens(body, sender.pinned["parameters"]),
                tried=request.tried,
                sent=sent,
                timeout=timeout,
                price=spending.estimate_request(endpoint, sender, body),
            )
        )
    return prepared


def _reserve_money(run: Run, prepared: list[LeasedRequest]) -> tuple[list[LeasedRequest], str]:
    """Return the requests that can be paid for, and the reason if a person must act because none
    can be paid for."""
    if not prepared:
        return [], ""
    reserved = spending.reserve(run, [leased.price for leased in prepared])
    paid = prepared[: reserved.count]
    rows = [(leased.price, leased.request_id) for leased in paid if leased.price]
    if rows:
        bulk.update(_REQUEST_TABLE, {"reserved": "numeric"}, rows)
    return paid, reserved.stuck


def pause_run(run: Run, reason: str) -> None:
    """Pause a run for a reason that a person must fix; calls in flight end and are kept."""
    # Do nothing if a person has paused or cancelled the run meanwhile.
    with suppress(Refused):
        lifecycle.pause(run, None, reason=strip_unstorable(reason))
