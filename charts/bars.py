"""Bar chart with one bar per group. Each bar starts at 0 and has its number at the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import marks

BAR_HEIGHT = 24
# The pixels for the number after the longest bar.
NUMBER_ROOM = 56


@dataclass(frozen=True, slots=True)
class Bar:
    """The value of a group over `n` units; `said` is the value as text. The chart says what the
    units are."""

    group: str
    value: float
    said: str
    n: float


def draw_bars(found: Sequence[Bar], *, title: str, counted: str = "Items") -> dict[str, Any]:
    """Return a Vega-Lite specification with the groups from top to bottom in the given order.

    Shares are fractions of 1. `title` says what a bar shows, and `counted` says what `n` counts.
    Values below 0 are not supported.
    """
    top = max((one.value for one in found), default=0) or 1
    shared = {
        "y": marks.row_axis("group", [one.group for one in found]),
        "x": alt.X(
            "value:Q",
            scale=alt.Scale(
                domainMin=0,
                domainMax=alt.ExprRef(f"{top} * width / (width - {NUMBER_ROOM})"),
                nice=False,
            ),
            axis=alt.Axis(labels=False, ticks=False, grid=False, title=title, titlePadding=8),
        ),
        "tooltip": [
            alt.Tooltip("group:N", title="Of"),
            alt.Tooltip("said:N", title=title),
            alt.Tooltip("n:Q", title=counted, format=",.3~f"),
        ],
    }
    bar = alt.MarkDef(
        "bar", color=marks.COLOURS[0], opacity=0.75, height=alt.RelativeBandSize(0.66)
    )
    number = alt.MarkDef("text", align="left", dx=5, fontSize=11)
    layers = [
        marks.layer(bar, **shared),
        marks.layer(number, **shared, text=alt.Text("said:N")),
    ]
    two_lines = any(": " in one.group for one in found)
    height = max(1, len({one.group for one in found})) * (
        BAR_HEIGHT + 10 if two_lines else BAR_HEIGHT
    )
    return marks.draw(layers, map(marks.as_row, found), height)
