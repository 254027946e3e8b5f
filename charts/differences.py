"""Chart of differences between runs: each pair of runs has one mark with its interval, next to
0."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import marks
from charts.axes import Axis

ROW_HEIGHT = 32
TITLE = "Difference in points"
AXIS = Axis(-100, 100, "+.0f", "+.1f")


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between two rates in percentage points, or of J, over `n` items. `low` and
    `high` are None if there is no interval."""

    pair: str
    points: float
    low: float | None
    high: float | None
    n: int


def draw_differences(
    found: Sequence[Difference], title: str = TITLE, axis: Axis = AXIS
) -> dict[str, Any]:
    """Return a Vega-Lite specification: pairs from top to bottom in the given order. Differences
    that are not in points need their own `title` and `axis`."""
    shared = {
        "y": marks.row_axis("pair", [one.pair for one in found]),
        "tooltip": [
            alt.Tooltip("pair:N", title="Pair"),
            *marks.interval_tooltip("points", title, axis.tooltip),
        ],
    }

    def x(field: str) -> alt.X:
        return marks.x_channel(field, title, axis)

    line = alt.MarkDef("rule", **marks.DASHED)
    dot = alt.MarkDef("point", filled=True, size=75, opacity=1, color=marks.COLOURS[0])
    ends = {"x": x("low"), "x2": alt.X2("high")}
    layers = [
        marks.layer(line, data=marks.rows([{"at": 0}]), x=x("at")),
        marks.intervals(shared | ends, strokeWidth=2, opacity=0.75, color=marks.COLOURS[0]),
        marks.layer(dot, **shared, x=x("points")),
    ]
    step = marks.row_height((one.pair for one in found), ROW_HEIGHT)
    return marks.draw(layers, map(marks.as_row, found), max(1, len(found)) * step)
