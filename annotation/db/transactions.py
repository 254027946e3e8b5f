"""Write transactions, fair on both databases."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import Error, connection, transaction

# SQLite's own busy wait is unfair: with eight threads single calls waited up to 12 s. One lock
# round the write transactions of this process hands the turn on in order.
_WRITE_LOCK = threading.RLock()
# Seconds between two tries to reach a database that is away.
RETRY_SECONDS = 1.0


@contextmanager
def transact() -> Iterator[None]:
    """A transaction that is going to write; nested ones become savepoints."""
    if connection.vendor != "sqlite":
        with transaction.atomic():
            yield
        return
    with _WRITE_LOCK, transaction.atomic():
        yield


def retry_with_new_connection(
    write: Callable[[], object], *, patience: float, stopped: Callable[[], bool] = bool
) -> None:
    """Write by a fresh connection, where that of this thread was lost. While the database is away
    this is tried again for so many seconds, unless one is `stopped`; then the error goes on."""
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
