"""Consistent reads: all reads see the rows of the same moment, however long the reads take."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def consistent_reads() -> Iterator[None]:
    """Enter a context in which all reads see the state at the time of the first read, and nothing
    can be written.

    Other connections can still write. Inside a transaction of the caller, this has no effect: the
    caller's transaction determines the isolation.
    """
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "sqlite":
        # A transaction of Django would block all other writers.
        with connection.cursor() as cursor:
            cursor.execute("BEGIN DEFERRED")
            cursor.execute("PRAGMA query_only = ON")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")
                cursor.execute("PRAGMA query_only = OFF")
    else:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield
