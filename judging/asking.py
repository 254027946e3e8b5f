"""Asking one endpoint for a slice of time: one event loop, one database thread.

A leaser keeps the callers' queue filled ahead, as many callers as calls may be in flight ask, and
a writer commits what they bring WRITE_EVERY later at the latest, so that a worker that is killed
loses only what was answered in that time. Waiting for a lease or a write inside the callers
would leave the evaluator idle.
"""

import asyncio
import logging
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import aiohttp
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connections
from django.utils import timezone

from judging import leasing, runs
from judging.leasing import Leased, Result
from judging.models import Endpoint, Run
from judging.providers import PROVIDERS, Provider, Target, connect
from judging.providers.errors import EvaluatorError, Halting
from judging.providers.keys import key_from
from judging.providers.limits import Limiter, Limits, ledger_for

log = logging.getLogger(__name__)
T = TypeVar("T")

SLICE = 30.0
WRITE_EVERY = 0.1
RENEW_EVERY = 3.0
LOOK_EVERY = 0.2
# How long calls in flight may still take when the process is asked to stop.
LAST_CALLS = 4.0
# Waits between tries to reach a database that is away, in seconds.
DATABASE_WAITS = (0.1, 0.5, 1.0, 2.0, 4.0, 0.0)

# Set when the process stops: slices then end within LAST_CALLS.
STOP = threading.Event()


@dataclass
class Slice:
    """What the coroutines of one slice share. `open` counts what is leased and not yet stored."""

    endpoint: Endpoint
    provider: Provider
    target: Target
    holder: str
    ends: float
    database: ThreadPoolExecutor
    limiter: Limiter
    session: aiohttp.ClientSession | None = None
    todo: asyncio.Queue[Leased] = field(default_factory=asyncio.Queue)
    done: asyncio.Queue[Result] = field(default_factory=asyncio.Queue)
    stored: asyncio.Event = field(default_factory=asyncio.Event)
    runs: frozenset[int] = frozenset()
    open: int = 0
    over: bool = False

    def closing(self) -> bool:
        return self.over or STOP.is_set() or time.monotonic() > self.ends

    async def in_database(self, query: Callable[[], T]) -> T:
        """Run a query in the slice's thread; try again for some seconds if the database is away."""
        loop = asyncio.get_running_loop()
        for wait in DATABASE_WAITS:
            try:
                return await loop.run_in_executor(self.database, query)
            except DatabaseError:
                log.exception("The database did not take a query; trying again.")
                await loop.run_in_executor(self.database, connections.close_all)
                if not wait:
                    raise
                await asyncio.sleep(wait)
        raise AssertionError("the last wait raises")


def work(endpoint_id: int, *, seconds: float = SLICE) -> bool:
    """Ask one endpoint for up to `seconds`; False if another worker is at it already.

    New runs of the endpoint are planned first. Ends early when nothing is due any more.
    """
    holder = secrets.token_hex(8)
    if STOP.is_set() or not leasing.take_dispatcher(endpoint_id, holder, timezone.now()):
        return False
    try:
        endpoint = Endpoint.objects.get(pk=endpoint_id)
        for run in Run.objects.planning().filter(endpoint=endpoint):
            runs.plan(run, keep_on=lambda: leasing.renew(endpoint_id, holder, timezone.now()))
        _ask(endpoint, holder, seconds)
        for run in Run.objects.running().filter(endpoint=endpoint):
            runs.finish_if_done(run)
    finally:
        leasing.leave_dispatcher(endpoint_id, holder, timezone.now())
    return True


def work_on_due(*, seconds: float = SLICE) -> int:
    """Work on every endpoint that is due and that nobody else works on; how many there were."""
    return sum(work(pk, seconds=seconds) for pk in leasing.due_endpoints(timezone.now()))


