"""What all charts share: colours and shapes that tell runs apart, and how a chart leaves as JSON.

Colours of axes and texts are not set here: the page sets them from its style sheet, so that a
chart follows light and dark.

Values along an axis, and what is said of one beside its mark.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import altair as alt
from altair.utils import schemapi

from charts.axes import RATES, Axis


def x_channel(field: str, title: str, axis: Axis = RATES) -> alt.X:
    """Values from left to right, over the whole axis."""
    return (
        alt.X(f"{field}:Q")
        .scale(domain=[axis.low, axis.high], nice=False)
        .axis(format=axis.ticks, tickCount=5, title=title, titlePadding=8)
    )


def y_channel(field: str, title: str, axis: Axis = RATES) -> alt.Y:
    """Values from the bottom up, over the whole axis."""
    return (
        alt.Y(f"{field}:Q")
        .scale(domain=[axis.low, axis.high], nice=False)
        .axis(format=axis.ticks, tickCount=5, title=title)
    )


def interval_tooltip(value: str, title: str, written: str = RATES.tooltip) -> list[alt.Tooltip]:
    """What is said of a value with the interval and the n of its row, in a format of Vega's."""
    return [
        alt.Tooltip(f"{value}:Q", title=title, format=written),
        alt.Tooltip("low:Q", title="95 % from", format=written),
        alt.Tooltip("high:Q", title="to", format=written),
        alt.Tooltip("n:Q", title="n", format=","),
    ]


# Only tests check a specification against the schema: to check the values of every mark again for
# every reader takes as long as all the rest of a page.
schemapi.disable_debug_mode()

# Each at least 3 : 1 against the light and the dark sheet (WCAG 1.4.11). Neighbours differ in
# lightness or in the blue-yellow direction, which nearly every eye sees.
COLOURS = (
    "#2b7fc4",
    "#c8650f",
    "#0f8f7a",
    "#b0559f",
    "#8a7d1c",
    "#d0483e",
    "#6b74d6",
    "#7c7f83",
)
SHAPES = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
)

# Kinds in an order, from dark to light, so that neighbours differ in print without colour, too;
# each with the ink that can be read on it. Half of them stand out from no sheet, hence the outline.
ORDERED_COLOURS = ("#123f63", "#2b7fc4", "#7fb3e0", "#cfe3f5", "#f4efe4")
TEXT_COLOURS = ("#ffffff", "#ffffff", "#10161c", "#10161c", "#10161c")
OUTLINE = "#7c7f83"
# A name breaks into lines here. Vega draws a list of texts as lines, and what stands on its bottom
# has its first line above its place: two lines are then in the middle of it.
LINE_BREAK, LINE_HEIGHT = ": ", 14
_LINES = f"split(datum.label, '{LINE_BREAK}')"
_HAS_LINES = f"indexof(datum.label, '{LINE_BREAK}') >= 0"
# Names keep to their part of the page, so that marks have room on a telephone; a file has no page.
_WIDEST = 260
_WIDTH = f"(containerSize()[0] || {2 * _WIDEST})"
_PART = f"min({_WIDEST}, max(110, 0.4 * {_WIDTH}))"
# A legend begins where the marks do, and its names end with the page.
LEGEND_BELOW: dict[str, Any] = {
    "orient": "bottom",
    "labelLimit": alt.ExprRef(f"min(420, max(120, 0.6 * {_WIDTH} - 30))"),
}
# A digit of a number on a mark is some so wide.
CHARACTER_WIDTH = 7


def row_axis(field: str, names: Sequence[str]) -> alt.Y:
    """Groups from the top down in their order, each with its name in the middle of its row."""
    middle = alt.condition(_HAS_LINES, alt.value("bottom"), alt.value("middle"))
    up = max(0, count_lines(names) - 2) * LINE_HEIGHT // 2
    return alt.Y(f"{field}:N", title=None, sort=list(names)).axis(
        labelLimit=alt.ExprRef(_PART),
        labelPadding=8,
        ticks=False,
        domain=False,
        labelExpr=_LINES,
        labelBaseline=middle,
        labelOffset=-up,
    )


def count_lines(names: Iterable[str]) -> int:
    """How many lines the name with the most takes."""
    return max((1 + name.count(LINE_BREAK) for name in names), default=1)


def row_height(names: Iterable[str], least: int) -> int:
    """How high a row must be for the name with the most lines, and at `least`."""
    return max(least, LINE_HEIGHT * count_lines(names) + 6)


