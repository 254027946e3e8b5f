"""Rate limits for the calls to one endpoint.

There are two parts. The *ledger* is the state that all callers of an endpoint share: calls in
flight, the rates of calls and tokens, the pause that the provider asked for, and an adaptive
ceiling. It only answers "enter" or "wait for this long". The ledger in this module is in memory;
the one in Redis (`shared_limits`) behaves the same. The *limiter* is the queue of one event loop:
callers wait there in order, and the first one asks the ledger for all of them.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

from judging.evaluators.providers.errors import RateLimited, Transient

# How many seconds of its rate an endpoint may catch up: enough for late wake-ups.
CATCH_UP_SECONDS = 0.05
# Seconds until the next check for slots that another loop or process may have freed.
RETRY_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum number of calls in flight, and of started calls and tokens per minute (None: no
    limit)."""

    in_flight: int = 16
    per_minute: int | None = None
    tokens_per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """The ledger's answer: enter (`wait` is 0), or try again in `wait` seconds.

    `era` counts the cuts of the ceiling so far; a call returns its era when it leaves. `tokens` is
    the estimate for the call; `name` identifies the call if the ledger needs that.
    """

    wait: float
    era: int
    tokens: int = 0
    name: str = ""


@dataclass(slots=True)
class CallSlot:
    """The slot of a call in flight; `used` is the number of tokens it actually used."""

    used: int | None = None


class Ledger(Protocol):
    """The limits that all callers of one endpoint share, wherever they are stored."""

    async def enter(self, tokens: Sequence[int]) -> list[Turn]:
        """Turns for calls with these estimated tokens, in order, up to the first call that must
        wait."""

    def leave(self, turn: Turn, error: BaseException | None, used: int | None = None) -> None:
        """End the call of a turn that entered; `error` is None for success, `used` None if
        unknown."""

    async def keep(self) -> None:
        """Renew the slots in flight, so that no other worker takes them over."""

    async def settle(self) -> None:
        """Send the changes that are still pending."""


class _RateMeter:
    """An even rate per minute: the next call may begin only when the amount of the last one is paid
    off.

    A call that is larger than what is left may still begin, and then the next one waits longer. So
    over time the rate is kept exactly.
    """

    def __init__(self) -> None:
        self._free_at = 0.0

    def wait(self, now: float) -> float:
        return self._free_at - now

    def count(self, amount: int, per_minute: int | None, now: float) -> None:
        if per_minute:
            self._free_at = max(self._free_at, now - CATCH_UP_SECONDS) + amount * 60.0 / per_minute

    def correct(self, amount: int, per_minute: int | None) -> None:
        """Correct the counted amount by the difference to the actual one."""
        if per_minute:
            self._free_at += amount * 60.0 / per_minute


class MemoryLedger:
    """A ledger for one process; its threads and event loops may share it.

    The ceiling starts at `limits.in_flight`, halves on a RateLimited error (once for all calls that
    were in flight together), and rises by one when as many calls as it allows have succeeded in a
    row. A `retry_after` of any Transient error pauses all callers.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.ceiling = max(1, limits.in_flight)
        self.in_flight = 0
        self.paused_until = 0.0
        self._clock = clock
        self._calls, self._tokens = _RateMeter(), _RateMeter()
        self._era = 0
        self._succeeded = 0
        self._lock = threading.Lock()

    def adopt(self, limits: Limits) -> None:
        """Use these limits; the ceiling is reset only if they changed."""
        with self._lock:
            if limits != self.limits:
                self.limits = limits
                self.ceiling = max(1, limits.in_flight)

    async def enter(self, tokens: Sequence[int]) -> list[Turn]:
        """Turns for calls with these estimated tokens, in order, up to the first call that must
        wait. A turn that may enter must be returned with `leave`."""
        turns: list[Turn] = []
        with self._lock:
            now = self._clock()
            for amount in tokens:
                turns.append(Turn(self._wait(now), self._era, amount))
                if turns[-1].wait:
                    break
                self.in_flight += 1
                self._calls.count(1, self.limits.per_minute, now)
                self._tokens.count(amount, self.limits.tokens_per_minute, now)
        return turns

    def leave(self, turn: Turn, error: BaseException | None, used: int | None = None) -> None:
        """End the call of `turn`, with `error` or None for success; it used `used` tokens, None if
        unknown."""
        with self._lock:
            self.in_flight -= 1
            if used is not None:
                self._tokens.correct(used - turn.tokens, self.limits.tokens_per_minute)
            if error is None:
                self._climb()
            elif isinstance(error, RateLimited) and turn.era == self._era:
                self._cut()
            if isinstance(error, Transient) and error.retry_after:
                self.paused_until = max(self.paused_until, self._clock() + error.retry_after)

    async def keep(self) -> None:
        """Renew the slots in flight: nothing to do here, since they live as long as the process."""

    async def settle(self) -> None:
        """Send pending changes: nothing to do here, since they are immediate."""

    def _wait(self, now: float) -> float:
        pauses = (self.paused_until - now, self._calls.wait(now), self._tokens.wait(now))
        wait = max(*pauses, 0.0)
        return max(wait, RETRY_SECONDS) if self.in_flight >= self.ceiling else wait

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


def get_ledger(endpoint: str, limits: Limits) -> MemoryLedger:
    """This process's ledger of an endpoint, shared by all event loops of the process."""
    with _ledgers_lock:
        ledger = _ledgers.setdefault(endpoint, MemoryLedger(limits))
    ledger.adopt(limits)
    return ledger


