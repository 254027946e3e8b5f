"""Chart of slices that are missed more often: for each slice its rate and the rate of the other
items."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

import altair as alt

from charts import marks

ROW_HEIGHT = 40
TITLE = "Undetected rate"
RATE, REST = "in the slice", "in the other items"


@dataclass(frozen=True, slots=True)
class SliceRates:
    """The rate of one slice and the rate of the other items, as fractions of 1, over `n` and
    `rest_n` items. Both have the ends of their intervals (None without an interval)."""

    name: str
    rate: float
    low: float | None
    high: float | None
    rest: float
    rest_low: float | None
    rest_high: float | None
    n: int
    rest_n: int
    blind: bool


def draw_slices(found: Sequence[SliceRates]) -> dict[str, Any]:
    """Return a Vega-Lite specification: slices from top to bottom in the given order.

    A shaded band reaches from the rate of the other items to the rate of the slice; for a blind
    spot, it is darker. The marks at its ends differ in shape, so that they also differ in
    greyscale.
    """
    names = [one.name for one in found]
    spec = deepcopy(_draw_layers(marks.count_lines(names)))
    spec["data"] = {"values": [marks.as_row(one) for one in found]}
    spec["height"] = max(1, len(found)) * marks.row_height(names, ROW_HEIGHT)
    for layer in spec["layer"]:
        layer["encoding"]["y"]["sort"] = names
    return spec


@cache
def _draw_layers(name_lines: int) -> dict[str, Any]:
    """The chart of slices whose names have so many lines, without its rows. Altair takes 80 ms for
    forty rows, since it copies them for each part of a chart."""
    base = alt.Chart(alt.Data(values=[])).encode(
        y=marks.row_axis("name", [marks.LINE_BREAK * (name_lines - 1)]), tooltip=_tooltip()
    )
    deep = marks.when(alt.OpacityValue, "datum.blind", 0.45, 0.15)
    band = base.mark_bar(height=14, color=marks.COLOURS[1])
    layers = alt.layer(
        band.encode(x=marks.x_channel("rest", TITLE), x2=alt.X2("rate"), opacity=deep),
        *_side(base, ("rest", "rest_low", "rest_high"), REST, yoffset=7),
        *_side(base, ("rate", "low", "high"), RATE, yoffset=-7),
    )
    return marks.to_spec(layers.properties(width="container"))


def _side(base: alt.Chart, names: tuple[str, str, str], side: str, yoffset: int) -> list[alt.Chart]:
    value, low, high = names
    told = [RATE, REST]
    of = base.transform_calculate(side=f"'{side}'")
    colour = marks.colour_by("side", told, TITLE)
    rules = marks.intervals(of, low, strokeWidth=2, yOffset=yoffset)
    dots = of.mark_point(filled=True, size=75, opacity=1, yOffset=yoffset)
    return [
        rules.encode(x=marks.x_channel(low, TITLE), x2=high, color=colour),
        dots.encode(
            x=marks.x_channel(value, TITLE),
            color=colour,
            shape=marks.shape_by("side", told, TITLE),
        ),
    ]


def _tooltip() -> list[alt.Tooltip]:
    rest = {"rest": REST, "rest_low": "95 % from ", "rest_high": "to "}
    return [
        alt.Tooltip("name:N", title="Slice"),
        *marks.interval_tooltip("rate", RATE),
        *(alt.Tooltip(f"{name}:Q", title=title, format=".1%") for name, title in rest.items()),
        alt.Tooltip("rest_n:Q", title="n of the other items", format=","),
    ]
