"""How similarly an evaluator and people rank items (studies 002 and 003).

All functions take two arrays of one number per item, in any unit, nan if missing, and return a
`Figure` from -1 to 1: `figure.point()` is the value, `bootstrap.estimate(figure, clusters, rng)`
adds the interval. Items that lack either number are left out; `n` counts the others. A figure is
undefined if no item has both numbers, or if either side is constant (task 034 of study 003).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from math import atanh, factorial, sqrt, tanh

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import ndtri, stdtr

from stats.bootstrap import Figure
from stats.estimates import Estimate, PValue

Floats = NDArray[np.float64]
Ints = NDArray[np.int_]

NO_PAIR = "no item with both scores"
CONSTANT = "one side is constant"
# A correlation over fewer units than this is not given.
FEWEST_UNITS = 4
FEW_UNITS = f"fewer than {FEWEST_UNITS} evaluators"
IN_STEP = "all lie on one line, or are in the same order"
# With up to this many units, p of a rank correlation is over all their orders.
MOST_ORDERED = 8
# A variance below this share of the sum of squares is a rounding error.
_ROUNDING = 1e-12


def paired_values(one: ArrayLike, other: ArrayLike) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return both sides as arrays, and a mask of the items with both numbers. Raises ValueError for
    unequal lengths."""
    x, y = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"{x.shape} and {y.shape} are not two scores per item")
    return x, y, ~(np.isnan(x) | np.isnan(y))


def pearson(one: ArrayLike, other: ArrayLike) -> Figure:
    """Pearson's r = sum (x - mx)(y - my) / sqrt(sum (x - mx)^2 sum (y - my)^2) (Pearson 1895)."""
    x, y, used = paired_values(one, other)
    x, y = _shifted(x, used), _shifted(y, used)
    terms = csr_array(np.column_stack([used, x, y, x * x, y * y, x * y]))

    def of(sums: Floats) -> Floats:
        n, x, y, xx, yy, xy = sums.T
        across = _spread(n * xx, x * x) * _spread(n * yy, y * y)
        return _ratio(n * xy - x * y, np.sqrt(across))

    return Figure(terms, of, used, NO_PAIR, CONSTANT)


def spearman(one: ArrayLike, other: ArrayLike) -> Figure:
    """Spearman's rho: Pearson's r of the ranks, with mean ranks for ties (Spearman 1904).

    Study 003, section 3.4. Each bootstrap draw is ranked anew.
    """
    cells = _cells(one, other)

    def of(weights: Floats) -> Floats:
        x, y = (_ranks(weights, side) for side in (cells.x, cells.y))
        spread = np.sqrt((weights * x * x).sum(axis=1)) * np.sqrt((weights * y * y).sum(axis=1))
        return _ratio((weights * x * y).sum(axis=1), spread)

    return Figure(cells.terms, of, cells.used, NO_PAIR, CONSTANT)


def kendall(one: ArrayLike, other: ArrayLike) -> Figure:
    """Kendall's tau-b = (C - D) / sqrt((P - Tx)(P - Ty)) (Kendall 1945).

    Of the P = n (n - 1) / 2 pairs of items, C are in the same order on both sides and D in the
    opposite order; Tx are tied in x and Ty in y. An item drawn twice is tied with itself.
    """
    cells = _cells(one, other)
    # The side with fewer values decides the number of passes; tau-b is symmetric.
    few, many = sorted((cells.x, cells.y), key=lambda side: side.max(initial=0))
    passes = _concordance_passes(few, many)

    def of(weights: Floats) -> Floats:
        order = sum((one(weights) for one in passes), np.zeros(len(weights)))
        n = weights.sum(axis=1)
        x, y = (n * n - _squares(weights, side) for side in (cells.x, cells.y))
        # n^2 minus sum t^2 is twice P - T, since n and the sum of t are the same.
        return _ratio(2 * order, np.sqrt(x) * np.sqrt(y))

    return Figure(cells.terms, of, cells.used, NO_PAIR, CONSTANT)


