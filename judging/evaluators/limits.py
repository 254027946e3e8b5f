"""How fast one endpoint may be called.

Two parts. The *ledger* is what everybody who calls an endpoint shares: calls in flight, the pace
of calls and of tokens, the pause that the provider asked for, and a ceiling that adapts. It only
answers "in" or "wait so long"; this one is in memory, the one in Redis (`shared_limits`) answers
the same. The *limiter* is the door of one event loop: callers wait there in order, and the first
of them asks the ledger for all.
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

# How far behind its pace an endpoint may catch up, in seconds: enough for late wake-ups.
CATCH_UP_SECONDS = 0.05
# How soon to look again for room that another loop or process may have made, in seconds.
RETRY_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Limits:
    """Highest number of calls in flight, and of calls begun and tokens a minute (None: no such
    limit)."""

    in_flight: int = 16
    per_minute: int | None = None
    tokens_per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """The ledger's answer: in (`wait` is 0), or come back in `wait` seconds.

    `era` counts the cuts of the ceiling so far; a call tells its era when it leaves. `tokens` is
    what it was taken to use, `name` tells it from other calls where the ledger needs that.
    """

    wait: float
    era: int
    tokens: int = 0
    name: str = ""


@dataclass(slots=True)
class CallSlot:
    """A call's place among those in flight; `used` are the tokens it turned out to take."""

    used: int | None = None


class Ledger(Protocol):
    """What callers of one endpoint share, wherever it is kept."""

    async def enter(self, tokens: Sequence[int]) -> list[Turn]: ...

    def leave(self, turn: Turn, error: BaseException | None, used: int | None = None) -> None: ...

    async def keep(self) -> None: ...

    async def settle(self) -> None: ...


class _RateMeter:
    """So much a minute, evenly: what was begun is paid off before the next may begin.

    A call larger than what is left over still goes, and the next one waits the longer, so that
    over time the rate is kept to the token.
    """

    def __init__(self) -> None:
        self._free_at = 0.0

    def wait(self, now: float) -> float:
        return self._free_at - now

    def count(self, amount: int, per_minute: int | None, now: float) -> None:
        if per_minute:
            self._free_at = max(self._free_at, now - CATCH_UP_SECONDS) + amount * 60.0 / per_minute

    def correct(self, amount: int, per_minute: int | None) -> None:
        """What was counted turned out to be so much more, or less."""
        if per_minute:
            self._free_at += amount * 60.0 / per_minute


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
        self._calls, self._tokens = _RateMeter(), _RateMeter()
        self._era = 0
        self._succeeded = 0
        self._lock = threading.Lock()

    def adopt(self, limits: Limits) -> None:
        """Take over limits that were changed; the ceiling starts anew only then."""
        with self._lock:
            if limits != self.limits:
                self.limits = limits
                self.ceiling = max(1, limits.in_flight)

    async def enter(self, tokens: Sequence[int]) -> list[Turn]:
        """Turns for calls of about so many tokens each, in this order; the first that has to wait
        is the last turn. One that is in must be given back with `leave`."""
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
        """The call of `turn` has ended, with `error` or well, and took `used` tokens, None where
        that is not known."""
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
        """Hold on to what is in flight: here it is, as long as the process is."""

    async def settle(self) -> None:
        """See that all know who left: here they do at once."""

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
    """This process's ledger of an endpoint, kept from one event loop to the next."""
    with _ledgers_lock:
        ledger = _ledgers.setdefault(endpoint, MemoryLedger(limits))
    ledger.adopt(limits)
    return ledger


@dataclass(slots=True)
class _Caller:
    """Somebody at the door. `word` is their turn, or None once they are the first in line, who
    asks for all."""

    tokens: int
    word: asyncio.Future[Turn | None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Limiter:
    """The door to one endpoint for the callers of one event loop, first come first served."""

    def __init__(
        self, ledger: Ledger, sleep: Callable[[float], Awaitable[object]] | None = None
    ) -> None:
        self.ledger = ledger
        self._sleep = self._until_someone_left if sleep is None else sleep
        self._line: deque[_Caller] = deque()
        self._left = asyncio.Event()

    @asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncIterator[CallSlot]:
        """Waits for its turn, holds it for the length of the block, learns from its error and
        from the tokens that the block notes on its place."""
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
        """Let nobody wait any more: what they wanted in for is not asked now. Their waits are
        cancelled, but for the first in line, who asks the ledger for all and gives back what comes;
        how many that leaves, 0 or 1."""
        for caller in list(self._line):
            if not caller.word.done():
                caller.word.cancel()
        return min(1, len(self._line))

    def _call_first(self) -> None:
        if self._line and not self._line[0].word.done():
            self._line[0].word.set_result(None)

    async def _ask(self, first: _Caller) -> Turn:
        """Ask for all who are in line until `first` is in; who is let in beside is told."""
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
        """The turn of `first`, if they are in."""
        own = None
        for caller, turn in turns:
            if turn.wait > 0.0:
                break
            if caller is first:
                own = turn
                self._line.popleft()
            elif caller.word.done():  # who stopped waiting meanwhile
                self.ledger.leave(turn, None, 0)
            else:
                self._line.remove(caller)
                caller.word.set_result(turn)
        return own

    def _forget(self, caller: _Caller) -> None:
        """Somebody stops waiting: the next in line asks, a turn that just came is given back."""
        with suppress(ValueError):
            self._line.remove(caller)
        self._call_first()
        if caller.word.done() and not caller.word.cancelled() and (turn := caller.word.result()):
            self.ledger.leave(turn, None, 0)

    async def _until_someone_left(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._left.wait(), seconds)