def _ask(endpoint: Endpoint, holder: str, seconds: float) -> None:
    try:
        target = Target(endpoint.address, key_from(endpoint.key_variable), endpoint.timeout)
    except Halting as error:
        leasing.halt(endpoint, str(error))
        return
    limits = Limits(endpoint.in_flight, endpoint.per_minute)
    # One thread for all queries: a connection belongs to the thread that opened it.
    with ThreadPoolExecutor(1, thread_name_prefix="asking-database") as database:
        work = Slice(
            endpoint=endpoint,
            provider=PROVIDERS[endpoint.provider],
            target=target,
            holder=holder,
            ends=time.monotonic() + seconds,
            database=database,
            limiter=Limiter(ledger_for(endpoint.name, limits)),
        )
        try:
            asyncio.run(_slice(work))
        finally:
            database.submit(connections.close_all).result()


async def _slice(work: Slice) -> None:
    async with connect(settings.EVALUATOR_HOSTS) as session, asyncio.TaskGroup() as group:
        work.session = session
        writer = group.create_task(_write(work))
        renewer = group.create_task(_renew(work))
        callers = [group.create_task(_call(work)) for _ in range(work.endpoint.in_flight)]
        await _lease(work)
        await _end_calls(work, callers)
        renewer.cancel()
        writer.cancel()


async def _lease(work: Slice) -> None:
    """Keep twice as many requests leased as may be in flight, until time or work is over."""
    ahead = 2 * work.endpoint.in_flight
    while not work.closing():
        work.stored.clear()
        room = ahead - work.open
        batch = await work.in_database(
            lambda room=room: leasing.lease(work.endpoint, work.holder, room, timezone.now())
        )
        work.runs = batch.runs
        work.open += len(batch.leased)
        for leased in batch.leased:
            work.todo.put_nowait(leased)
        if not work.open:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(work.stored.wait(), LOOK_EVERY)


async def _call(work: Slice) -> None:
    """Ask one request after the other; every leased one ends in exactly one result."""
    while True:
        leased = await work.todo.get()
        result = Result(leased)
        try:
            if leased.run_id in work.runs and not work.closing():
                async with work.limiter.slot():
                    answer = await work.provider.ask(work.session, work.target, leased.body)
                result = Result(leased, answer=answer)
        except EvaluatorError as error:
            result = Result(leased, error=error)
        finally:
            work.done.put_nowait(result)


async def _write(work: Slice) -> None:
    """Commit results in groups; a failure that needs a person ends the slice."""
    while True:
        group = [await work.done.get()]
        await asyncio.sleep(WRITE_EVERY / 2)
        while not work.done.empty():
            group.append(work.done.get_nowait())
        await work.in_database(lambda group=group: leasing.store(work.endpoint, group))
        for result in group:
            if isinstance(result.error, Halting) and not work.over:
                work.over = True
                reason = str(result.error)
                await work.in_database(lambda reason=reason: leasing.halt(work.endpoint, reason))
        work.open -= len(group)
        work.stored.set()


async def _renew(work: Slice) -> None:
    """Keep the leases; a worker that was taken for dead stops asking."""
    while not work.over:
        await asyncio.sleep(RENEW_EVERY)
        if not await work.in_database(
            lambda: leasing.renew(work.endpoint.pk, work.holder, timezone.now())
        ):
            log.warning("Another worker took over endpoint %s.", work.endpoint.name)
            work.over = True


async def _end_calls(work: Slice, callers: list[asyncio.Task[None]]) -> None:
    """Let calls in flight end, and see that everything leased is stored or given back."""
    stop_at: float | None = None
    while work.open:
        if STOP.is_set() and stop_at is None:
            stop_at = time.monotonic() + LAST_CALLS
        if stop_at and time.monotonic() > stop_at:
            break
        with suppress(TimeoutError):
            await asyncio.wait_for(work.stored.wait(), LOOK_EVERY)
        work.stored.clear()
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    while work.open:
        work.stored.clear()
        await work.stored.wait()
