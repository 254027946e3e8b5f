"""Write transactions, fair on both databases."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

# SQLite's own busy wait is unfair: with eight threads single calls waited up to 12 s. One lock
# round the write transactions of this process hands the turn on in order.
_TURN = threading.RLock()


@contextmanager
def transact() -> Iterator[None]:
    """A transaction that is going to write; nested ones become savepoints."""
    if connection.vendor != "sqlite":
        with transaction.atomic():
            yield
        return
    with _TURN, transaction.atomic():
        yield
