"""Limits of an endpoint shared by several workers: a ledger in Redis.

Each question to Redis runs one script, so that two workers never take the same free slot. Times
come from the clock of Redis, so a wrong clock of a worker does no harm. Slots in flight expire
unless their worker renews them, so the slots of a killed worker are freed. Redis need not persist
anything: if its data are lost, the limits start as configured and adapt again. While Redis is down,
no call may start, since exceeding a limit would harm all users. Calls in flight finish, and their
replies are kept.
"""

import asyncio
import json
import logging
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import redis.asyncio as redis
from redis import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from judging.evaluators.limits import CATCH_UP_SECONDS, RETRY_SECONDS, Limits, Turn
from judging.evaluators.providers.errors import RateLimited, Transient

log = logging.getLogger(__name__)

# More connections do not help: each worker's limiter sends one question at a time.
CONNECTIONS = 16
# Seconds to wait before asking Redis again after it did not answer.
RECONNECT_SECONDS = 0.5
# Seconds after which a slot in flight expires if it is not renewed.
HOLD_SECONDS = 12.0
EXPIRE_SECONDS = 86_400
# For this many seconds the report that a call ended waits for another call that wants to enter.
RELEASE_DELAY = 0.01
# After a question to Redis, slots may be reused for this many seconds if the answer allowed it.
FRESH_SECONDS = 0.1
# A worker that reuses its slots asks Redis this often for the state that the other workers see. It
# asks even if no call ended: otherwise calls that later end together would all find the last answer
# outdated, and wait together for the next answer.
POLL_SECONDS = 0.03
# If no call ended for this many seconds, calls take long, and one more question to Redis hardly
# matters.
RECENT_SECONDS = 1.0
# If a worker found no free slot, the other workers leave slots to that worker for this many
# seconds, within which it asks again.
CROWDED_SECONDS = 0.2

# KEYS: state, calls in flight. ARGV, all as JSON: the limits (in flight, calls per minute, tokens
# per minute); seconds (slot expiry, catch-up, next check, expiry of the state); who leaves (name,
# result, its era, seconds of pause, seconds that its tokens took longer than estimated); who wants
# to enter (name, tokens); and about the worker (its number, how many calls whose slots it reused
# succeeded, seconds that slots are left to others). Returns how many may enter, how long the next
# waits, the era, when the state was created, and whether slots may be reused.
_MOVE = """
local at = redis.call('TIME')
local now = at[1] + at[2] / 1e6
local limits, seconds = cjson.decode(ARGV[1]), cjson.decode(ARGV[2])
local limit, calls, tokens = limits[1], limits[2], limits[3]
local worker, well, crowded = unpack(cjson.decode(ARGV[5]))
local state = {}
local kept = redis.call('HGETALL', KEYS[1])
if #kept == 0 then state.born = now end
for place = 1, #kept, 2 do state[kept[place]] = tonumber(kept[place + 1]) end
local function get(name) return state[name] or 0 end
if get('limit') ~= limit then state.limit = limit; state.ceiling = limit end
local function climb()
  state.succeeded = get('succeeded') + 1
  if state.succeeded >= state.ceiling then
    state.ceiling = math.min(limit, state.ceiling + 1)
    state.succeeded = 0
  end
end

for _ = 1, well do climb() end
for _, one in ipairs(cjson.decode(ARGV[3])) do
  local name, ended, era, pause, longer = unpack(one)
  redis.call('ZREM', KEYS[2], name)
  if ended == 'ok' then
    climb()
  elseif ended == 'limited' and era == get('era') then
    state.ceiling = math.max(1, math.floor(state.ceiling / 2))
    state.era = get('era') + 1
    state.succeeded = 0
  end
  if pause > 0 then state.paused_until = math.max(get('paused_until'), now + pause) end
  state.tokens_at = get('tokens_at') + longer
end

redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local in_flight, from = redis.call('ZCARD', KEYS[2]), now - seconds[2]
local entered, wait = 0, math.max(get('paused_until') - now, 0)
local free = wait == 0 and in_flight <= state.ceiling
for _, one in ipairs(cjson.decode(ARGV[4])) do
  wait = math.max(get('paused_until') - now, get('calls_at') - now, get('tokens_at') - now, 0)
  if in_flight >= state.ceiling then
    wait = math.max(wait, seconds[3])
    state.refused, state.refused_at = worker, now
  end
  if wait > 0 then break end
  redis.call('ZADD', KEYS[2], now + seconds[1], one[1])
  in_flight, entered = in_flight + 1, entered + 1
  if calls > 0 then state.calls_at = math.max(get('calls_at'), from) + 60 / calls end
  if tokens > 0 then state.tokens_at = math.max(get('tokens_at'), from) + one[2] * 60 / tokens end
end

local others = get('refused') ~= worker and now - get('refused_at') < crowded
local changed = {}
for name, value in pairs(state) do
  table.insert(changed, name)
  table.insert(changed, string.format('%.6f', value))
end
redis.call('HSET', KEYS[1], unpack(changed))
redis.call('EXPIRE', KEYS[1], seconds[4])
redis.call('EXPIRE', KEYS[2], seconds[4])
local born = string.format('%.6f', get('born'))
return {entered, string.format('%.6f', wait), get('era'), born, free and not others and 1 or 0}
"""

