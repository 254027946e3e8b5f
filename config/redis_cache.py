"""The cache that processes and machines share, so that its counts apply to all of them.

Failed sign-ins are counted in this cache. If Redis is down, people must not be locked out, but they
must not get unlimited attempts either. So each process then counts by itself, as the embedded
default always does.

A Redis that is full, or whose disk is full, may still answer reads. Whoever read there and counted
here would never see what was counted. So after an error everything stays in the process until Redis
has stored something again.
"""

import json
import logging
import time
from collections.abc import Callable
from typing import Any

from django.core.cache import caches
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)
# So long a Redis that failed is not asked again: a page asks several times, and each may wait.
RETRY_SECONDS = 5.0
# Only these show that Redis stores again. One that is full still deletes.
_STORING = frozenset({"add", "set", "incr"})
# When Redis may be asked again after it failed, by the prefix of the keys. Every thread has a cache
# of its own.
_retry_at: dict[str, float] = {}


class JSONSerializer:
    """Stores values as JSON. So write access to Redis does not allow anybody to run code here."""

    def dumps(self, value: Any) -> str:
        return json.dumps(value)

    def loads(self, stored: bytes) -> Any:
        return json.loads(stored)


class SharedCache(RedisCache):
    """A cache in Redis; if Redis does not answer, in the memory of this process."""

    def add(self, *args: Any, **options: Any) -> Any:
        return self._asked(super().add, "add", *args, **options)

    def get(self, *args: Any, **options: Any) -> Any:
        return self._asked(super().get, "get", *args, **options)

    def set(self, *args: Any, **options: Any) -> Any:
        return self._asked(super().set, "set", *args, **options)

    def touch(self, *args: Any, **options: Any) -> Any:
        return self._asked(super().touch, "touch", *args, **options)

    def delete(self, *args: Any, **options: Any) -> Any:
        return self._asked(super().delete, "delete", *args, **options)

    def has_key(self, *args: Any, **options: Any) -> Any:
        return self._asked(super().has_key, "has_key", *args, **options)

    def incr(self, *args: Any, **options: Any) -> Any:
        return self._asked(super().incr, "incr", *args, **options)

    def clear(self) -> None:
        """Delete only the keys of this deployment. Redis may also hold queue messages and other
        deployments."""
        client = self._cache.get_client(None, write=True)
        for key in client.scan_iter(match=f"{self.key_prefix}:*", count=1000):
            client.delete(key)

    def _asked(self, redis: Callable[..., Any], name: str, *args: Any, **options: Any) -> Any:
        here, prefix = getattr(caches["process"], name), self.key_prefix
        retry_at = _retry_at.get(prefix)
        if retry_at is not None:
            if time.monotonic() < retry_at or name not in _STORING:
                return here(*args, **options)
            _retry_at[prefix] = time.monotonic() + RETRY_SECONDS  # one thread tries
        try:
            answer = redis(*args, **options)
        except RedisError as error:
            _retry_at[prefix] = time.monotonic() + RETRY_SECONDS
            logger.warning(
                "Redis does not answer, so limits are counted in this process only: %s", error
            )
            return here(*args, **options)
        if name in _STORING:
            _retry_at.pop(prefix, None)
        return answer
