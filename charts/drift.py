"""Drift chart: the share of changed outcomes in each canary run, with its interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import altair as alt

from charts import marks

HEIGHT = 160


@dataclass(frozen=True, slots=True)
class CanaryRun:
    """The share of items whose outcome differs from the first run, as a fraction of the `n`
    compared items.

    `low` and `high` are None if the interval is not defined.
    """

    run: str
    asked: datetime
    share: float
    low: float | None
    high: float | None
    n: int


def draw_drift(askings: Sequence[CanaryRun]) -> dict[str, Any]:
    """Return a Vega-Lite specification: the share of changed outcomes, with runs in the given
    order."""
    rows = [{**marks.as_row(one), "asked": one.asked.isoformat()} for one in askings]
    axis = alt.Axis(labelAngle=0, labelOverlap=True)
    shared = {"x": alt.X("run:N", title=None, sort=None, axis=axis), "tooltip": _tooltip()}
    dot = alt.MarkDef("point", filled=True, size=75, opacity=1, color=marks.COLOURS[0])
    ends = {"y": _share("low"), "y2": alt.Y2("high")}
    layers = [
        marks.intervals(shared | ends, strokeWidth=2, opacity=0.75, color=marks.COLOURS[0]),
        marks.layer(dot, **shared, y=_share("share")),
    ]
    return marks.draw(layers, rows, HEIGHT)


def _share(field: str) -> alt.Y:
    axis = alt.Axis(format="%", tickCount=5, title="Changed")
    return alt.Y(f"{field}:Q", scale=marks.SHARES, axis=axis)


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("run:N", title="Run"),
        alt.Tooltip("asked:T", title="Asked", format="%d %b %Y, %H:%M"),
        *marks.interval_tooltip("share", "Changed"),
    ]
