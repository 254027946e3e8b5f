"""Connections to the broker, with a timeout."""

import redis
from django.conf import settings

TIMEOUT_SECONDS = 2.0


def connect() -> redis.Redis:
    """Return a connection, which the caller must close; needs REDIS_URL. Nothing is sent yet."""
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=TIMEOUT_SECONDS, socket_connect_timeout=TIMEOUT_SECONDS
    )
