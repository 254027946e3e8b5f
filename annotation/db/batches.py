"""Many rows, some at a time."""

from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from django.db import connection, models

One = TypeVar("One")

# As many texts as can be held at once without being felt, and few enough queries.
BATCH_SIZE = 1_000
# So many rows of some kilobytes PostgreSQL sends at once.
FETCH_SIZE = 100


def id_batches(found: models.QuerySet[Any, Any], size: int = BATCH_SIZE) -> Iterator[list[int]]:
    """The ids of all rows in their order, so many at a time.

    Databases sort ids alone where they would otherwise sort texts, and need not hold all that is
    found until its last row is fetched. Eight bytes a row are kept here.
    """
    ids = array("q", found.values_list("pk", flat=True).iterator(chunk_size=10 * size))
    for start in range(0, len(ids), size):
        yield ids[start : start + size].tolist()


def make_batches(some: Iterable[One], size: int) -> Iterator[list[One]]:
    """Whatever comes, so many at a time."""
    stream = iter(some)
    while batch := list(islice(stream, size)):
        yield batch


def stream_rows(
    found: models.QuerySet[Any, Any], told: Callable[[Any], models.QuerySet[Any, tuple[Any, ...]]]
) -> Iterator[tuple[Any, ...]]:
    """What is `told` of all rows, in their order, as the database has it, so JSON as its text."""
    if connection.vendor == "postgresql":
        # By a cursor of the server, which leaves the connection free between two fetches. Whoever
        # fails half-way has to roll back first, and psycopg's `stream` lets nothing else through
        # as long as a frame of the error holds it: that waited for ever.
        with connection.chunked_cursor() as cursor:
            cursor.execute(*told(found).query.sql_with_params())
            while rows := cursor.fetchmany(FETCH_SIZE):
                yield from rows
        return
    order = found.query.order_by
    for ids in id_batches(found):
        yield from told(found.model._default_manager.filter(pk__among=ids).order_by(*order))