def intervals(base: alt.Chart, low: str = "low", **look: Any) -> alt.Chart:
    """Rules for the rows in which `low` is there.

    The marks say it all to who hears the chart; a layer without a rule would be a picture without
    a name.
    """
    return base.transform_filter(f"isValid(datum.{low})").mark_rule(aria=False, **look)


# What comes first in the name of a run is its number.
RUN_NUMBER_EXPR = "split(datum.run, ' · ')[0]"


def colours_repeat(names: Sequence[str]) -> bool:
    """Whether colours return, so that in grey shapes do not tell all series apart."""
    return len(names) > len(COLOURS)


def label_marks(base: alt.Chart, word: str, at: str, end: float, up: int = 0) -> alt.Chart:
    """A word beside each mark, `up` so many points: on its right, and on its left where its value
    `at` is past `end`."""
    is_left = f"datum.{at} > {end}"
    return base.mark_text(
        fontSize=10,
        limit=130,
        aria=False,
        align=alt.ExprRef(f"{is_left} ? 'right' : 'left'"),
        dx=alt.ExprRef(f"{is_left} ? -8 : 8"),
        dy=-up,
    ).encode(text=alt.Text(f"{word}:N"))


def when(channel: Callable[..., Any], test: str, there: Any, elsewhere: Any) -> Any:
    """A channel's value where the test, a Vega expression, holds, and the value elsewhere.

    Channels are named by their class throughout: Altair tries a hundred schemas to tell what a
    mere condition or name is meant to be, 3 to 6 ms for each.
    """
    return channel(elsewhere, condition={"test": test, "value": there})


def hide_if_narrow(width: str, characters: int | str) -> Any:
    """Hides a number where what it is of is too narrow for it; both are Vega expressions."""
    wide = f"{width} >= 4 + {CHARACTER_WIDTH} * {characters}"
    return when(alt.OpacityValue, wide, 1, 0)


def colour_by(field: str, names: Sequence[str], title: str) -> alt.Color:
    """Tells series apart by colour; use it together with `shape`, so that grey will do.

    Past 8 series the colours return, each with another shape than before. A series without a name
    has no legend.
    """
    colours = [COLOURS[n % len(COLOURS)] for n in range(len(names))]
    scale = alt.Scale(domain=list(names), range=colours)
    return alt.Color(f"{field}:N", title=title, scale=scale, legend=_legend(names))


def shape_by(field: str, names: Sequence[str], title: str) -> alt.Shape:
    """Tells series apart by shape, in step with `colour`."""
    shapes = [SHAPES[(n + n // len(COLOURS)) % len(SHAPES)] for n in range(len(names))]
    scale = alt.Scale(domain=list(names), range=shapes)
    return alt.Shape(f"{field}:N", title=title, scale=scale, legend=_legend(names))


def colour_in_order(field: str, kinds: Sequence[str], title: str) -> alt.Color:
    """Kinds by lightness, in their order; at most 5."""
    scale = alt.Scale(domain=list(kinds), range=list(_pick_apart(ORDERED_COLOURS, len(kinds))))
    columns = alt.ExprRef(f"{_WIDTH} < 500 ? 1 : 3")
    legend = alt.Legend(**LEGEND_BELOW, direction="horizontal", columns=columns)
    return alt.Color(f"{field}:N", title=title or None, scale=scale, legend=legend)


def text_colour_by(field: str, kinds: Sequence[str]) -> alt.Color:
    """The ink on each of these kinds."""
    scale = alt.Scale(domain=list(kinds), range=list(_pick_apart(TEXT_COLOURS, len(kinds))))
    return alt.Color(f"{field}:N", scale=scale, legend=None)


def _pick_apart(of: Sequence[str], number: int) -> list[str]:
    """So many of them, as far apart as can be."""
    if number < 2:
        return list(of[:number])
    return [of[round(place * (len(of) - 1) / (number - 1))] for place in range(number)]


def _legend(names: Sequence[str]) -> alt.Legend | None:
    if not any(names):
        return None
    # Else a legend is as pale as the intervals are.
    return alt.Legend(**LEGEND_BELOW, direction="vertical", symbolOpacity=1)


def to_spec(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """The chart as a Vega-Lite specification that names no other host and no look of its own."""
    spec: dict[str, Any] = chart.to_dict(validate=schemapi.DEBUG_MODE)
    spec.pop("$schema", None)
    spec.pop("config", None)
    return spec
