"""The limits of an endpoint where several workers keep them together: a ledger in Redis.

Each answer is one script, so that no two workers see the same free place, and the clock is
Redis's own, so that a worker whose clock jumps changes nothing. Places in flight run out unless
their worker keeps them: one that was killed gives them back by that alone. Nothing
here has to survive: a Redis that was emptied begins with the limits as they are entered and
learns the rest again. While it is away nobody enters, since a limit that is not kept is paid for
by everyone; calls in flight end and are kept.
"""

import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from judging.providers.errors import RateLimited, Transient
from judging.providers.limits import CATCH_UP, LOOK_AGAIN, Limits, Turn

log = logging.getLogger(__name__)

# More connections make nobody faster: the door of each worker asks once at a time.
CONNECTIONS = 16
# How long to wait before asking a Redis again that did not answer, in seconds.
AWAY = 0.5
# How long a place in flight is held that nobody keeps, in seconds.
HELD = 12.0
FORGET = 86_400

_STATE = """
local at = redis.call('TIME')
local now = at[1] + at[2] / 1e6
local function get(name) return tonumber(redis.call('HGET', KEYS[1], name)) or 0 end
local function set(name, value) redis.call('HSET', KEYS[1], name, string.format('%.6f', value)) end
local limit = tonumber(ARGV[2])
if get('limit') ~= limit then set('limit', limit); set('ceiling', limit) end
"""
# KEYS: state, calls in flight. ARGV: name, in flight, calls a minute, tokens a minute, tokens,
# seconds that the place is held, seconds to catch up, seconds to look again, seconds to forget.
_ENTER = (
    _STATE
    + """
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local wait = math.max(get('paused_until') - now, get('calls_at') - now, get('tokens_at') - now, 0)
if redis.call('ZCARD', KEYS[2]) >= get('ceiling') then wait = math.max(wait, tonumber(ARGV[8])) end
if wait <= 0 then
  redis.call('ZADD', KEYS[2], now + ARGV[6], ARGV[1])
  local from = now - ARGV[7]
  if tonumber(ARGV[3]) > 0 then set('calls_at', math.max(get('calls_at'), from) + 60 / ARGV[3]) end
  if tonumber(ARGV[4]) > 0 then
    set('tokens_at', math.max(get('tokens_at'), from) + ARGV[5] * 60 / ARGV[4])
  end
  redis.call('EXPIRE', KEYS[2], ARGV[9])
end
redis.call('EXPIRE', KEYS[1], ARGV[9])
return {string.format('%.6f', wait), get('era')}
"""
)
# ARGV: name, in flight, how it ended (ok, limited, other), its era, seconds of pause, seconds that
# its tokens took longer than foreseen.
_LEAVE = (
    _STATE
    + """
redis.call('ZREM', KEYS[2], ARGV[1])
local ceiling = get('ceiling')
if ARGV[3] == 'ok' then
  local succeeded = get('succeeded') + 1
  if succeeded >= ceiling then set('ceiling', math.min(limit, ceiling + 1)); succeeded = 0 end
  set('succeeded', succeeded)
elseif ARGV[3] == 'limited' and tonumber(ARGV[4]) == get('era') then
  set('ceiling', math.max(1, math.floor(ceiling / 2)))
  set('era', get('era') + 1)
  set('succeeded', 0)
end
if tonumber(ARGV[5]) > 0 then set('paused_until', math.max(get('paused_until'), now + ARGV[5])) end
if tonumber(ARGV[6]) ~= 0 then set('tokens_at', get('tokens_at') + ARGV[6]) end
return 1
"""
)

# ARGV: seconds that the places are held, then their names.
_KEEP = """
local at = redis.call('TIME')
local held = at[1] + at[2] / 1e6 + ARGV[1]
for place = 2, #ARGV do redis.call('ZADD', KEYS[2], 'XX', held, ARGV[place]) end
return 1
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


class RedisLedger:
    """A ledger that all who name the same key share; the rules are those of `MemoryLedger`."""

    def __init__(self, client: "redis.Redis", key: str, limits: Limits) -> None:
        self.limits = limits
        self._keys = [f"{key}:state", f"{key}:in-flight"]
        self._in_flight: set[str] = set()
        self._keep = client.register_script(_KEEP)
        self._enter = client.register_script(_ENTER)
        self._leave = client.register_script(_LEAVE)

    async def enter(self, tokens: int = 0) -> Turn:
        """A turn for a call of about so many tokens; while Redis is away, a wait."""
        name = secrets.token_hex(8)
        try:
            wait, era = await self._enter(keys=self._keys, args=self._entering(name, tokens))
        except (TimeoutError, RedisError, OSError) as error:
            log.warning("The limits cannot be asked for (%s); waiting.", error)
            return Turn(AWAY, 0)
        if float(wait) <= 0.0:
            self._in_flight.add(name)
        return Turn(float(wait), int(era), tokens, name)

    async def leave(self, turn: Turn, error: BaseException | None, used: int | None = None) -> None:
        """The call of `turn` has ended, with `error` or well, and took `used` tokens."""
        self._in_flight.discard(turn.name)
        try:
            await self._leave(keys=self._keys, args=self._leaving(turn, error, used))
        except (TimeoutError, RedisError, OSError) as problem:
            # Its place runs out by itself.
            log.warning("The end of a call could not be noted (%s).", problem)

    async def keep(self) -> None:
        """Hold on to the places of this worker's calls; well before HELD is over."""
        if not self._in_flight:
            return
        try:
            await self._keep(keys=self._keys, args=[HELD, *self._in_flight])
        except (TimeoutError, RedisError, OSError) as problem:
            log.warning("The places of calls in flight could not be kept (%s).", problem)

    def _entering(self, name: str, tokens: int) -> list[str | float]:
        limits = self.limits
        paces = [limits.per_minute or 0, limits.tokens_per_minute or 0]
        times = [HELD, CATCH_UP, LOOK_AGAIN, FORGET]
        return [name, max(1, limits.in_flight), *paces, tokens, *times]

    def _leaving(
        self, turn: Turn, error: BaseException | None, used: int | None
    ) -> list[str | float]:
        limited = "limited" if isinstance(error, RateLimited) else "other"
        ended = "ok" if error is None else limited
        pause = (error.retry_after or 0.0) if isinstance(error, Transient) else 0.0
        pace = self.limits.tokens_per_minute
        longer = (used - turn.tokens) * 60.0 / pace if pace and used is not None else 0.0
        return [turn.name, max(1, self.limits.in_flight), ended, turn.era, pause, longer]
