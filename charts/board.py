"""Chart of categories: each category has one mark with its interval, next to the threshold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import marks


@dataclass(frozen=True, slots=True)
class ShareInterval:
    """A share of a group's items, as a fraction of 1. `low` and `high` are None if there is no
    interval."""

    group: str
    share: float
    low: float | None
    high: float | None
    n: int


def draw_shares(found: Sequence[ShareInterval], *, title: str, bar: float) -> dict[str, Any]:
    """Return a Vega-Lite specification: groups from top to bottom in the given order, with a line
    at the threshold `bar`."""
    shared = {
        "y": marks.row_axis("group", [one.group for one in found]),
        "tooltip": [
            alt.Tooltip("group:N", title="Group"),
            alt.Tooltip("share:Q", title=title, format=".1%"),
            alt.Tooltip("low:Q", title="95 % from", format=".1%"),
            alt.Tooltip("high:Q", title="to", format=".1%"),
            alt.Tooltip("n:Q", title="n", format=","),
        ],
    }
    line = alt.MarkDef("rule", **marks.DASHED)
    dot = alt.MarkDef("point", filled=True, size=75, opacity=1, color=marks.COLOURS[0])
    ends = {"x": _rate("low", title), "x2": alt.X2("high")}
    layers = [
        marks.layer(line, data=marks.rows([{"bar": bar}]), x=_rate("bar", title)),
        marks.intervals(shared | ends, strokeWidth=2, opacity=0.75, color=marks.COLOURS[0]),
        marks.layer(dot, **shared, x=_rate("share", title)),
    ]
    return marks.draw(layers, map(marks.as_row, found), max(1, len(found)) * 26)


def _rate(field: str, title: str) -> alt.X:
    axis = alt.Axis(format="%", tickCount=5, title=title, titlePadding=8)
    return alt.X(f"{field}:Q", scale=marks.SHARES, axis=axis)
