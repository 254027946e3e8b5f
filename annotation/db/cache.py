"""A cache in this process for results that take long to compute; it can store any Python object.

The default cache would not do: processes may share it, and it stores only plain values.
"""

from django.core.cache import caches
from django.utils.connection import ConnectionProxy

process_cache: ConnectionProxy = ConnectionProxy(caches, "process")