@dataclass(slots=True)
class _Caller:
    """A waiting caller. The result of `word` is its turn, or None if it is now the first in the
    queue and must ask the ledger for all callers."""

    tokens: int
    word: asyncio.Future[Turn | None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Limiter:
    """The queue of one event loop's callers for one endpoint: first come, first served."""

    def __init__(
        self, ledger: Ledger, sleep: Callable[[float], Awaitable[object]] | None = None
    ) -> None:
        self.ledger = ledger
        self._sleep = self._until_someone_left if sleep is None else sleep
        self._line: deque[_Caller] = deque()
        self._left = asyncio.Event()

    @asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncIterator[CallSlot]:
        """Wait for a turn and hold its slot during the block. The block's error, and the tokens
        that it sets on the slot, are reported to the ledger."""
        turn = await self._turn(tokens)
        error: BaseException | None = None
        place = CallSlot()
        try:
            yield place
        except BaseException as raised:
            error = raised
            raise
        finally:
            self.ledger.leave(turn, error, place.used)
            self._left.set()

    async def _turn(self, tokens: int) -> Turn:
        caller = _Caller(tokens)
        self._line.append(caller)
        self._call_first()
        try:
            return await caller.word or await self._ask(caller)
        except BaseException:
            self._forget(caller)
            raise

    def dismiss(self) -> int:
        """Cancel all waiting callers, since their requests are not sent now. Only the first in the
        queue continues: it is asking the ledger for all callers, and returns the turns that it
        gets. Returns how many callers are left, 0 or 1."""
        for caller in list(self._line):
            if not caller.word.done():
                caller.word.cancel()
        return min(1, len(self._line))

    def _call_first(self) -> None:
        if self._line and not self._line[0].word.done():
            self._line[0].word.set_result(None)

    async def _ask(self, first: _Caller) -> Turn:
        """Ask for all callers in the queue until `first` may enter; other callers that may enter
        are woken."""
        while True:
            self._left.clear()
            asking = list(self._line)
            turns = await self.ledger.enter([caller.tokens for caller in asking])
            own = self._let_in(first, zip(asking, turns, strict=False))
            if own:
                self._call_first()
                return own
            await self._sleep(turns[-1].wait)

    def _let_in(self, first: _Caller, turns: Iterable[tuple[_Caller, Turn]]) -> Turn | None:
        """The turn of `first`, or None if it must wait."""
        own = None
        for caller, turn in turns:
            if turn.wait > 0.0:
                break
            if caller is first:
                own = turn
                self._line.popleft()
            elif caller.word.done():  # it stopped waiting meanwhile
                self.ledger.leave(turn, None, 0)
            else:
                self._line.remove(caller)
                caller.word.set_result(turn)
        return own

    def _forget(self, caller: _Caller) -> None:
        """Remove a caller that stops waiting. The next in the queue asks the ledger, and a turn
        that the removed caller just got is returned."""
        with suppress(ValueError):
            self._line.remove(caller)
        self._call_first()
        if caller.word.done() and not caller.word.cancelled() and (turn := caller.word.result()):
            self.ledger.leave(turn, None, 0)

    async def _until_someone_left(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._left.wait(), seconds)
