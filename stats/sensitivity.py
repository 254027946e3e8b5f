"""Detection against false alarms: does an evaluator tell errors from changes that are none?

Detection is the rate among error items, false alarm that among score-invariant items, of which
nothing should be noticed. All take, item by item, what was `detected` (0, 1 or the share of
repeats, nan where missing) and whether the item is `invariant`; `n` counts parsed items of both
kinds. A run without parsed items of either kind has no value, and each kind needs the bootstrap's
number of clusters for an interval.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import ndtri

from stats.bootstrap import Figure

NO_ITEMS = "no parsed item"
NO_INVARIANT = "no score-invariant item"
NO_ERROR = "no error item"

Floats = NDArray[np.float64]


def j(detected: ArrayLike, invariant: ArrayLike) -> Figure:
    """J = detection - false alarm, -1 to 1; 0 is alarm by chance (Youden 1950)."""
    return _figure(detected, invariant, lambda sums: _ratio(sums[:, 0], sums[:, 1]))


def d_prime(detected: ArrayLike, invariant: ArrayLike) -> Figure:
    """d' = z((hits + 0.5) / (errors + 1)) - z((alarms + 0.5) / (invariant + 1)), in deviations.

    z is the normal quantile; the halves keep rates of 0 and 1 finite (Hautus 1995). Not for
    pairs, whose choice between two answers is another model (Macmillan and Creelman 2005,
    chapter 7).
    """
    return _figure(
        detected, invariant, lambda sums: ndtri(_ratio(sums[:, 0] + 0.5, sums[:, 1] + 1))
    )


def _figure(
    detected: ArrayLike, invariant: ArrayLike, of_side: Callable[[Floats], Floats]
) -> Figure:
    """A number of the error items minus that of the invariant ones."""
    hits, calm = np.asarray(detected, dtype=float), np.asarray(invariant, dtype=bool)
    used = ~np.isnan(hits)
    errors, alarms = used & ~calm, used & calm
    hit = np.where(used, hits, 0.0)
    terms = np.column_stack([hit * errors, errors, hit * alarms, alarms])

    def of(sums: Floats) -> Floats:
        there = (sums[:, 1] > 0) & (sums[:, 3] > 0)
        return np.where(there, of_side(sums[:, :2]) - of_side(sums[:, 2:]), np.nan)

    undefined = NO_ERROR if alarms.any() else NO_INVARIANT
    return Figure(csr_array(terms), of, used, NO_ITEMS, undefined, parts=(errors, alarms))


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0)
