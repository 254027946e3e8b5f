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
_KINDS = (GROUP, POOLED, MEAN)
_SHAPES = ("circle", "diamond", "triangle-down")
_COLOURS = (marks.COLOURS[-1], marks.COLOURS[0], marks.COLOURS[1])
# Above, on and below the middle of the row, so that marks with equal values do not overlap.
_OFFSETS = {POOLED: -10, GROUP: 0, MEAN: 10}


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
    marked = [marks.as_row(one) for one in found]
    layers = alt.layer(
        *(layer for kind in _KINDS for layer in _kind_layers(marked, kind, rows, title, axis))
    )
    height = max(1, len(rows)) * marks.row_height(rows, ROW_HEIGHT)
    sized = layers.properties(width="container", height=height)
    return marks.to_spec(sized)


def _kind_layers(
    marked: list[dict[str, Any]], kind: str, rows: Sequence[str], title: str, axis: Axis
) -> list[alt.Chart]:
    of_kind = [one for one in marked if one["kind"] == kind]
    base = alt.Chart(marks.rows(of_kind)).encode(
        y=marks.row_axis("row", rows, scale=alt.Scale(domain=marks.whole(rows))),
        color=_encode_kind(alt.Color, _COLOURS),
        tooltip=_tooltip(title, axis),
    )
    place = _OFFSETS[kind]
    size, depth = (45, 0.75) if kind == GROUP else (95, 1)
    dots = base.mark_point(filled=kind != GROUP, size=size, opacity=depth, yOffset=place)
    shown = dots.encode(
        x=marks.x_channel("value", title, axis), shape=_encode_kind(alt.Shape, _SHAPES)
    )
    rules = marks.intervals(base, strokeWidth=2, yOffset=place)
    # The intervals of many groups would hide each other; the tooltip and the table show them.
    of_all = (
        [rules.encode(x=marks.x_channel("low", title, axis), x2=alt.X2("high"))]
        if kind != GROUP
        else []
    )
    return [*of_all, shown]


def _encode_kind(channel: Any, of: Sequence[str]) -> Any:
    legend = alt.Legend(**marks.LEGEND_BELOW, direction="vertical", title=None, symbolOpacity=1)
    scale = alt.Scale(domain=list(_KINDS), range=list(of))
    return channel("kind:N", scale=scale, legend=legend)


def _tooltip(title: str, axis: Axis) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("row:N", title="Run"),
        alt.Tooltip("group:N", title="Over"),
        *marks.interval_tooltip("value", title, axis.tooltip),
    ]
