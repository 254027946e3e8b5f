"""Rates with their intervals as a chart: what all pages with such dots share."""

from collections.abc import Iterable

from charts.axes import RATES, Axis
from judging.results.views.page_parts import ChartSpec
from stats.estimates import Estimate

# A series, a group on the axis, and the rate of that series there.
Dot = tuple[str, str, Estimate]


def draw_dots(
    dots: Iterable[Dot],
    *,
    title: str,
    caption: str,
    series: str = "Run",
    faint: Iterable[Dot] = (),
    axis: Axis = RATES,
) -> ChartSpec | None:
    """`title` says what the rate is, `faint` dots are not ours; None where none has a value.

    What is no rate needs an `axis` of its own.
    """
    # Altair takes a second to import; nothing else should wait for it.
    from charts import detection

    points = [
        detection.RatePoint(name, group, one.value, one.low, one.high, one.n, is_faint)
        for drawn, is_faint in ((dots, False), (faint, True))
        for name, group, one in drawn
        if one.value is not None
    ]
    if not points:
        return None
    return ChartSpec(
        detection.draw_dot_plot(points, title=title, series=series, axis=axis), caption
    )


def list_ends(found: Iterable[Estimate]) -> list[float]:
    """Everything that an axis of these has to have room for; what is None has no place."""
    every = (end for one in found for end in (one.value, one.low, one.high))
    return [end for end in every if end is not None]
