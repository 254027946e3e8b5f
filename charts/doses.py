"""Dose-response chart: one line per run over the number of errors, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import marks
from charts.axes import Axis

HEIGHT = 320
# The share of a step that stays empty, so that the marks of one dose are seen as a group.
DOSE_GAP = 0.6


@dataclass(frozen=True, slots=True)
class DosePoint:
    """The response of one run on `n` items with `dose` errors. `low` and `high` are None if there
    is no interval."""

    run: str
    dose: int
    response: float
    low: float | None
    high: float | None
    n: int


def draw_lines(
    found: Sequence[DosePoint], *, title: str, axis: Axis, series: str = "Run"
) -> dict[str, Any]:
    """Return a Vega-Lite specification: one line per run, with doses from left to right. Doses are
    equally spaced, since each is twice the one before. The marks of the runs are side by side, so
    that their intervals do not overlap.

    `series` says what the lines are if they are not runs.
    """
    runs = list(dict.fromkeys(one.run for one in found))
    doses = sorted({one.dose for one in found})
    shared = {
        "x": alt.X(
            "dose:O",
            sort=doses,
            scale=alt.Scale(paddingInner=DOSE_GAP, paddingOuter=DOSE_GAP / 2),
            axis=alt.Axis(title="Errors in the answer", labelAngle=0),
        ),
        "xOffset": alt.XOffset("run:N", sort=runs),
        "color": marks.colour_by("run", runs, series),
        "tooltip": _tooltip(title, axis, series),
    }
    y = marks.y_channel("response", title, axis)
    ends = {"y": marks.y_channel("low", title, axis), "y2": alt.Y2("high")}
    line = alt.MarkDef("line", strokeWidth=1.5, opacity=0.6, aria=False)
    point = alt.MarkDef("point", size=75, filled=True, opacity=1)
    layers = [
        marks.layer(line, **shared, y=y),
        marks.intervals(shared | ends, strokeWidth=2, opacity=0.75),
        marks.layer(point, **shared, y=y, shape=marks.shape_by("run", runs, series)),
    ]
    return marks.draw(layers, map(marks.as_row, found), HEIGHT)


def _tooltip(title: str, axis: Axis, series: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("run:N", title=series),
        alt.Tooltip("dose:O", title="Errors"),
        *marks.interval_tooltip("response", title, axis.tooltip),
    ]