def pearson_of_units(one: ArrayLike, other: ArrayLike) -> tuple[Estimate, PValue]:
    """Pearson's r over independent units, such as evaluators, with one number each on both sides.

    The 95 % interval is tanh(atanh r +/- 1.96 / sqrt(n - 3)) (Fisher 1921); p is two-sided, from
    Student's t with n - 2 degrees of freedom, at least 2 / n! as of all orders. `n` counts the
    units with both numbers. Value and p are None with fewer than 4 of them or if one side is
    constant, the interval alone if r is 1 or -1. Simulated with 4 to 20 units of bivariate normal
    numbers: 94 to 96 % of the intervals contained r.
    """
    found = pearson(one, other).point()
    return _of_units(found, 1.0, lambda r: _p_of_t(r, found.n))


def spearman_of_units(one: ArrayLike, other: ArrayLike) -> tuple[Estimate, PValue]:
    """Spearman's rho over independent units, as `pearson_of_units`.

    The interval is tanh(atanh rho +/- 1.96 sqrt((1 + rho^2 / 2) / (n - 3))) (Bonett and Wright
    2000); p with up to 8 units is the share of all their orders with a rho as far from 0, with more
    it is as for Pearson's r. Simulated as there with 5 to 20 units: 95 to 99 % contained rho; with
    4 nearly all.
    """
    x, y, used = paired_values(one, other)
    found = spearman(x, y).point()

    def p_of(rho: float) -> float:
        if found.n > MOST_ORDERED:
            return _p_of_t(rho, found.n)
        return _p_of_orders(rank_values(x[used]), rank_values(y[used]))

    variance = 1 + (found.value or 0.0) ** 2 / 2
    return _of_units(found, variance, p_of)


def rank_values(values: ArrayLike) -> Floats:
    """The rank of each value among all, from 1, with mean ranks for ties; nan stays nan and has no
    rank. The same shape as `values`.

    SciPy's `rankdata` does the same, but importing `scipy.stats` takes half a second, which each
    command and each job of a worker would spend.
    """
    found = np.array(values, dtype=float)
    there = ~np.isnan(found)
    _, place, count = np.unique(found[there], return_inverse=True, return_counts=True)
    found[there] = (np.cumsum(count) - (count - 1) / 2)[place]
    return found


def _of_units(
    found: Estimate, variance: float, p_of: Callable[[float], float]
) -> tuple[Estimate, PValue]:
    """Add interval and p to a correlation; `variance` is that of its atanh, times n - 3."""
    if found.n < FEWEST_UNITS:
        return Estimate(None, None, None, found.n, FEW_UNITS), PValue(None, found.n, FEW_UNITS)
    if found.value is None:
        return found, PValue(None, found.n, found.reason)
    p = PValue(p_of(found.value), found.n)
    if 1 - abs(found.value) < _ROUNDING:
        return Estimate(found.value, None, None, found.n, IN_STEP), p
    middle, half = atanh(found.value), ndtri(0.975) * sqrt(variance / (found.n - 3))
    return Estimate(found.value, tanh(middle - half), tanh(middle + half), found.n), p


def _p_of_t(r: float, n: int) -> float:
    least = 2 / factorial(n)
    if 1 - abs(r) < _ROUNDING:
        return least
    return max(least, 2 * float(stdtr(n - 2, -abs(r) * sqrt((n - 2) / (1 - r * r)))))


def _p_of_orders(x: Floats, y: Floats) -> float:
    """The share of all orders of y whose sum of products with x is as far from its mean."""
    x, y = x - x.mean(), y - y.mean()
    sums = np.abs(y[_orders(len(y))] @ x)
    return float((sums >= abs(x @ y) - _ROUNDING * (x @ x)).mean())


@cache
def _orders(n: int) -> Ints:
    return np.array(list(permutations(range(n))))


