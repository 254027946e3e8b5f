"""Ratings as a test writes them down."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from stats import ratings


def ratings_from_names(
    rows: Sequence[Sequence[str | None]],
    names: Sequence[str] | None = None,
    clusters: ArrayLike | None = None,
) -> ratings.Ratings:
    """Ratings of names, one row an item, None for a missing label.

    A name's value is its position in `names`, or among the sorted names found.
    """
    found = sorted({name for row in rows for name in row if name is not None})
    known = list(found if names is None else names)
    code = {name: float(number) for number, name in enumerate(known)}
    table = [[np.nan if name is None else code[name] for name in row] for row in rows]
    return ratings.ratings_from_values(table, range(len(known)), clusters)
