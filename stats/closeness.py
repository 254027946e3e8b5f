"""Distance between an evaluator's scores and people's (studies 002 and 003).

All functions take one score per item from people and one from the evaluator, in the unit of the
scale, nan if missing. Items that lack either score are left out and `n` counts the others; if none
is left, there is no value. Pass the figures to `bootstrap.estimate` for their interval.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from stats.bootstrap import Figure
from stats.correlation import NO_PAIR, paired_values
from stats.rates import RateBounds

Floats = NDArray[np.float64]


def rmse(people: ArrayLike, evaluator: ArrayLike) -> Figure:
    """Root mean squared error sqrt(sum (e - p)^2 / n), in the unit of the scale, 0 at best."""
    return _mean_of(people, evaluator, np.square, np.sqrt)


def mse(people: ArrayLike, evaluator: ArrayLike) -> Figure:
    """Mean squared error sum (e - p)^2 / n, 0 at best: for probabilities, the Brier score."""
    return _mean_of(people, evaluator, np.square, _identity)


def mae(people: ArrayLike, evaluator: ArrayLike) -> Figure:
    """Mean absolute error sum |e - p| / n, in the unit of the scale, 0 at best."""
    return _mean_of(people, evaluator, np.abs, _identity)


def bias(people: ArrayLike, evaluator: ArrayLike) -> Figure:
    """Mean error sum (e - p) / n: above 0 if the evaluator is more generous than people."""
    return _mean_of(people, evaluator, _identity, _identity)


def accuracy_002(people: ArrayLike, evaluator: ArrayLike, total_range: float) -> Figure:
    """Study 002's accuracy in per cent, 100 - 100 RMSE / range of the total, for every metric alike
    (figure 9).

    The total of the study runs from 0 to 15, so the accuracy of a metric of 3 points cannot be
    below 80. Raises ValueError unless the range is positive.
    """
    if not total_range > 0:
        raise ValueError(f"the range of a total cannot be {total_range:g}")
    return _mean_of(
        people, evaluator, np.square, lambda mean: 100 - 100 * np.sqrt(mean) / total_range
    )


def mean_scaled(scores: ArrayLike, low: float, high: float) -> Figure:
    """Mean of (x - low) / (high - low), 0 to 1 for scores on the scale (study 003, table 1).

    Raises ValueError unless low < high.
    """
    if not low < high:
        raise ValueError(f"a scale cannot run from {low:g} to {high:g}")
    return _mean_of(np.full(np.shape(scores), low), scores, _identity, lambda m: m / (high - low))


def rmse_bounds(
    people: ArrayLike, evaluator: ArrayLike, low: float, high: float, step: float | None = None
) -> RateBounds:
    """The lowest and highest possible RMSE over all values that the missing scores could have.

    For the lowest, a missing score is the point of the scale (`low` to `high` by `step`; None: any
    number) nearest to people's score; for the highest, it is the end farthest from it. Items that
    people did not score are left out. RateBounds(None, None) if no item is left.
    """
    p, e = np.asarray(people, dtype=float), np.asarray(evaluator, dtype=float)
    scored = ~np.isnan(p)
    p, e = p[scored], e[scored]
    if not p.size:
        return RateBounds(None, None)
    nearest = np.clip(p, low, high)
    if step is not None:
        nearest = low + np.round((nearest - low) / step) * step
    farthest = np.where(p - low > high - p, low, high)
    lowest, highest = (np.where(np.isnan(e), end, e) - p for end in (nearest, farthest))
    return RateBounds(*(float(np.sqrt(np.mean(apart**2))) for apart in (lowest, highest)))


def _mean_of(
    people: ArrayLike,
    evaluator: ArrayLike,
    error: Callable[[Floats], Floats],
    shown: Callable[[Floats], Floats],
) -> Figure:
    """Build the figure `shown`(mean of `error`(e - p) over items)."""
    p, e, used = paired_values(people, evaluator)
    errors = error(np.where(used, e - p, 0.0))
    terms = csr_array(np.column_stack([errors, used]))

    def of(sums: Floats) -> Floats:
        n = sums[:, 1]
        return shown(np.divide(sums[:, 0], n, out=np.full(n.shape, np.nan), where=n != 0))

    return Figure(terms, of, used, NO_PAIR, NO_PAIR)


def _identity(values: Floats) -> Floats:
    return values
