"""The cache that processes and machines share, so that its counts apply to all of them.

Failed sign-ins are counted in this cache. If Redis is down, people must not be locked out, but they
must not get unlimited attempts either. So each process then counts by itself, as the embedded
default always does.
"""

import json
import logging
from collections.abc import Callable
from typing import Any

from django.core.cache import caches
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)


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
        try:
            return redis(*args, **options)
        except RedisError as error:
            logger.warning(
                "Redis does not answer, so limits are counted in this process only: %s", error
            )
            return getattr(caches["process"], name)(*args, **options)
