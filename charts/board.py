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
    groups = [one.group for one in found]
    base = alt.Chart(marks.rows(map(marks.as_row, found))).encode(
        y=marks.row_axis("group", groups),
        tooltip=[
            alt.Tooltip("group:N", title="Group"),
            alt.Tooltip("share:Q", title=title, format=".1%"),
            alt.Tooltip("low:Q", title="95 % from", format=".1%"),
            alt.Tooltip("high:Q", title="to", format=".1%"),
            alt.Tooltip("n:Q", title="n", format=","),
        ],
    )
    rules = marks.intervals(base, strokeWidth=2, opacity=0.75, color=marks.COLOURS[0])
    intervals = rules.encode(x=_rate("low", title), x2=alt.X2("high"))
    dots = base.mark_point(filled=True, size=75, opacity=1, color=marks.COLOURS[0]).encode(
        x=_rate("share", title)
    )
    line = alt.Chart(marks.rows([{"bar": bar}]))
    at_bar = line.mark_rule(strokeDash=[4, 4], color=marks.COLOURS[-1]).encode(
        x=_rate("bar", title)
    )
    layers = alt.layer(at_bar, intervals, dots)
    return marks.to_spec(layers.properties(width="container", height=max(1, len(found)) * 26))


def _rate(field: str, title: str) -> alt.X:
    axis = alt.Axis(format="%", tickCount=5, title=title, titlePadding=8)
    return alt.X(f"{field}:Q", scale=marks.SHARES, axis=axis)
