"""The limits of an endpoint where several workers keep them together: a ledger in Redis.

Each answer is one script, so that no two workers see the same free place, and the clock is
Redis's own, so that a worker whose clock jumps changes nothing. Places in flight run out unless
their worker keeps them: one that was killed gives them back by that alone. Nothing
here has to survive: a Redis that was emptied begins with the limits as they are entered and
learns the rest again. While it is away nobody enters, since a limit that is not kept is paid for
by everyone; calls in flight end and are kept.
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
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from judging.evaluators.limits import CATCH_UP_SECONDS, RETRY_SECONDS, Limits, Turn
from judging.evaluators.providers.errors import RateLimited, Transient

log = logging.getLogger(__name__)

# More connections make nobody faster: the door of each worker asks once at a time.
CONNECTIONS = 16
# How long to wait before asking a Redis again that did not answer, in seconds.
RECONNECT_SECONDS = 0.5
# How long a place in flight is held that nobody keeps, in seconds.
HOLD_SECONDS = 12.0
EXPIRE_SECONDS = 86_400
# How long the end of a call waits for another that wants in, in seconds. As often a worker that
# hands its places on hears what the others were told.
RELEASE_DELAY = 0.01
# Places are handed on for so many seconds after a question to which Redis answered well.
FRESH_SECONDS = 0.1
# While calls are in flight it is asked so often at least: those that end together after a while
# would all find its last answer too old, and wait for the next one together.
POLL_SECONDS = 0.03
# Where no call ended for so many seconds, calls are long and one question more is nothing.
RECENT_SECONDS = 1.0
# A worker that found no room is left some for so many seconds: it looks again within them.
CROWDED_SECONDS = 0.2

# KEYS: state, calls in flight. ARGV: the limits (in flight, calls a minute, tokens a minute), the
# seconds (that a place is held, to catch up, to look again, to forget), who leaves (name, how it
# ended, its era, seconds of pause, seconds that its tokens took longer than foreseen), who
# wants in (name, tokens), and of the worker (its number, how many calls whose places it handed on
# ended well, seconds that others are left room), all as JSON. Says how many are let in, how long
# the next waits, the era, when the state was born, whether places may be handed on.
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

# ARGV: seconds that the places are held, then their names. Says which are held no more.
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
    """A client for the event loop that runs now; its pool is bounded, and waiting callers wait."""
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


class _MoveResult(NamedTuple):
    """What came of a batch: how many of those who wanted in are, how long the next waits, when
    what Redis knows began, and whether places may be handed on."""

    entered: int
    wait: float
    era: int
    born: str
    free: bool


class RedisLedger:
    """A ledger that all who name the same key share; the rules are those of `MemoryLedger`.

    Who leaves goes with the next who want in, and who wants in while Redis is asked with the next
    question: at a thousand calls a second a question for each would take longer than the calls
    may. And while they wait for its answer together, they would end together as well.

    So the place of a call that ended well is handed on to the next of this worker, as long as
    Redis was asked within FRESH seconds and knew of no pause, no lower ceiling and no other worker
    that waits for a place. Meanwhile it is asked every LEFT seconds; after an error, or without
    its answer, nobody enters but by its word. Where calls or tokens have a pace, each is asked for.
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
        # Whether an error is still to be told.
        self._troubled = False
        # Whether somebody left since Redis was last asked.
        self._leaves = False
        self._left_at = time.monotonic()
        self._leaving: list[list[str | float]] = []
        self._wanting: list[list[str | float]] = []
        self._next: asyncio.Task[_MoveResult] | None = None
        self._asking = asyncio.Lock()
        self._soon: asyncio.TimerHandle | None = None
        self._told: asyncio.Task[None] | None = None

    async def enter(self, tokens: Sequence[int]) -> list[Turn]:
        """Turns for calls of about so many tokens each; while Redis is away, a wait."""
        return self._handed_on(tokens) or await self._ask(tokens)

    async def _ask(self, tokens: Sequence[int]) -> list[Turn]:
        names = [secrets.token_hex(8) for _ in tokens]
        before = len(self._wanting)
        self._wanting += [[name, amount] for name, amount in zip(names, tokens, strict=True)]
        try:
            moved = await self._moved()
        except (TimeoutError, RedisError, OSError) as error:
            log.warning("The limits cannot be asked for (%s); waiting.", error)
            return [Turn(RECONNECT_SECONDS, 0)]
        entered = max(0, min(moved.entered - before, len(names)))
        turns = [
            Turn(0.0, moved.era, amount, name)
            for name, amount in zip(names[:entered], tokens, strict=False)
        ]
        self._in_flight.update(names[:entered])
        return turns if entered == len(names) else [*turns, Turn(moved.wait, moved.era)]

    def leave(self, turn: Turn, error: BaseException | None, used: int | None = None) -> None:
        """The call of `turn` has ended, with `error` or well, and took `used` tokens.

        All know it once the next call of this worker wants in, or after LEFT seconds; of an error
        at once.
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
        elif not self._leaves:
            self._leaves = True
            if self._soon:
                self._soon.cancel()
            self._soon = asyncio.get_running_loop().call_later(RELEASE_DELAY, self._tell)

    async def keep(self) -> None:
        """Hold on to the places of this worker's calls; well before HELD is over.

        One that ran out meanwhile is another's: it is not handed on.
        """
        if not self._in_flight:
            return
        try:
            lost = await self._keep(keys=self._keys, args=[HOLD_SECONDS, *self._in_flight])
            self._in_flight.difference_update(name.decode() for name in lost)
        except (TimeoutError, RedisError, OSError) as problem:
            log.warning("The places of calls in flight could not be kept (%s).", problem)

    async def settle(self) -> None:
        """See that all know who left."""
        if self._leaving or self._spare or self._well:
            self._tell()
        if self._told:
            await self._told

    def _hands_on(self) -> bool:
        paced = self.limits.per_minute or self.limits.tokens_per_minute
        return not paced and time.monotonic() < self._fresh_until

    def _handed_on(self, tokens: Sequence[int]) -> list[Turn]:
        """Turns for the first of these calls, as many as there are places to spare."""
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
            # Their places run out by themselves.
            log.warning("The end of calls could not be noted (%s).", problem)

    async def _moved(self) -> _MoveResult:
        """What came of the next batch, in which everything is that waits now."""
        if self._next is None:
            self._next = asyncio.create_task(self._move_all())
        # Who stops waiting does not stop the others' batch.
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
                raise
            entered, wait, era, born, free = said
            moved = _MoveResult(int(entered), float(wait), int(era), str(born), bool(free))
            self._learn(moved, asked)
            return moved

    def _learn(self, moved: _MoveResult, asked: float) -> None:
        if moved.born != self._born:
            # Of places that were taken before, this Redis knows nothing.
            self._in_flight.clear()
            self._spare.clear()
        self._era, self._born = moved.era, moved.born
        if moved.free and not self._troubled:
            self._fresh_until = asked + FRESH_SECONDS
            if moved.entered or self._in_flight:
                self._ask_again()
        else:
            self._stop_handing_on()

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
