"""Many rows, some at a time."""

from array import array
from collections.abc import Iterator
from typing import Any

from django.db import models

# As many texts as can be held at once without being felt, and few enough queries.
PART = 1_000


def in_parts(found: models.QuerySet[Any, Any], size: int = PART) -> Iterator[list[int]]:
    """The ids of all rows in their order, so many at a time.

    Databases sort ids alone where they would otherwise sort texts, and need not hold all that is
    found until its last row is fetched. Eight bytes a row are kept here.
    """
    ids = array("q", found.values_list("pk", flat=True).iterator(chunk_size=10 * size))
    for start in range(0, len(ids), size):
        yield ids[start : start + size].tolist()
