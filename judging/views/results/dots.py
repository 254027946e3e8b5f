"""Rates with their intervals as a chart: what all pages with such dots share."""

from collections.abc import Iterable

from judging.views.results.kinds import Drawing
from stats.estimates import Estimate

# A series, a group on the axis, and the rate of that series there.
Dot = tuple[str, str, Estimate]


def drawing(
    dots: Iterable[Dot],
    *,
    title: str,
    caption: str,
    series: str = "Run",
    faint: Iterable[Dot] = (),
) -> Drawing | None:
    """`title` says what the rate is, `faint` dots are not ours; None where none has a value."""
    # Altair takes a second to import; nothing else should wait for it.
    from charts import detection

    points = [
        detection.Point(name, group, one.value, one.low, one.high, one.n, is_faint)
        for drawn, is_faint in ((dots, False), (faint, True))
        for name, group, one in drawn
        if one.value is not None
    ]
    if not points:
        return None
    return Drawing(detection.dot_plot(points, title=title, series=series), caption)
