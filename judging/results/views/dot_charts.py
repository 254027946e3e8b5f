"""Dot charts of rates with intervals, shared by several pages."""

from collections.abc import Iterable

from charts.axes import RATES, Axis
from judging.results.views.page_parts import ChartSpec
from stats.estimates import Estimate

# A series, a group on the axis, and the value of that series for the group.
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
    """Draw a dot chart; `title` names the rate, and faint dots are published figures for
    comparison. The result is None if no dot has a value.

    Values that are not rates need their own `axis`.
    """
    # Imported here, since Altair takes a second and nothing else should wait for it.
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
    """List all values and interval ends that an axis must cover; None is left out."""
    every = (end for one in found for end in (one.value, one.low, one.high))
    return [end for end in every if end is not None]