# ARGV: seconds until the slots expire, then their names. Returns those that have already expired.
_KEEP = """
local at = redis.call('TIME')
local held, lost = at[1] + at[2] / 1e6 + ARGV[1], {}
for place = 2, #ARGV do
  if redis.call('ZSCORE', KEYS[2], ARGV[place]) then
    redis.call('ZADD', KEYS[2], held, ARGV[place])
  else
    table.insert(lost, ARGV[place])
  end
end
return lost
"""


@asynccontextmanager
async def connect(url: str) -> AsyncIterator["redis.Redis"]:
    """Create a client for the running event loop. Its connection pool is bounded; callers wait for
    a free connection.
    """
    pool = redis.BlockingConnectionPool.from_url(
        url,
        max_connections=CONNECTIONS,
        timeout=5,
        socket_timeout=5,
        socket_connect_timeout=2,
        retry=Retry(NoBackoff(), 1),
    )
    client = redis.Redis(connection_pool=pool)
    try:
        yield client
    finally:
        await client.aclose()
        await pool.aclose()


def build_key(prefix: str, endpoint: str) -> str:
    """The key in Redis of an endpoint's ledger; the prefix is that of the installation."""
    return f"{prefix}:limits:{endpoint}"


def end_pause(url: str, key: str) -> None:
    """End the pause in a ledger, which a provider asked for. Raises `RedisError`."""
    with Redis.from_url(url, socket_timeout=5, socket_connect_timeout=2) as client:
        client.hdel(f"{key}:state", "paused_until")


class _MoveResult(NamedTuple):
    """The result of a batch: how many of the calls that wanted to enter may do so, how long the
    next call waits, the era, when Redis's state was created, and whether slots may be reused."""

    entered: int
    wait: float
    era: int
    born: str
    free: bool


