"""Forecast when the work will be done, from the daily output so far."""

from collections.abc import Callable, Sequence
from math import ceil, sqrt
from statistics import fmean, stdev

from scipy.special import stdtrit

from stats.estimates import Estimate

# A forecast beyond this many days is of no use.
MOST_DAYS = 3650


def days_left(counts: Sequence[int], left: int, level: float = 0.95) -> Estimate:
    """Forecast how many days the `left` remaining pieces will take at the pace so far, rounded up.

    `counts` is the output of each day, including days with none. The value is left / mean. The
    interval is a prediction interval: n further days yield n times the mean, plus or minus
    t sqrt(s^2 (n + n^2 / N)), with s the standard deviation of the N days and t the Student
    quantile with N - 1 degrees of freedom, since both the future days and the mean are uncertain.
    `low` is the first day on which the upper end reaches `left`, `high` the first on which the
    lower end does. A day more than about ten years away is None, with a reason. `n` counts days.

    Without days, or without output on any of them, there is no value. With one day there is no
    interval. If nothing is left, the result is 0 days.
    """
    if left <= 0:
        return Estimate(0, 0, 0, len(counts))
    if not counts:
        return Estimate(None, None, None, 0, "no full day yet")
    if not any(counts):
        return Estimate(None, None, None, len(counts), "nothing was done on these days")
    value = ceil(left / fmean(counts) - 1e-9)
    if len(counts) == 1:
        return Estimate(value, None, None, 1, "one full day")
    spread = stdev(counts) * float(stdtrit(len(counts) - 1, (1 + level) / 2))

    def reach(sign: int, days: int) -> float:
        width = spread * sqrt(days + days * days / len(counts))
        return days * fmean(counts) + sign * width

    low = _first_day(lambda days: reach(1, days) >= left - 1e-9)
    high = _first_day(lambda days: reach(-1, days) >= left - 1e-9)
    reason = "" if high is not None else "at the slowest it would not end"
    return Estimate(value, low, high, len(counts), reason)


def _first_day(holds: Callable[[int], bool]) -> int | None:
    """Find the first day on which `holds` is true by bisection; it must stay true afterwards."""
    before, after = 0, 1
    while not holds(after):
        before, after = after, 2 * after
        if before > MOST_DAYS:
            return None
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (before, middle) if holds(middle) else (middle, after)
    return after
