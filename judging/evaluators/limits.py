"""Rate limits for the calls to one endpoint.

There are two parts. The *ledger* is the state that all callers of an endpoint share: calls in
flight, the rates of calls and tokens, the pause that the provider asked for, and an adaptive
ceiling. Its only answers are "enter" and "wait for this many seconds". The ledger in this module is
in memory; the one in Redis (`shared_limits`) behaves the same. The *limiter* is the queue of one
event loop: callers wait there in order, and the first caller asks the ledger on behalf of all of
them.
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

# How many seconds of missed calls an endpoint may catch up on: enough if callers wake up late.
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

    `era` is how often the ceiling has been lowered so far; a call reports its era when it leaves.
    `tokens` is the estimate for the call; `name` identifies the call if the ledger needs a name.
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
    """The limits that all callers of one endpoint share, in memory or in another store."""

    async def enter(self, tokens: Sequence[int]) -> list[Turn]:
        """Turns for calls with these estimated tokens, in order, up to the first call that must
        wait."""

    def leave(self, turn: Turn, error: BaseException | None, used: int | None = None) -> None:
        """End the call of a turn that entered. `error` is None if the call succeeded; `used` is
        None if the number of tokens is unknown.
        """

    async def keep(self) -> None:
        """Renew the slots of the calls in flight, so that no other worker takes them."""

    async def settle(self) -> None:
        """Send the changes that are still pending."""


class _RateMeter:
    """An even rate per minute: a call may begin only after a wait in proportion to the size of the
    call before.

    A call that is larger than the rest of the allowance may still begin, but then the next call
    waits longer. So over time the rate is kept exactly.
    """

    def __init__(self) -> None:
        self._free_at = 0.0

    def wait(self, now: float) -> float:
        return self._free_at - now

    def count(self, amount: int, per_minute: int | None, now: float) -> None:
        if per_minute:
            self._free_at = max(self._free_at, now - CATCH_UP_SECONDS) + amount * 60.0 / per_minute

    def correct(self, amount: int, per_minute: int | None) -> None:
        """Replace the amount that was counted by the actual amount."""
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
        """Apply these limits; the ceiling is reset only if the limits changed."""
        with self._lock:
            if limits != self.limits:
                self.limits = limits
                self.ceiling = max(1, limits.in_flight)

    async def enter(self, tokens: Sequence[int]) -> list[Turn]:
        """Turns for calls with these estimated tokens, in order, up to the first call that must
        wait. Every turn that may enter must later be given back with `leave`.
        """
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
        """End the call of `turn`. `error` is None if the call succeeded; `used` is the number of
        tokens that it used, None if unknown.
        """
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

    def end_pause(self) -> None:
        """Let callers enter although a provider asked for a pause."""
        with self._lock:
            self.paused_until = 0.0

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
    """Return this process's ledger of an endpoint, which all event loops of the process share."""
    with _ledgers_lock:
        ledger = _ledgers.setdefault(endpoint, MemoryLedger(limits))
    ledger.adopt(limits)
    return ledger


def end_pause(endpoint: str) -> None:
    """End the pause in this process's ledger of an endpoint, if it has one."""
    with _ledgers_lock:
        ledger = _ledgers.get(endpoint)
    if ledger:
        ledger.end_pause()


@dataclass(slots=True)
class _Caller:
    """A waiting caller. The result of `word` is the caller's turn, or None if the caller is now
    first in the queue and must ask the ledger on behalf of all callers.
    """

    tokens: int
    word: asyncio.Future[Turn | None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Limiter:
    """The queue in which the callers of one event loop wait for an endpoint: first come, first
    served.
    """

    def __init__(
        self, ledger: Ledger, sleep: Callable[[float], Awaitable[object]] | None = None
    ) -> None:
        self.ledger = ledger
        self._sleep = self._until_someone_left if sleep is None else sleep
        self._line: deque[_Caller] = deque()
        self._left = asyncio.Event()

    @asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncIterator[CallSlot]:
        """Wait for a turn and hold its slot during the block. An error raised in the block, and the
        number of tokens that the block sets on the slot, are reported to the ledger.
        """
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
        """Cancel all waiting callers, whose requests will not be sent now. Only the first caller
        continues: it is just asking the ledger on behalf of all callers, and gives back the turns
        that it gets. Returns how many callers are left, 0 or 1.
        """
        for caller in list(self._line):
            if not caller.word.done():
                caller.word.cancel()
        return min(1, len(self._line))

    def _call_first(self) -> None:
        if self._line and not self._line[0].word.done():
            self._line[0].word.set_result(None)

    async def _ask(self, first: _Caller) -> Turn:
        """Ask the ledger on behalf of all callers in the queue until `first` may enter. Wake the
        other callers that may enter.
        """
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
        """Return the turn of `first`, or None if it must wait."""
        own = None
        for caller, turn in turns:
            if turn.wait > 0.0:
                break
            if caller is first:
                own = turn
                self._line.popleft()
            elif caller.word.done():  # this caller has stopped waiting meanwhile
                self.ledger.leave(turn, None, 0)
            else:
                self._line.remove(caller)
                caller.word.set_result(turn)
        return own

    def _forget(self, caller: _Caller) -> None:
        """Remove a caller that stops waiting. From now on the next caller in the queue asks the
        ledger. A turn that the removed caller has just received is given back.
        """
        with suppress(ValueError):
            self._line.remove(caller)
        self._call_first()
        if caller.word.done() and not caller.word.cancelled() and (turn := caller.word.result()):
            self.ledger.leave(turn, None, 0)

    async def _until_someone_left(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._left.wait(), seconds)