class RedisLedger:
    """A ledger that all workers share that use the same key in Redis, with the same rules as
    `MemoryLedger`.

    Calls that leave are reported together with the next calls that want to enter. Calls that want
    to enter while Redis is being asked are collected for the next question: at a thousand calls per
    second, one question per call would take too long. But calls that wait together for an answer
    would also end together.

    So the slot of a call that succeeded is reused for this worker's next call, if Redis was asked
    within FRESH_SECONDS and knew of no pause, no lower ceiling and no other worker that waits for a
    slot. Meanwhile Redis is asked every POLL_SECONDS. After a call failed, or if Redis did not
    answer, calls may enter only if Redis permits it. If there is a rate limit for calls or tokens,
    Redis is asked for each call.
    """

    def __init__(self, client: "redis.Redis", key: str, limits: Limits) -> None:
        self.limits = limits
        self._keys = [f"{key}:state", f"{key}:in-flight"]
        self._in_flight: set[str] = set()
        self._keep = client.register_script(_KEEP)
        self._move = client.register_script(_MOVE)
        self._worker = secrets.randbits(31)
        self._spare: deque[Turn] = deque()
        self._well = 0
        self._era, self._born = 0, ""
        self._fresh_until = 0.0
        # True if an error still has to be reported to Redis.
        self._troubled = False
        # True if a call has left since Redis was last asked.
        self._leaves = False
        self._left_at = time.monotonic()
        self._leaving: list[list[str | float]] = []
        self._wanting: list[list[str | float]] = []
        self._next: asyncio.Task[_MoveResult] | None = None
        self._asking = asyncio.Lock()
        self._soon: asyncio.TimerHandle | None = None
        self._told: asyncio.Task[None] | None = None

    async def enter(self, tokens: Sequence[int]) -> list[Turn]:
        """Turns for calls with these estimated tokens. While Redis is down, the calls must wait."""
        return self._handed_on(tokens) or await self._ask(tokens)

    async def _ask(self, tokens: Sequence[int]) -> list[Turn]:
        names = [secrets.token_hex(8) for _ in tokens]
        before = len(self._wanting)
        self._wanting += [[name, amount] for name, amount in zip(names, tokens, strict=True)]
        try:
            moved = await self._moved()
        except (TimeoutError, RedisError, OSError) as error:
            log.warning("The limits cannot be read (%s); waiting.", error)
            return [Turn(RECONNECT_SECONDS, 0)]
        entered = max(0, min(moved.entered - before, len(names)))
        turns = [
            Turn(0.0, moved.era, amount, name)
            for name, amount in zip(names[:entered], tokens, strict=False)
        ]
        self._in_flight.update(names[:entered])
        return turns if entered == len(names) else [*turns, Turn(moved.wait, moved.era)]

    def leave(self, turn: Turn, error: BaseException | None, used: int | None = None) -> None:
        """End the call of `turn`. `error` is None if the call succeeded; `used` is the number of
        tokens that it used.

        An error is reported to Redis at once. A success is reported when the next call of this
        worker wants to enter, or after RELEASE_DELAY seconds; after up to POLL_SECONDS while slots
        are reused.
        """
        self._left_at = time.monotonic()
        if error is None and self._hands_on() and turn.name in self._in_flight:
            self._spare.append(turn)
        else:
            self._give_back(turn, error, used)
        if error is not None:
            self._troubled = True
            self._stop_handing_on()
            self._tell()
        elif not self._leaves and not (self._hands_on() and self._is_asking()):
            self._tell_soon()

    async def keep(self) -> None:
        """Renew the slots of this worker's calls; call it well before HOLD_SECONDS are over.

        A slot that has expired meanwhile may belong to another worker and is not reused.
        """
        if not self._in_flight:
            return
        try:
            lost = await self._keep(keys=self._keys, args=[HOLD_SECONDS, *self._in_flight])
            self._in_flight.difference_update(name.decode() for name in lost)
        except (TimeoutError, RedisError, OSError) as problem:
            log.warning("The slots of calls in flight could not be renewed (%s).", problem)

    async def settle(self) -> None:
        """Send all pending changes to Redis."""
        if self._leaving or self._spare or self._well:
            self._tell()
        if self._told:
            await self._told

    def _hands_on(self) -> bool:
        paced = self.limits.per_minute or self.limits.tokens_per_minute
        return not paced and time.monotonic() < self._fresh_until

    def _handed_on(self, tokens: Sequence[int]) -> list[Turn]:
        """Return turns for the first of these calls, as many as there are slots to reuse."""
        if not self._hands_on():
            self._stop_handing_on()
        turns: list[Turn] = []
        for amount in tokens[: len(self._spare)]:
            place = self._spare.popleft()
            turns.append(Turn(0.0, self._era, amount, place.name))
        self._well += len(turns)
        return turns

    def _stop_handing_on(self) -> None:
        self._fresh_until = 0.0
        self._leave_spare()

    def _leave_spare(self) -> None:
        while self._spare:
            self._give_back(self._spare.popleft(), None, None)

    def _give_back(self, turn: Turn, error: BaseException | None, used: int | None) -> None:
        self._in_flight.discard(turn.name)
        self._leaving.append(self._left(turn, error, used))

    def _tell(self) -> None:
        self._leave_spare()
        self._told = asyncio.create_task(self._tell_all())

    async def _tell_all(self) -> None:
        try:
            await self._moved()
        except (TimeoutError, RedisError, OSError) as problem:
            # Their slots expire by themselves.
            log.warning("The end of calls could not be recorded (%s).", problem)

    async def _moved(self) -> _MoveResult:
        """Return the result of the next batch, which includes everything that is waiting now."""
        if self._next is None:
            self._next = asyncio.create_task(self._move_all())
        # A caller that stops waiting must not cancel the batch for the other callers.
        return await asyncio.shield(self._next)

    async def _move_all(self) -> _MoveResult:
        async with self._asking:
            leaving, wanting, well = self._leaving, self._wanting, self._well
            self._leaving, self._wanting, self._well, self._next = [], [], 0, None
            self._troubled = False
            if self._soon:
                self._soon.cancel()
                self._soon = None
            self._leaves = False
            limits = self.limits
            paces = [limits.per_minute or 0, limits.tokens_per_minute or 0]
            args = [
                [max(1, limits.in_flight), *paces],
                [HOLD_SECONDS, CATCH_UP_SECONDS, RETRY_SECONDS, EXPIRE_SECONDS],
                leaving,
                wanting,
                [self._worker, well, CROWDED_SECONDS],
            ]
            asked = time.monotonic()
            try:
                said = await self._move(self._keys, [json.dumps(arg) for arg in args])
            except BaseException:
                self._stop_handing_on()
                if self._leaving:
                    self._tell_soon()
                raise
            entered, wait, era, born, free = said
            moved = _MoveResult(int(entered), float(wait), int(era), str(born), bool(free))
            self._learn(moved, asked)
            return moved

    def _learn(self, moved: _MoveResult, asked: float) -> None:
        if moved.born != self._born:
            # Redis has been emptied, so it does not know the slots that were taken earlier.
            self._in_flight.clear()
            self._spare.clear()
        self._era, self._born = moved.era, moved.born
        if moved.free and not self._troubled:
            self._fresh_until = asked + FRESH_SECONDS
            if moved.entered or self._in_flight:
                self._ask_again()
        else:
            self._stop_handing_on()
            if self._leaving:
                self._tell_soon()

    def _is_asking(self) -> bool:
        """True if Redis is being asked, or will be asked within POLL_SECONDS."""
        return self._soon is not None or self._asking.locked()

    def _tell_soon(self) -> None:
        self._leaves = True
        if self._soon:
            self._soon.cancel()
        self._soon = asyncio.get_running_loop().call_later(RELEASE_DELAY, self._tell)

    def _ask_again(self) -> None:
        recent = time.monotonic() - self._left_at < RECENT_SECONDS
        if recent and self._soon is None and self._hands_on():
            self._soon = asyncio.get_running_loop().call_later(POLL_SECONDS, self._tell)

    def _left(self, turn: Turn, error: BaseException | None, used: int | None) -> list[str | float]:
        limited = "limited" if isinstance(error, RateLimited) else "other"
        ended = "ok" if error is None else limited
        pause = (error.retry_after or 0.0) if isinstance(error, Transient) else 0.0
        pace = self.limits.tokens_per_minute
        longer = (used - turn.tokens) * 60.0 / pace if pace and used is not None else 0.0
        return [turn.name, ended, turn.era, pause, longer]
