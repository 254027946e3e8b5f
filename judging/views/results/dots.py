"""Rates with their intervals as a chart: what all pages with such dots share."""

from collections.abc import Iterable

from judging.views.results.kinds import Drawing
from stats.estimates import Estimate

# A series, a group on the axis, and the rate of that series there.
Dot = tuple[str, str, Estimate]


def drawing(
    dots: Iterable[Dot], *, title: str, caption: str, series: str = "Run"
) -> Drawing | None:
    """`title` says what the rate is; None where none of them has a value."""
    # Altair takes a second to import; nothing else should wait for it.
    from charts import detection

    points = [
        detection.Point(name, group, one.value, one.low, one.high, one.n)
        for name, group, one in dots
        if one.value is not None
    ]
    if not points:
        return None
    return Drawing(detection.dot_plot(points, title=title, series=series), caption)
