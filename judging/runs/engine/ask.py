"""Call one endpoint for a slice of time: one event loop and two busy database threads.

A leaser keeps the queue filled for the callers. There is one caller for each call that may be in
flight. A writer commits the results after at most WRITE_EVERY seconds, so a killed worker loses
only the replies of that time. A decider turns results into outcomes. Callers never wait for the
database, since the evaluator would be idle meanwhile. Writes have a thread of their own, so that
paid replies do not wait behind leases and decisions. Leases and decisions share the other thread:
Python runs one thread at a time, and each busy thread delays the event loop once per call. At 256
calls in flight, a third thread cost 0.03 to 0.07 of the maximum throughput.

Runs are finished as soon as their last outcome is decided, in a third database thread, which is
idle nearly always.

Slices overlap: when the time of a slice is over, the slice returns the requests that it has not
started and waits for its calls in flight. Meanwhile the next slice uses the free slots. The two
slices share the limits, so together they never exceed the endpoint's limit of calls in flight.
"""

import asyncio
import logging
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import InterfaceError, OperationalError, close_old_connections, connections

from annotation.db import clock
from judging.evaluators.keys import read_key
from judging.evaluators.limits import CallSlot, Ledger, Limiter, Limits, get_ledger
from judging.evaluators.providers import PROVIDERS, Answer, Provider, Target, connect
from judging.evaluators.providers.errors import (
    EvaluatorError,
    Halting,
    QuotaExhausted,
    Rejected,
    Unauthorised,
)
from judging.evaluators.providers.parameters import find_refused
from judging.models import Endpoint, Run
from judging.runs import lifecycle, progress
from judging.runs.engine import lease, store
from judging.runs.engine.lease import LeasedRequest
from judging.runs.engine.store import CallResult

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)
T = TypeVar("T")

SLICE_SECONDS = 30.0
WRITE_EVERY = 0.1
# Some leased requests are in flight or wait to be written; the rest must last until the next lease.
LEASED_AHEAD = 8
# Do not lease again after every single reply: a large lease costs little more than a small lease.
MIN_LEASE_FACTOR = 2
DECIDE_EVERY = 0.5
RENEW_EVERY = 3.0
# Seconds between two looks for runs without an open request, or REST_FACTOR times as long as a look
# takes if that is more.
FINISH_EVERY, REST_FACTOR = 2.0, 20
# Seconds between two looks for calls in flight to cancel because their run was stopped.
CANCEL_EVERY = 0.5
# Seconds that calls in flight may still take when the process is asked to stop.
LAST_CALLS_SECONDS = 4.0
# Threads of `run_overlapping_slice` that have not ended.
_slices: set[threading.Thread] = set()
LOOK_EVERY = 0.2
# Seconds between tries to reach a database that is down. Replies that arrive meanwhile are kept,
# because they are paid for.
DATABASE_RETRY_WAITS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)

# Set when the process stops: slices then end within LAST_CALLS_SECONDS.
STOP = threading.Event()


