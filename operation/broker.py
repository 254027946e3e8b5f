"""The broker, asked for no longer than whoever looks can wait."""

import redis
from django.conf import settings

TIMEOUT_SECONDS = 2.0


def connect() -> redis.Redis:
    """A connection to be closed; only where REDIS_URL is set. Nothing is asked of it yet."""
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=TIMEOUT_SECONDS, socket_connect_timeout=TIMEOUT_SECONDS
    )
