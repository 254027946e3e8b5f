"""Chart of a figure within groups and over all items. Each run has the figures of the groups, the
figure over all items, and the mean over groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import marks
from charts.axes import Axis

ROW_HEIGHT = 40
GROUP, POOLED, MEAN = "One group", "All items pooled", "Mean over groups"
_SHAPES = ("circle", "diamond", "triangle-down")
_COLOURS = (marks.COLOURS[-1], marks.COLOURS[0], marks.COLOURS[1])
# Above, on and below the middle of the row, so that marks with equal values do not overlap.
_OFFSETS = {GROUP: 0, POOLED: -10, MEAN: 10}


@dataclass(frozen=True, slots=True)
class SpreadMark:
    """One figure in a row. `group` names what the figure is over, and `n` is the number of its
    items or groups."""

    row: str
    kind: str
    group: str
    value: float
    low: float | None
    high: float | None
    n: int


def draw_spread(found: Sequence[SpreadMark], *, title: str, axis: Axis) -> dict[str, Any]:
    """Return a Vega-Lite specification: rows from top to bottom. Each row has the figure of every
    group, the figure over all items with its interval, and the mean over groups."""
    rows = list(dict.fromkeys(one.row for one in found))
    shared = {
        "y": marks.row_axis("row", rows, scale=alt.Scale(domain=marks.whole(rows))),
        "color": _encode_kind(alt.Color, _COLOURS),
        "tooltip": _tooltip(title, axis),
    }
    ends = {"x": marks.x_channel("low", title, axis), "x2": alt.X2("high")}
    shape, x = _encode_kind(alt.Shape, _SHAPES), marks.x_channel("value", title, axis)
    layers = []
    for kind, place in _OFFSETS.items():
        of_kind = alt.FilterTransform(filter=f"datum.kind == '{kind}'")
        size, depth = (45, 0.75) if kind == GROUP else (95, 1)
        # The intervals of many groups would hide each other; the tooltip and the table show them.
        if kind != GROUP:
            layers.append(marks.intervals(shared | ends, of_kind, strokeWidth=2, yOffset=place))
        filled = kind != GROUP
        dot = alt.MarkDef("point", filled=filled, size=size, opacity=depth, yOffset=place)
        layers.append(marks.layer(dot, of_kind, **shared, x=x, shape=shape))
    height = max(1, len(rows)) * marks.row_height(rows, ROW_HEIGHT)
    return marks.draw(layers, map(marks.as_row, found), height)


def _encode_kind(channel: Any, of: Sequence[str]) -> Any:
    legend = alt.Legend(**marks.LEGEND_BELOW, direction="vertical", title=None, symbolOpacity=1)
    scale = alt.Scale(domain=list(_OFFSETS), range=list(of))
    return channel("kind:N", scale=scale, legend=legend)


def _tooltip(title: str, axis: Axis) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("row:N", title="Run"),
        alt.Tooltip("group:N", title="Over"),
        *marks.interval_tooltip("value", title, axis.tooltip),
    ]