@dataclass
class TimeSlice:
    """The shared state of the coroutines of one slice.

    `open` counts requests that are leased and not yet stored, and `open_bytes` the bytes of their
    bodies; `begun` maps the calls in flight to their requests. `stored` is set when results were
    stored, `all_stored` at the end. `last_calls` is called when only calls in flight are left, so
    that the next slice may begin.

    `held` maps each run that sends nothing for now to the request in which a parameter was refused,
    or to None once the refusal is stored. Then the run's state is checked, and the run may send
    again if it still runs. Otherwise a fast provider would refuse many more requests meanwhile.
    `refused` has all refusals so far, since a run is held only once for each parameter.
    """

    endpoint: Endpoint
    provider: Provider
    target: Target
    holder: str
    ends: float
    records: ThreadPoolExecutor
    background: ThreadPoolExecutor
    finishing: ThreadPoolExecutor
    last_calls: Callable[[], object]
    limiter: Limiter | None = None
    session: "aiohttp.ClientSession | None" = None
    todo: asyncio.Queue[LeasedRequest] = field(default_factory=asyncio.Queue)
    done: asyncio.Queue[CallResult] = field(default_factory=asyncio.Queue)
    ended: asyncio.Queue[Sequence[CallResult]] = field(default_factory=asyncio.Queue)
    stored: asyncio.Event = field(default_factory=asyncio.Event)
    all_stored: asyncio.Event = field(default_factory=asyncio.Event)
    begun: dict[asyncio.Task[Answer], LeasedRequest] = field(default_factory=dict)
    runs: frozenset[int] = frozenset()
    held: dict[int, int | None] = field(default_factory=dict)
    refused: set[tuple[int, str]] = field(default_factory=set)
    open: int = 0
    open_bytes: int = 0
    over: bool = False

    def closing(self) -> bool:
        """True if the slice sends no more requests. A slice continues beyond its time while the
        previous slice still waits for calls, so that an endpoint never has more than two slices."""
        if self.over or STOP.is_set():
            return True
        return time.monotonic() > self.ends and not lease.is_ending(self.endpoint.pk)

    def wants(self, leased: LeasedRequest) -> bool:
        """True if the request is still to be sent; its run may have been paused after the lease."""
        running = leased.run_id in self.runs and leased.run_id not in self.held
        return running and not self.closing()

    def hold_if_refused(self, leased: LeasedRequest, words: str) -> None:
        """Stop sending the run's requests for now if a rejection refuses one of the run's
        parameters."""
        refused = (leased.run_id, find_refused(words, leased.sent))
        if refused[1] and refused not in self.refused:
            self.refused.add(refused)
            self.held.setdefault(leased.run_id, leased.request_id)

    def note_stored(self, group: Sequence[CallResult]) -> None:
        """Mark held runs whose refused request is among these stored results, for
        `list_on_record`."""
        for one in group:
            if self.held.get(one.leased.run_id) == one.leased.request_id:
                self.held[one.leased.run_id] = None

    def list_on_record(self) -> list[int]:
        """List the held runs whose refusal is stored, so that their state can be checked."""
        return [run_id for run_id, request_id in self.held.items() if request_id is None]

    async def any_stored(self, seconds: float = LOOK_EVERY) -> None:
        """Wait until some results are stored, or until `seconds` have passed."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stored.wait(), seconds)
        self.stored.clear()

    async def in_database(self, query: Callable[[], T], thread: ThreadPoolExecutor) -> T:
        """Run a query in a thread; retry for some time if the database is down."""
        loop = asyncio.get_running_loop()
        for wait in DATABASE_RETRY_WAITS:
            try:
                return await loop.run_in_executor(thread, query)
            except DatabaseError:
                log.exception("The database could not answer a query; trying again.")
                await loop.run_in_executor(thread, connections.close_all)
            if STOP.is_set():
                break
            await asyncio.sleep(wait)
        return await loop.run_in_executor(thread, query)


@contextmanager
def database_thread(name: str) -> Iterator[ThreadPoolExecutor]:
    """Start a single thread for queries, since a connection belongs to the thread that opened it.
    The connection is closed at the end."""
    with ThreadPoolExecutor(1, thread_name_prefix=f"asking-{name}") as thread:
        try:
            yield thread
        finally:
            thread.submit(connections.close_all).result()


def run_slice(
    endpoint_id: int,
    *,
    seconds: float = SLICE_SECONDS,
    last_calls: Callable[[], object] = lambda: None,
) -> bool:
    """Call one endpoint for up to `seconds`, then wait for the calls in flight. Returns False if
    another worker is calling the endpoint and the limits are in memory, so that only one worker can
    enforce them.

    New runs of the endpoint are planned first, even while its provider asks for a pause. The slice
    ends early when no more work is due. `last_calls` is called when its time is over and the next
    slice may begin; calls in flight may last as long as the endpoint's timeout allows.
    """
    holder = secrets.token_hex(8)
    if STOP.is_set() or not lease.acquire_endpoint(endpoint_id, holder, clock.now()):
        return False
    try:
        endpoint = Endpoint.objects.get(pk=endpoint_id)
        _plan_runs(endpoint, holder, seconds)
        if not endpoint.is_paused(clock.now()):
            _run_event_loop(endpoint, holder, seconds, last_calls)
        # The slice used its own connections; this thread's connection may have been closed
        # meanwhile.
        close_old_connections()
        for run in Run.objects.running().filter(endpoint=endpoint):
            lifecycle.finish_if_done(run)
            progress.release_counts(run)
    finally:
        # Release the lease even if the connection was lost.
        close_old_connections()
        lease.release_endpoint(endpoint_id, holder, clock.now())
    return True


def run_overlapping_slice(endpoint_id: int, *, seconds: float = SLICE_SECONDS) -> None:
    """Run `run_slice` in a thread, and return when the next slice may begin. Then only calls in
    flight are left, and `wait_for_last_calls` waits for them.

    Raises errors that happen before the next slice may begin; later errors are logged.
    """
    free = threading.Event()
    problems: list[Exception] = []

    def whole() -> None:
        _slices.add(threading.current_thread())
        try:
            run_slice(endpoint_id, seconds=seconds, last_calls=free.set)
        except Exception as problem:
            if free.is_set():
                log.exception("Waiting for the last calls to endpoint %s failed.", endpoint_id)
            problems.append(problem)
        finally:
            connections.close_all()
            _slices.discard(threading.current_thread())
            free.set()

    thread = threading.Thread(target=whole, name=f"slice of endpoint {endpoint_id}")
    thread.start()
    free.wait()
    if problems:
        raise problems[0]


def wait_for_last_calls() -> None:
    """Wait until all slices in threads have ended; once STOP is set, they end soon."""
    for thread in list(_slices):
        thread.join()


def _plan_runs(endpoint: Endpoint, holder: str, seconds: float) -> None:
    """Plan the endpoint's new runs. Only one worker does this, so that no calls are planned twice.

    A run that cannot be planned does not stop the others. A lost connection is raised.
    """
    if not lease.acquire_planning(endpoint.pk, holder, clock.now()):
        return
    ends = time.monotonic() + seconds

    def keep_on() -> bool:
        in_time = time.monotonic() < ends and not STOP.is_set()
        return in_time and lease.renew_leases(endpoint.pk, holder, clock.now(), planning=True)

    try:
        for run in Run.objects.planning().filter(endpoint=endpoint):
            try:
                lifecycle.plan_calls(run, keep_on=_with_progress_counts(run, keep_on))
            except (OperationalError, InterfaceError):
                raise
            except Exception as error:
                lifecycle.explain_unplanned(run, error)
    finally:
        close_old_connections()
        lease.release_planning(endpoint.pk, holder, clock.now())


def _with_progress_counts(run: Run, keep_on: Callable[[], bool]) -> Callable[[], bool]:
    """Wrap `keep_on` so that it also updates the run's progress counts now and then, for all
    viewers."""
    due = 0.0

    def keep_on_counting() -> bool:
        nonlocal due
        if time.monotonic() >= due:
            due = progress.update_counts([run.pk], clock.now()) + time.monotonic()
        return keep_on()

    return keep_on_counting


def _run_event_loop(
    endpoint: Endpoint, holder: str, seconds: float, last_calls: Callable[[], object]
) -> None:
    try:
        target = Target(endpoint.address, read_key(endpoint.key_variable), endpoint.timeout)
    except Halting as error:
        lease.pause_endpoint_runs(endpoint, str(error))
        return
    with (
        database_thread("records") as records,
        database_thread("leases and decisions") as background,
        database_thread("finished runs") as finishing,
    ):
        work = TimeSlice(
            endpoint=endpoint,
            provider=PROVIDERS[endpoint.provider],
            target=target,
            holder=holder,
            ends=time.monotonic() + seconds,
            records=records,
            background=background,
            finishing=finishing,
            last_calls=last_calls,
        )
        asyncio.run(_run_tasks(work))


@asynccontextmanager
async def _open_ledger(endpoint: Endpoint) -> AsyncIterator[Ledger]:
    """Open the ledger that all callers of the endpoint share, in Redis if configured, otherwise in
    this process."""
    limits = Limits(endpoint.in_flight, endpoint.per_minute, endpoint.tokens_per_minute)
    if not settings.REDIS_URL or PROVIDERS[endpoint.provider].offline:
        yield get_ledger(endpoint.name, limits)
        return
    # The client of Redis takes a tenth of the start of a command.
    from judging.evaluators import shared_limits

    async with shared_limits.connect(settings.REDIS_URL) as client:
        key = shared_limits.build_key(settings.REDIS_PREFIX, endpoint.name)
        ledger = shared_limits.RedisLedger(client, key, limits)
        try:
            yield ledger
        finally:
            await ledger.settle()


async def _run_tasks(work: TimeSlice) -> None:
    async with (
        _open_ledger(work.endpoint) as ledger,
        connect(settings.EVALUATOR_HOSTS) as session,
        asyncio.TaskGroup() as group,
    ):
        work.limiter, work.session = Limiter(ledger), session
        attendants = [
            group.create_task(attend(work))
            for attend in (
                _write_results,
                _decide_outcomes,
                _renew_leases,
                _keep_slots,
                _count_progress,
                _finish_runs,
                _cancel_unwanted_calls,
            )
        ]
        callers = [group.create_task(_ask_requests(work)) for _ in range(work.endpoint.in_flight)]
        await _keep_leased(work)
        work.over = True
        await _finish_calls(work, callers)
        work.all_stored.set()
        await work.ended.join()
        for attendant in attendants:
            attendant.cancel()


async def _keep_leased(work: TimeSlice) -> None:
    """Keep LEASED_AHEAD times as many requests leased as may be in flight, until the time is over
    or no work is left."""
    in_flight, looked = work.endpoint.in_flight, 0.0
    while not work.closing():
        room = LEASED_AHEAD * in_flight - work.open
        fits = work.open_bytes < lease.MAX_LEASED_BYTES
        count = room if room >= MIN_LEASE_FACTOR * in_flight and fits and not work.held else 0
        on_record = work.list_on_record()
        # Check the runs even if the queue is full: a run may have been paused.
        if count or on_record or time.monotonic() - looked >= LOOK_EVERY:
            batch = await work.in_database(partial(_lease_batch, work, count), work.background)
            looked, work.runs = time.monotonic(), batch.runs
            for run_id in on_record:
                del work.held[run_id]
            work.open += len(batch.leased)
            work.open_bytes += lease.measure_bodies(batch.leased)
            for leased in batch.leased:
                work.todo.put_nowait(leased)
            if count and not work.open:
                return
        await work.any_stored()


def _lease_batch(work: TimeSlice, count: int) -> lease.LeasedBatch:
    room = lease.MAX_LEASED_BYTES - work.open_bytes
    return lease.lease_requests(work.endpoint, work.holder, count, clock.now(), room=room)


async def _ask_requests(work: TimeSlice) -> None:
    """Send one request after another; each leased request gets exactly one result."""
    while True:
        leased = await work.todo.get()
        result, failed = None, None
        try:
            if work.wants(leased) and work.limiter:
                async with work.limiter.slot(leased.tokens) as place:
                    result = await _ask_request(work, leased, place)
                    # Do not wait for the ledger, since settling may take long.
                    work.done.put_nowait(result)
        except asyncio.CancelledError:
            # A cancelled call ends only that call; this caller continues unless it is cancelled
            # itself.
            caller = asyncio.current_task()
            if caller is None or caller.cancelling():
                raise
        except EvaluatorError as error:
            work.over = work.over or isinstance(error, Halting)
            # Its frames hold the whole reply, and in a cycle with this one they would stay long.
            failed = error.with_traceback(None)
            failed.__context__ = None
        except Exception as error:
            # A bug in one call must not cause the loss of replies to other calls.
            log.exception("Request %s could not be sent.", leased.request_id)
            failed = EvaluatorError(f"{type(error).__name__} in Blindspot itself")
        finally:
            if result is None:
                work.done.put_nowait(CallResult(leased, error=failed))


async def _ask_request(work: TimeSlice, leased: LeasedRequest, place: CallSlot) -> CallResult:
    """Send a request that has got a slot, and return its result. The request is not sent if no run
    wants it any more."""
    if not work.wants(leased):
        place.used = 0
        return CallResult(leased)
    target = work.target
    if leased.timeout is not None:
        target = replace(target, timeout=leased.timeout)
    call = asyncio.create_task(work.provider.ask(work.session, target, leased.body))
    work.begun[call] = leased
    try:
        answer = await call
    except Rejected as error:
        work.hold_if_refused(leased, str(error))
        raise
    finally:
        del work.begun[call]
    if answer.tokens_in is not None and answer.tokens_out is not None:
        place.used = answer.tokens_in + answer.tokens_out
    return CallResult(leased, answer)


async def _write_results(work: TimeSlice) -> None:
    """Commit results in groups; a failure that a person must fix pauses the endpoint's runs."""
    while True:
        group = [await work.done.get()]
        await asyncio.sleep(WRITE_EVERY * 0.7)
        group += _drain(work.done)
        await work.in_database(partial(_store_group, work, group), work.records)
        work.open -= len(group)
        work.open_bytes -= lease.measure_bodies(one.leased for one in group)
        work.note_stored(group)
        work.stored.set()
        work.ended.put_nowait(group)


