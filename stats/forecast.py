"""When will it be done? From what was done on the days before."""

from collections.abc import Callable, Sequence
from math import ceil, sqrt
from statistics import fmean, stdev

from scipy.special import stdtrit

from stats.estimates import Estimate

# Past this many days a forecast says nothing that anyone could use.
MOST_DAYS = 3650


def days_left(counts: Sequence[int], left: int, level: float = 0.95) -> Estimate:
    """How many days `left` more will take, if days go on as they did; whole days, rounded up.

    `counts` holds what was done on each day, the days without anything among them. The value is
    left / mean. The interval is that of prediction: n further days bring n times the mean, give
    or take t sqrt(s^2 (n + n^2 / N)) with s the deviation of the N days and t Student's quantile
    of N - 1 degrees of freedom, since neither the days to come nor the mean are known. `low` is
    the first day on which the upper end reaches `left`, `high` the first on which the lower end
    does; None with a reason where it never does, within ten years. `n` counts days.

    Without days, or if nothing was done on any, there is no value. With one day there is no
    interval. Nothing left takes 0 days.
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
    """The first day on which it holds. It holds ever after: bisected."""
    before, after = 0, 1
    while not holds(after):
        before, after = after, 2 * after
        if before > MOST_DAYS:
            return None
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (before, middle) if holds(middle) else (middle, after)
    return after
