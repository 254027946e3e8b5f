"""Chart of slices that are missed more often: for each slice its rate and the rate of the other
items."""

from collections.abc import Sequence
from dataclasses import dataclass
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
    shared = {"y": marks.row_axis("name", names), "tooltip": _tooltip()}
    band = alt.MarkDef("bar", height=14, color=marks.COLOURS[1])
    deep = marks.when("datum.blind", 0.45, 0.15)
    x = marks.x_channel("rest", TITLE)
    layers = [
        marks.layer(band, **shared, x=x, x2=alt.X2("rate"), opacity=deep),
        *_side(shared, ("rest", "rest_low", "rest_high"), REST, place=7),
        *_side(shared, ("rate", "low", "high"), RATE, place=-7),
    ]
    height = max(1, len(found)) * marks.row_height(names, ROW_HEIGHT)
    return marks.draw(layers, map(marks.as_row, found), height)


def _side(
    shared: dict[str, Any], names: tuple[str, str, str], side: str, place: int
) -> list[alt.UnitSpec]:
    value, low, high = names
    sides = [RATE, REST]
    of_side = marks.calculate("side", f"'{side}'")
    coloured = {**shared, "color": marks.colour_by("side", sides, TITLE)}
    ends = {"x": marks.x_channel(low, TITLE), "x2": alt.X2(high)}
    dot = alt.MarkDef("point", filled=True, size=75, opacity=1, yOffset=place)
    return [
        marks.intervals(coloured | ends, of_side, low=low, strokeWidth=2, yOffset=place),
        marks.layer(
            dot,
            of_side,
            **coloured,
            x=marks.x_channel(value, TITLE),
            shape=marks.shape_by("side", sides, TITLE),
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