def _store_group(work: TimeSlice, group: Sequence[CallResult]) -> None:
    store.store_results(work.endpoint, work.holder, group)
    halting = next((one.error for one in group if isinstance(one.error, Halting)), None)
    if halting:
        remedy = _remedy(work.endpoint, halting)
        reason = f"{str(halting).rstrip('.')}.{remedy}" if remedy else str(halting)
        lease.pause_endpoint_runs(work.endpoint, reason)


def _remedy(endpoint: Endpoint, problem: Halting) -> str:
    """Return what a person must do, unless the message says it."""
    if isinstance(problem, QuotaExhausted):
        return (
            " Add credit or raise the limit at the provider, then resume: no request is lost. Or "
            "clone this run with another endpoint."
        )
    if not isinstance(problem, Unauthorised):
        return ""
    if not endpoint.key_variable:
        return (
            " No key was sent. Enter the key's environment variable at the endpoint, then resume."
        )
    return (
        f" In the environment of the server and the workers, set {endpoint.key_variable} to a key "
        f"that may use {endpoint.model}. Restart them, then resume."
    )


async def _decide_outcomes(work: TimeSlice) -> None:
    """Decide outcomes from stored results, many at once because that costs less. No caller waits
    for this.

    Works in small batches, so that a lease waits for one batch only.
    """
    while True:
        first = await work.ended.get()
        with suppress(TimeoutError):
            await asyncio.wait_for(work.all_stored.wait(), DECIDE_EVERY)
        groups = [first, *_drain(work.ended)]
        ended = [one for group in groups for one in group]
        for at in range(0, len(ended), store.DECIDE_BATCH):
            part = ended[at : at + store.DECIDE_BATCH]
            await work.in_database(partial(store.decide_outcomes, part), work.background)
        for _ in groups:
            work.ended.task_done()


