"""How fast one endpoint may be called.

Two parts. The *ledger* is what everybody who calls an endpoint shares: calls in flight, the pace
per minute, the pause that the provider asked for, and a ceiling that adapts. It only answers
"in" or "wait so long"; this one is in memory, one in Redis can answer the same. The *limiter* is
the door of one event loop: callers wait there in order, only the first of them asks the ledger.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from judging.providers.errors import RateLimited, Transient

# How far behind its pace an endpoint may catch up, in seconds: enough for late wake-ups.
CATCH_UP = 0.05
# How soon to look again for room that another loop or process may have made, in seconds.
LOOK_AGAIN = 0.05


@dataclass(frozen=True, slots=True)
class Limits:
    """Highest number of calls in flight, and of calls begun per minute (None: no such limit)."""

    in_flight: int = 16
    per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """The ledger's answer: in (`wait` is 0), or come back in `wait` seconds.

    `era` counts the cuts of the ceiling so far; a call tells its era when it leaves.
    """

    wait: float
    era: int


class Ledger(Protocol):
    """What callers of one endpoint share, wherever it is kept."""

    async def enter(self) -> Turn: ...

    async def leave(self, turn: Turn, error: BaseException | None) -> None: ...


class MemoryLedger:
    """A ledger for one process; its threads and event loops may share it.

    The ceiling starts at `limits.in_flight`, halves on a RateLimited (once for all calls that
    were in flight together), and climbs by one whenever as many calls as it allows have
    succeeded in a row. A `retry_after` of any Transient pauses everybody.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.ceiling = max(1, limits.in_flight)
        self.in_flight = 0
        self.paused_until = 0.0
        self._clock = clock
        self._next_at = 0.0
        self._era = 0
        self._succeeded = 0
        self._lock = threading.Lock()

    def adopt(self, limits: Limits) -> None:
        """Take over limits that were changed; the ceiling starts anew only then."""
        with self._lock:
            if limits != self.limits:
                self.limits = limits
                self.ceiling = max(1, limits.in_flight)

    async def enter(self) -> Turn:
        """A turn; one that is in must be given back with `leave`."""
        with self._lock:
            wait = self._wait()
            if wait == 0.0:
                self.in_flight += 1
                self._count_towards_pace()
            return Turn(wait, self._era)

    async def leave(self, turn: Turn, error: BaseException | None) -> None:
        """The call of `turn` has ended, with `error` or well."""
        with self._lock:
            self.in_flight -= 1
            if error is None:
                self._climb()
            elif isinstance(error, RateLimited) and turn.era == self._era:
                self._cut()
            if isinstance(error, Transient) and error.retry_after:
                self.paused_until = max(self.paused_until, self._clock() + error.retry_after)

    def _wait(self) -> float:
        now = self._clock()
        wait = max(self.paused_until - now, self._next_at - now, 0.0)
        return max(wait, LOOK_AGAIN) if self.in_flight >= self.ceiling else wait

    def _count_towards_pace(self) -> None:
        if self.limits.per_minute:
            begun = max(self._next_at, self._clock() - CATCH_UP)
            self._next_at = begun + 60.0 / self.limits.per_minute

    def _cut(self) -> None:
        self.ceiling = max(1, self.ceiling // 2)
        self._era += 1
        self._succeeded = 0

    def _climb(self) -> None:
        self._succeeded += 1
        if self._succeeded >= self.ceiling:
            self.ceiling = min(max(1, self.limits.in_flight), self.ceiling + 1)
            self._succeeded = 0


_ledgers: dict[str, MemoryLedger] = {}
_ledgers_lock = threading.Lock()


def ledger_for(endpoint: str, limits: Limits) -> MemoryLedger:
    """This process's ledger of an endpoint, kept from one event loop to the next."""
    with _ledgers_lock:
        ledger = _ledgers.setdefault(endpoint, MemoryLedger(limits))
    ledger.adopt(limits)
    return ledger


class Limiter:
    """The door to one endpoint for the callers of one event loop, first come first served."""

    def __init__(
        self, ledger: Ledger, sleep: Callable[[float], Awaitable[object]] | None = None
    ) -> None:
        self._ledger = ledger
        self._sleep = self._until_someone_left if sleep is None else sleep
        self._door = asyncio.Lock()
        self._left = asyncio.Event()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Waits for its turn, holds it for the length of the block, learns from its error."""
        turn = await self._turn()
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            await self._ledger.leave(turn, error)
            self._left.set()

    async def _turn(self) -> Turn:
        async with self._door:
            while True:
                self._left.clear()
                turn = await self._ledger.enter()
                if turn.wait <= 0.0:
                    return turn
                await self._sleep(turn.wait)

    async def _until_someone_left(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._left.wait(), seconds)