@dataclass(frozen=True, slots=True, eq=False)
class _PairCells:
    """The distinct pairs of values; `x` and `y` are the positions of the values in ascending order.

    `terms` is items x cells and marks each item's cell, so its sum over a draw is the weight of
    each cell.
    """

    x: Ints
    y: Ints
    terms: csr_array
    used: NDArray[np.bool_]


def _cells(one: ArrayLike, other: ArrayLike) -> _PairCells:
    x, y, used = paired_values(one, other)
    (_, x_level), (_, y_level) = (np.unique(side[used], return_inverse=True) for side in (x, y))
    # One number per pair: sorting rows takes ten times as long.
    many = int(y_level.max(initial=0)) + 1
    pairs, cell = np.unique(x_level * many + y_level, return_inverse=True)
    starts = np.concatenate([[0], np.cumsum(used)])
    terms = csr_array((np.ones(len(cell)), cell, starts), shape=(len(used), len(pairs)))
    return _PairCells(*np.divmod(pairs, many), terms, used)


def _ranks(weights: Floats, level: Ints) -> Floats:
    """Mid-ranks of the cells in each draw minus their mean: (weight below - weight above) / 2."""
    of_level = _by_level(weights, level)
    upto = np.cumsum(of_level, axis=1)
    below, above = upto - of_level, upto[:, -1:] - upto
    return ((below - above) / 2)[:, level]


def _squares(weights: Floats, level: Ints) -> Floats:
    return (_by_level(weights, level) ** 2).sum(axis=1)


def _by_level(weights: Floats, level: Ints) -> Floats:
    order = np.argsort(level, kind="stable")
    starts = np.flatnonzero(np.diff(level[order], prepend=-1))
    return np.add.reduceat(weights[:, order], starts, axis=1)


def _concordance_passes(few: Ints, many: Ints) -> list[Callable[[Floats], Floats]]:
    """Pairs in the same order minus pairs in the opposite order, split by binary digits of `few`.

    There is one pass for each binary digit of `few`: among cells with equal higher digits, those
    with a 1 are above those with a 0. The work grows with log2 of the number of values, not with
    its square.
    """
    digits = range(int(few.max(initial=0)).bit_length())
    return [_concordance_pass(few, many, digit) for digit in digits]


def _concordance_pass(few: Ints, many: Ints, digit: int) -> Callable[[Floats], Floats]:
    higher = few >> (digit + 1)
    order = np.lexsort((many, higher))
    upper = ((few[order] >> digit) & 1).astype(bool)
    group, tied = higher[order], many[order]
    new_group = np.diff(group, prepend=-1) != 0
    first, last = _runs(new_group)
    same, beyond = _runs(new_group | (np.diff(tied, prepend=-1) != 0))
    first, last, same, beyond = (place[upper] for place in (first, last, same, beyond))

    def balance(weights: Floats) -> Floats:
        sorted_by = weights[:, order]
        lower = np.cumsum(np.where(upper, 0, sorted_by), axis=1)
        lower = np.concatenate([np.zeros((len(weights), 1)), lower], axis=1)
        below = lower[:, same] - lower[:, first]
        above = lower[:, last] - lower[:, beyond]
        return (sorted_by[:, upper] * (below - above)).sum(axis=1)

    return balance


def _runs(new: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """For each position, the start and end of the run that contains it; `new` marks the starts of
    runs."""
    starts = np.flatnonzero(new)
    run = np.cumsum(new) - 1
    return starts[run], np.append(starts[1:], len(new))[run]


def _shifted(values: Floats, used: NDArray[np.bool_]) -> Floats:
    """The values minus the value nearest to their mean, and 0 for unused items.

    Sums of squares stay small, and a constant side is exactly 0.
    """
    there = values[used]
    middle = there[np.argmin(np.abs(there - there.mean()))] if there.size else 0.0
    return np.where(used, values - middle, 0.0)


def _spread(squares: Floats, square: Floats) -> Floats:
    left = squares - square
    return np.where(left > _ROUNDING * squares, left, 0.0)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """part / whole, clipped to -1 to 1; nan where whole is 0."""
    found = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0)
    return np.clip(found, -1.0, 1.0)