def _drain(queue: asyncio.Queue[T]) -> list[T]:
    return [queue.get_nowait() for _ in range(queue.qsize())]


async def _renew_leases(work: TimeSlice) -> None:
    """Renew the leases. If another worker has taken them over, stop calling."""
    while True:
        await asyncio.sleep(RENEW_EVERY)
        renewed = partial(_renew_once, work)
        if not await work.in_database(renewed, work.background):
            log.warning("Another worker took over endpoint %s.", work.endpoint.name)
            work.over = True
            return


def _renew_once(work: TimeSlice) -> bool:
    return lease.renew_leases(work.endpoint.pk, work.holder, clock.now())


async def _keep_slots(work: TimeSlice) -> None:
    """Renew the slots of calls in flight. This is separate from the leases, which must not be lost
    if the ledger hangs."""
    while True:
        await asyncio.sleep(RENEW_EVERY)
        if work.limiter:
            await work.limiter.ledger.keep()


async def _cancel_unwanted_calls(work: TimeSlice) -> None:
    """Cancel calls that no run waits for any more, so that a self-hosted server stops working on
    them. The requests are waiting again, as if they had not been tried."""
    while True:
        await asyncio.sleep(CANCEL_EVERY)
        if asked := [leased.request_id for leased in work.begun.values()]:
            find = partial(lease.find_unwanted, asked)
            unwanted = await work.in_database(find, work.background)
            for call, leased in work.begun.items():
                if leased.request_id in unwanted:
                    call.cancel()


