"""What this process remembers of what took long to make: anything that Python can hold.

Not the default cache, which processes may share and which holds plain values alone.
"""

from django.core.cache import caches
from django.utils.connection import ConnectionProxy

process_cache: ConnectionProxy = ConnectionProxy(caches, "process")
