"""A cache in this process for results that take long to compute; it can store any Python object.

The default cache would not do: processes may share it, and it stores only plain values.
"""

import threading

from django.core.cache import caches
from django.utils.connection import ConnectionProxy

process_cache: ConnectionProxy = ConnectionProxy(caches, "process")

# Held while a report over all labels of a project is computed. Such a report may take hundreds of
# MB, so a process computes one at a time. Whoever waited looks into the cache again, and nobody
# waits for what is there.
computing = threading.RLock()
