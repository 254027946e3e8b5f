"""Reads that all see the rows of one instant, however long they take."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def consistent_reads() -> Iterator[None]:
    """All that is read inside is as it was at the first read; nothing can be written inside.

    Others go on writing meanwhile. Inside a transaction of the caller's, that decides.
    """
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "sqlite":
        # Django's own would take the turn to write from everybody else.
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
