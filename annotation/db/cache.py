"""A cache of this process for results that take long to compute; it can hold any Python object.

It is not the default cache, which processes may share and which stores only plain values.
"""

from django.core.cache import caches
from django.utils.connection import ConnectionProxy

process_cache: ConnectionProxy = ConnectionProxy(caches, "process")
