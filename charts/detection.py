"""Dot plot of rates: one mark per run and ability, with its interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import marks
from charts.axes import INTERVAL_ENDS, RATES, Axis

MARK_HEIGHT = 15
MARK_SIZE = 75


@dataclass(frozen=True, slots=True)
class RatePoint:
    """One figure of one run: a fraction of 1, unless the axis says otherwise. `n` is the number of
    items.

    `low` and `high` are None if the interval is not defined. `faint` marks published values.
    """

    run: str
    group: str
    rate: float
    low: float | None
    high: float | None
    n: int
    faint: bool = False


def draw_dot_plot(
    points: Sequence[RatePoint],
    *,
    title: str,
    series: str = "Run",
    axis: Axis = RATES,
    ends: tuple[str, str] = INTERVAL_ENDS,
    limits: Mapping[str, float] | None = None,
    limit_title: str = "",
    runs: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a Vega-Lite specification: groups from top to bottom, and in each group a row of marks
    per run.

    Groups and runs are in the order in which they first occur in `points`, the runs named in `runs`
    first, in that order. `title` says what the
    rate is, `series` what the runs are, and `ends` what the two ends of a line are. Without points,
    the chart has no marks. If there are more runs than colours, the first word of the run is next
    to each mark. `limits` are drawn as a vertical line across the row of each group that has one;
    `limit_title` says what they are.
    """
    drawn = dict.fromkeys(point.run for point in points)
    runs = [run for run in dict.fromkeys([*runs, *drawn]) if run in drawn]
    groups = list(dict.fromkeys(point.group for point in points))
    base = alt.Chart(marks.rows(map(marks.as_row, points))).encode(
        y=marks.row_axis("group", groups),
        yOffset=alt.YOffset("run:N", sort=runs),
        tooltip=_tooltip(title, series, axis, ends),
        color=marks.colour_by("run", runs, series),
    )
    dots = base.mark_point(size=MARK_SIZE, filled=True).encode(
        x=marks.x_channel("rate", title, axis),
        shape=marks.shape_by("run", runs, series),
        opacity=marks.when(alt.OpacityValue, "datum.faint", 0.5, 1),
    )
    numbers = [_numbers(base, title, axis)] if marks.colours_repeat(runs) else []
    height = _height(groups, runs)
    lines = []
    if limits:
        size = height // len(groups) - 8
        lines = [_limits(limits, groups, title, limit_title, axis, size)]
    layers = alt.layer(_intervals(base, title, axis), dots, *numbers, *lines)
    return marks.to_spec(layers.properties(width="container", height=height))


def _intervals(base: alt.Chart, title: str, axis: Axis) -> alt.Chart:
    return marks.intervals(base, strokeWidth=2).encode(
        x=marks.x_channel("low", title, axis),
        x2=alt.X2("high"),
        opacity=marks.when(alt.OpacityValue, "datum.faint", 0.4, 0.75),
        strokeDash=marks.when(alt.StrokeDashValue, "datum.faint", [3, 3], [1, 0]),
    )


def _limits(
    limits: Mapping[str, float],
    groups: Sequence[str],
    title: str,
    limit_title: str,
    axis: Axis,
    size: int,
) -> alt.Chart:
    values = [{"group": group, "limit": limits[group]} for group in groups if group in limits]
    return (
        alt.Chart(marks.rows(values))
        .mark_tick(thickness=2, size=size, color=marks.COLOURS[-1])
        .encode(
            x=marks.x_channel("limit", title, axis),
            y=marks.row_axis("group", groups),
            tooltip=[
                alt.Tooltip("group:N", title="Items"),
                alt.Tooltip("limit:Q", title=limit_title, format=axis.tooltip),
            ],
        )
    )


def _numbers(base: alt.Chart, title: str, axis: Axis) -> alt.Chart:
    """Return labels to the right of each point and its interval, or to the left near the end of the
    axis."""
    end = axis.low + 0.9 * (axis.high - axis.low)
    named = base.transform_calculate(
        word=marks.RUN_NUMBER_EXPR, reach="isValid(datum.high) ? datum.high : datum.rate"
    ).transform_calculate(
        beside=f"datum.reach > {end} && isValid(datum.low) ? datum.low : datum.reach"
    )
    return marks.label_marks(named, "word", "reach", end).encode(
        x=marks.x_channel("beside", title, axis)
    )


def _tooltip(title: str, series: str, axis: Axis, ends: tuple[str, str]) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("run:N", title=series),
        alt.Tooltip("group:N", title="Items"),
        *marks.interval_tooltip("rate", title, axis.tooltip, ends),
    ]


def _height(groups: Sequence[str], runs: Sequence[str]) -> int:
    least = max(36, MARK_HEIGHT * len(runs) + 14)
    return max(1, len(groups)) * marks.row_height(groups, least)