async def _count_progress(work: TimeSlice) -> None:
    """Update the progress counts of the runs, for all viewers."""
    rest = progress.COUNT_EVERY
    while True:
        await asyncio.sleep(rest)
        if work.runs:
            rest = await work.in_database(partial(_count_once, work), work.background)


def _count_once(work: TimeSlice) -> float:
    return progress.update_counts(work.runs, clock.now())


async def _finish_runs(work: TimeSlice) -> None:
    """Finish runs whose last outcome is decided. At the end of the slice they would wait for other
    runs' calls in flight, which may take as long as the endpoint's timeout.

    This has a thread of its own, since runs that were derived from a large run take long to update,
    and the leases must not wait for that. It is idle nearly always.
    """
    rest = FINISH_EVERY
    while True:
        await asyncio.sleep(rest)
        begun = time.monotonic()
        await work.in_database(partial(_finish_done, work.endpoint), work.finishing)
        rest = max(FINISH_EVERY, REST_FACTOR * (time.monotonic() - begun))


def _finish_done(endpoint: Endpoint) -> None:
    for run in Run.objects.running().filter(endpoint=endpoint):
        # Outcomes that are still to be decided are left to the decider.
        if not run.outcomes.pending().exists() and lifecycle.finish_if_done(run):
            progress.release_counts(run)


async def _finish_calls(work: TimeSlice, callers: Sequence[asyncio.Task[None]]) -> None:
    """Return the requests that were not started, wait for calls in flight, and store all results.
    Once everything but the calls in flight is stored, only these calls take slots, and the next
    slice may begin."""
    for leased in _drain(work.todo):
        work.done.put_nowait(CallResult(leased))
    first_in_line = work.limiter.dismiss() if work.limiter else 0
    last: float | None = None
    while work.begun and (last is None or time.monotonic() < last):
        if STOP.is_set() and last is None:
            last = time.monotonic() + LAST_CALLS_SECONDS
        elif work.open <= len(work.begun) + first_in_line:
            lease.hand_over_endpoint(work.endpoint.pk, work.holder)
            work.last_calls()
        await work.any_stored()
    # Cancel a second time the calls that wait for a ledger that does not respond.
    for patience in (LAST_CALLS_SECONDS, None):
        for caller in callers:
            caller.cancel()
        await asyncio.wait(callers, timeout=patience)
    while work.open:
        await work.any_stored()
