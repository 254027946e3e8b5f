"""Reads many rows in batches."""

from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import itemgetter
from typing import Any, TypeVar

from django.db import connection, models
from django.db.models import Case, When
from django.db.models.functions import Cast, Length
from django.db.models.lookups import GreaterThan

One = TypeVar("One")

# Small enough for the texts to fit in memory easily, and large enough to need few queries.
BATCH_SIZE = 1_000
# A batch of JSON ends early once it has so many characters: one row may have megabytes.
MAX_LENGTH = 1_000_000
# PostgreSQL knows how many bytes it stores. To count the characters it has to unpack these, which
# is worth the time for more bytes than this: repeated words are packed to a hundredth.
LARGE = 2_000


def id_batches(found: models.QuerySet[Any, Any], size: int = BATCH_SIZE) -> Iterator[list[int]]:
    """Yield the ids of all rows, in the order of the rows, in lists of `size`.

    The database then sorts only ids, not rows with texts, and need not keep the result until the
    last row is fetched. This uses eight bytes per row.
    """
    ids = array("q", found.values_list("pk", flat=True).iterator(chunk_size=10 * size))
    for start in range(0, len(ids), size):
        yield ids[start : start + size].tolist()


def bulky_id_batches(
    found: models.QuerySet[Any, Any], *columns: str, size: int = BATCH_SIZE
) -> Iterator[list[int]]:
    """Yield the ids of all rows like `id_batches`, in lists that end early once the JSON in these
    columns has `MAX_LENGTH` characters together. This uses sixteen bytes per row."""
    return _measured_batches(found, list(map(_measure_json, columns)), size)


def packed_id_batches(
    found: models.QuerySet[Any, Any], column: str, size: int = BATCH_SIZE
) -> Iterator[list[int]]:
    """Yield the ids of all rows like `bulky_id_batches`, by how much the database stores of the
    JSON in this column. PostgreSQL need not unpack it for that, and may have packed it to a
    hundredth."""
    return _measured_batches(found, [_measure_stored(column)], size)


def _measured_batches(
    found: models.QuerySet[Any, Any], measures: list[models.Expression], size: int
) -> Iterator[list[int]]:
    ids, lengths = array("q"), array("q")
    for pk, *measured in found.values_list("pk", *measures).iterator(chunk_size=10 * size):
        ids.append(pk)
        lengths.append(sum(filter(None, measured)))
    for some in make_bulky_batches(zip(ids, lengths, strict=True), size, itemgetter(1)):
        yield [pk for pk, _ in some]


def _measure_json(column: str) -> models.Expression:
    length = Length(Cast(column, models.TextField()))
    if connection.vendor != "postgresql":
        return length
    stored = _measure_stored(column)
    return Case(When(GreaterThan(stored, LARGE), then=length), default=stored)


def _measure_stored(column: str) -> models.Expression:
    if connection.vendor != "postgresql":
        return Length(Cast(column, models.TextField()))
    return models.Func(column, function="pg_column_size", output_field=models.IntegerField())


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
