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
    shared = {
        "y": marks.row_axis("group", groups),
        "yOffset": alt.YOffset("run:N", sort=runs),
        "tooltip": _tooltip(title, series, axis, ends),
        "color": marks.colour_by("run", runs, series),
    }
    spans = {
        "x": marks.x_channel("low", title, axis),
        "x2": alt.X2("high"),
        "opacity": marks.when("datum.faint", 0.4, 0.75),
        "strokeDash": marks.when("datum.faint", [3, 3], [1, 0]),
    }
    layers = [
        marks.intervals(shared | spans, strokeWidth=2),
        marks.layer(
            alt.MarkDef("point", size=MARK_SIZE, filled=True),
            **shared,
            x=marks.x_channel("rate", title, axis),
            shape=marks.shape_by("run", runs, series),
            opacity=marks.when("datum.faint", 0.5, 1),
        ),
    ]
    if marks.colours_repeat(runs):
        layers.append(_numbers(shared, title, axis))
    height = _height(groups, runs)
    if limits:
        size = height // len(groups) - 8
        layers.append(_limits(limits, groups, title, limit_title, axis, size))
    return marks.draw(layers, map(marks.as_row, points), height)


def _limits(
    limits: Mapping[str, float],
    groups: Sequence[str],
    title: str,
    limit_title: str,
    axis: Axis,
    size: int,
) -> alt.UnitSpec:
    values = [{"group": group, "limit": limits[group]} for group in groups if group in limits]
    return marks.layer(
        alt.MarkDef("tick", thickness=2, size=size, color=marks.COLOURS[-1]),
        data=marks.rows(values),
        x=marks.x_channel("limit", title, axis),
        y=marks.row_axis("group", groups),
        tooltip=[
            alt.Tooltip("group:N", title="Items"),
            alt.Tooltip("limit:Q", title=limit_title, format=axis.tooltip),
        ],
    )


def _numbers(shared: Mapping[str, Any], title: str, axis: Axis) -> alt.UnitSpec:
    """Return labels to the right of each point and its interval, or to the left near the end of the
    axis."""
    end = axis.low + 0.9 * (axis.high - axis.low)
    return marks.label_marks(
        {**shared, "x": marks.x_channel("beside", title, axis)},
        marks.calculate("word", marks.RUN_NUMBER_EXPR),
        marks.calculate("reach", "isValid(datum.high) ? datum.high : datum.rate"),
        marks.calculate(
            "beside", f"datum.reach > {end} && isValid(datum.low) ? datum.low : datum.reach"
        ),
        word="word",
        at="reach",
        end=end,
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
