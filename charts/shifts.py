"""Chart of how figures change, such as with another prompt: one row per detector, next to 0."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import marks
from charts.axes import Axis

MARK_HEIGHT = 15


@dataclass(frozen=True, slots=True)
class Shift:
    """A difference in percentage points of one `figure`, over `n` items. `low` and `high` are None
    if there is no interval."""

    of: str
    figure: str
    points: float
    low: float | None
    high: float | None
    n: int


def draw_shifts(found: Sequence[Shift], *, title: str) -> dict[str, Any]:
    """Return a Vega-Lite specification: rows from top to bottom in the given order, with one mark
    per figure.

    The axis is symmetric around 0 and reaches as far as the values.
    """
    rows = list(dict.fromkeys(one.of for one in found))
    figures = list(dict.fromkeys(one.figure for one in found))
    axis = _axis(found)
    shared = {
        "y": marks.row_axis("of", rows),
        "yOffset": alt.YOffset("figure:N", sort=figures),
        "color": marks.colour_by("figure", figures, "Figure"),
        "tooltip": [
            alt.Tooltip("of:N", title="Of"),
            alt.Tooltip("figure:N", title="Figure"),
            *marks.interval_tooltip("points", title, axis.tooltip),
        ],
    }
    line = alt.MarkDef("rule", **marks.DASHED)
    ends = {"x": marks.x_channel("low", title, axis), "x2": alt.X2("high")}
    layers = [
        marks.layer(line, data=marks.rows([{"at": 0}]), x=marks.x_channel("at", title, axis)),
        marks.intervals(shared | ends, strokeWidth=2, opacity=0.75),
        marks.layer(
            alt.MarkDef("point", filled=True, size=75, opacity=1),
            **shared,
            x=marks.x_channel("points", title, axis),
            shape=marks.shape_by("figure", figures, "Figure"),
        ),
    ]
    step = max(32, MARK_HEIGHT * len(figures) + 14)
    return marks.draw(layers, map(marks.as_row, found), max(1, len(rows)) * step)


def _axis(found: Sequence[Shift]) -> Axis:
    """Return an axis that is symmetric around 0 and ends at the next multiple of ten beyond the
    farthest end, at most at 100."""
    ends = [end for one in found for end in (one.points, one.low, one.high) if end is not None]
    most = min(100, 10 * (1 + max((abs(end) for end in ends), default=0) // 10))
    return Axis(-most, most, "+d", "+.1f")
