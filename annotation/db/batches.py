"""Reads many rows in batches."""

from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import itemgetter
from typing import Any, TypeVar

from django.db import connection, models
from django.db.models.functions import Cast, Length

One = TypeVar("One")

# Small enough for the texts to fit in memory easily, and large enough to need few queries.
BATCH_SIZE = 1_000
# A batch of JSON ends early once it has so many characters: one row may have megabytes.
MAX_LENGTH = 4_000_000
# The number of rows, of some kilobytes each, that PostgreSQL sends at once.
FETCH_SIZE = 100


def id_batches(found: models.QuerySet[Any, Any], size: int = BATCH_SIZE) -> Iterator[list[int]]:
    """Yield the ids of all rows, in the order of the rows, in lists of `size`.

    The database then sorts only ids, not rows with texts, and need not keep the result until the
    last row is fetched. This uses eight bytes per row.
    """
    ids = array("q", found.values_list("pk", flat=True).iterator(chunk_size=10 * size))
    for start in range(0, len(ids), size):
        yield ids[start : start + size].tolist()


def bulky_id_batches(
    found: models.QuerySet[Any, Any], column: str, size: int = BATCH_SIZE
) -> Iterator[list[int]]:
    """Yield the ids of all rows like `id_batches`, in lists that end early once the JSON in
    `column` has `MAX_LENGTH` characters together. This uses sixteen bytes per row."""
    ids, lengths = array("q"), array("q")
    rows = found.values_list("pk", Length(Cast(column, models.TextField())))
    for pk, length in rows.iterator(chunk_size=10 * size):
        ids.append(pk)
        lengths.append(length)
    for some in make_bulky_batches(zip(ids, lengths, strict=True), size, itemgetter(1)):
        yield [pk for pk, _ in some]


def make_bulky_batches(
    some: Iterable[One], size: int, measure: Callable[[One], int]
) -> Iterator[list[One]]:
    """Yield the elements in lists of `size`, which end early once they measure `MAX_LENGTH`
    characters together."""
    batch, length = list[One](), 0
    for one in some:
        batch.append(one)
        length += measure(one)
        if len(batch) == size or length >= MAX_LENGTH:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch


def make_batches(some: Iterable[One], size: int) -> Iterator[list[One]]:
    """Yield the elements in lists of `size`; the last list may be shorter."""
    stream = iter(some)
    while batch := list(islice(stream, size)):
        yield batch


def stream_rows(
    found: models.QuerySet[Any, Any], told: Callable[[Any], models.QuerySet[Any, tuple[Any, ...]]]
) -> Iterator[tuple[Any, ...]]:
    """Yield the tuples that `told` selects, for all rows in order. Values have the database's form
    (JSON as text)."""
    if connection.vendor == "postgresql":
        # A server-side cursor leaves the connection free between two fetches. After an error the
        # caller has to roll back. psycopg's `stream` blocks the connection as long as a frame of
        # the traceback refers to it, so the rollback waited for ever.
        with connection.chunked_cursor() as cursor:
            cursor.execute(*told(found).query.sql_with_params())
            while rows := cursor.fetchmany(FETCH_SIZE):
                yield from rows
        return
    order = found.query.order_by
    for ids in id_batches(found):
        yield from told(found.model._default_manager.filter(pk__among=ids).order_by(*order))
