"""A cache in this process for results that take long to compute, which can store any Python object,
and counts in the default cache, which processes may share and which stores only plain values."""

import threading
import time

from django.core.cache import cache, caches
from django.utils.connection import ConnectionProxy

process_cache: ConnectionProxy = ConnectionProxy(caches, "process")

# Held while a report over all labels of a project is computed. Such a report may take hundreds of
# MB, so a process computes one at a time. Whoever waited looks into the cache again, and nobody
# waits for what is there.
computing = threading.RLock()


def count_in_window(name: str, seconds: int) -> int:
    """Count a call, and return how many calls of this name came in the present minute, hour or
    other window of the clock, which lasts so many seconds. 1 if the count is lost."""
    key = f"{name}:{int(time.time()) // seconds}"
    if cache.add(key, 1, 2 * seconds):
        return 1
    try:
        return cache.incr(key)
    except ValueError:
        return 1
