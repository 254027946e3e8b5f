"""Dot charts of rates with intervals, and stacked bar charts, as several pages draw them."""

from collections.abc import Iterable, Mapping, Sequence

from charts.axes import INTERVAL_ENDS, RATES, Axis
from judging.results.cells import Row
from judging.results.page_parts import ChartSpec
from stats.estimates import Estimate

# A chart with more bars is unreadable; the table has all of them.
MOST_BARS = 60
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
    ends: tuple[str, str] = INTERVAL_ENDS,
    limits: Mapping[str, float] | None = None,
    limit_title: str = "",
    runs: Sequence[str] = (),
) -> ChartSpec | None:
    """Draw a dot chart; `title` names the rate, and faint dots are published figures for
    comparison. The result is None if no dot has a value.

    Values that are not rates need their own `axis`, and lines that are not 95 % intervals need
    names of their `ends`. `limits` draws a line across the rows of these groups, which
    `limit_title` names. `runs` is the order of the runs where the dots have another.
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
    spec = detection.draw_dot_plot(
        points,
        title=title,
        series=series,
        axis=axis,
        ends=ends,
        limits=limits,
        limit_title=limit_title,
        runs=runs,
    )
    return ChartSpec(spec, caption)


def read_estimate(row: Row, name: str) -> Estimate:
    """A figure of a row with its interval, and the reason of that figure if its table has one."""
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    return Estimate(value, low, high, row["n"], row.get(f"{name}_reason") or "")


def list_ends(found: Iterable[Estimate]) -> list[float]:
    """List all values and interval ends that an axis must cover; None is left out."""
    every = (end for one in found for end in (one.value, one.low, one.high))
    return [end for end in every if end is not None]


def draw_bars(
    rows: Sequence[tuple[str, Row]], kinds: Mapping[str, str], title: str, caption: str
) -> ChartSpec | None:
    """Draw a stacked bar for each row, given with the name of its bar; `kinds` are the titles of
    its parts by column. The result is None without rows."""
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import stacked

    parts = [
        stacked.BarPart(group, kinds[name], row[name])
        for group, row in rows[:MOST_BARS]
        for name in kinds
    ]
    if not parts:
        return None
    drawn = stacked.draw_stacked_bars(parts, kinds=list(kinds.values()), title=title)
    return ChartSpec(drawn, caption + cut_note(len(rows)))


def cut_note(number: int) -> str:
    """A note for the caption if the chart shows only the first rows."""
    if number <= MOST_BARS:
        return ""
    return f" The first {MOST_BARS} of {number} rows; choose another grouping to see the rest."
