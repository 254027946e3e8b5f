"""Write transactions that take turns fairly on both databases."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import Error, connection, transaction

# SQLite's own busy wait is unfair: with eight threads, single calls waited up to 12 s. With this
# lock, the write transactions of this process take turns.
_WRITE_LOCK = threading.RLock()
# Seconds between attempts to reach a database that is down.
RETRY_SECONDS = 1.0


@contextmanager
def transact() -> Iterator[None]:
    """Begin a transaction that will write; a nested transaction becomes a savepoint."""
    if connection.vendor != "sqlite":
        with transaction.atomic():
            yield
        return
    with _WRITE_LOCK, transaction.atomic():
        yield


def retry_with_new_connection(
    write: Callable[[], object], *, patience: float, stopped: Callable[[], bool] = bool
) -> None:
    """Write over a new connection after this thread has lost its connection. While the database is
    down, try again for `patience` seconds or until `stopped` returns True; then raise the error."""
    ends = time.monotonic() + patience
    while True:
        connection.close()
        try:
            with transact():
                write()
            return
        except Error:
            if stopped() or time.monotonic() > ends:
                raise
            time.sleep(RETRY_SECONDS)
