"""The shared state of one slice: its queues, its clock, and its database access."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

import aiohttp
from django.db import Error as DatabaseError
from django.db import connections

from judging.evaluators.limits import Limiter
from judging.evaluators.providers import Answer, Provider, Target
from judging.evaluators.providers.parameters import find_refused
from judging.models import Endpoint
from judging.runs.engine import lease
from judging.runs.engine.lease import LeasedRequest
from judging.runs.engine.store import CallResult

log = logging.getLogger(__name__)
T = TypeVar("T")

LOOK_EVERY = 0.2
# Seconds between tries to reach a database that is down. Replies that arrived meanwhile are paid
# for, so they wait with it.
DATABASE_RETRY_WAITS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)

# Set when the process stops: slices then end within LAST_CALLS_SECONDS.
STOP = threading.Event()


@dataclass
class TimeSlice:
    """The shared state of the coroutines of one slice.

    `open` counts requests that are leased and not yet stored; `begun` maps the calls in flight to
    their requests. `stored` is set when something was stored, `all_stored` at the end. `last_calls`
    is called once only calls in flight are left: the next slice may begin beside them.

    `held` are runs that send nothing for now, each with the request whose reply refused one of
    their parameters. Once that reply is stored (then None) and the run's state was checked, the run
    is released. Without this, a fast provider would refuse many more requests meanwhile. `refused`
    has all refusals so far, since a run is held once for each parameter.
    """

    endpoint: Endpoint
    provider: Provider
    target: Target
    holder: str
    ends: float
    records: ThreadPoolExecutor
    background: ThreadPoolExecutor
    last_calls: Callable[[], object]
    limiter: Limiter | None = None
    session: aiohttp.ClientSession | None = None
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
    over: bool = False

    def closing(self) -> bool:
        """Whether the slice sends nothing more. It continues beyond its time while the slice before
        it still waits for calls, so that an endpoint never has more than two slices."""
        if self.over or STOP.is_set():
            return True
        return time.monotonic() > self.ends and not lease.is_ending(self.endpoint.pk)

    def wants(self, leased: LeasedRequest) -> bool:
        """Whether to send it now: its run may have been paused since it was leased."""
        running = leased.run_id in self.runs and leased.run_id not in self.held
        return running and not self.closing()

    def hold_if_refused(self, leased: LeasedRequest, words: str) -> None:
        """Send nothing more of the run for now if a rejection refuses one of its parameters."""
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
        """The held runs whose refusal is stored: a check now shows whether they are still
        running."""
        return [run_id for run_id, request_id in self.held.items() if request_id is None]

    async def any_stored(self, seconds: float = LOOK_EVERY) -> None:
        """Wait until something is stored or time runs out."""
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
                log.exception("The database did not take a query; trying again.")
                await loop.run_in_executor(thread, connections.close_all)
            if STOP.is_set():
                break
            await asyncio.sleep(wait)
        return await loop.run_in_executor(thread, query)


@contextmanager
def database_thread(name: str) -> Iterator[ThreadPoolExecutor]:
    """A single thread for queries, since a connection belongs to the thread that opened it. The
    connection is closed at the end."""
    with ThreadPoolExecutor(1, thread_name_prefix=f"asking-{name}") as thread:
        try:
            yield thread
        finally:
            thread.submit(connections.close_all).result()
