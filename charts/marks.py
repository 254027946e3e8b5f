"""Shared parts of all charts: colours and shapes of series, axes, tooltips, and export as JSON.

Colours of axes and texts are not set here: the page sets them from its style sheet, so that a
chart follows the light or dark theme.

Charts are built from the classes of Altair's schema, without `alt.Chart` and its methods, each of
which copies the whole chart: that takes ten times as long.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import altair as alt
from altair.utils import schemapi

from charts.axes import INTERVAL_ENDS, RATES, Axis


def x_channel(field: str, title: str, axis: Axis = RATES) -> alt.X:
    """Return an x channel: values from left to right, over the whole axis."""
    return alt.X(
        f"{field}:Q",
        scale=alt.Scale(domain=[axis.low, axis.high], nice=False),
        axis=alt.Axis(format=axis.ticks, tickCount=5, title=title, titlePadding=8),
    )


def y_channel(field: str, title: str, axis: Axis = RATES) -> alt.Y:
    """Return a y channel: values from the bottom up, over the whole axis."""
    return alt.Y(
        f"{field}:Q",
        scale=alt.Scale(domain=[axis.low, axis.high], nice=False),
        axis=alt.Axis(format=axis.ticks, tickCount=5, title=title),
    )


def interval_tooltip(
    value: str,
    title: str,
    written: str = RATES.tooltip,
    ends: tuple[str, str] = INTERVAL_ENDS,
) -> list[alt.Tooltip]:
    """Return the tooltip of a value, with the interval and n of its row, in a Vega number
    format."""
    low, high = ends
    return [
        alt.Tooltip(f"{value}:Q", title=title, format=written),
        alt.Tooltip("low:Q", title=low, format=written),
        alt.Tooltip("high:Q", title=high, format=written),
        alt.Tooltip("n:Q", title="n", format=","),
    ]


# Only tests validate specifications against the schema. Validating the values of all marks for each
# request would take as long as the rest of the page.
schemapi.disable_debug_mode()

# Fractions of 1, from 0 to 100 %.
SHARES = alt.Scale(domain=[0, 1], nice=False)
# Each colour has a contrast of at least 3 : 1 on the light and the dark page (WCAG 1.4.11).
# Neighbours differ in lightness or in the blue-yellow direction, a difference that nearly everybody
# can see.
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

# Colours for ordered categories, from dark to light, so that neighbours also differ in black and
# white. Each is given with a text colour that can be read on it. Half of the colours have too
# little contrast with the page on their own, so they have an outline.
ORDERED_COLOURS = ("#123f63", "#2b7fc4", "#7fb3e0", "#cfe3f5", "#f4efe4")
TEXT_COLOURS = ("#ffffff", "#ffffff", "#10161c", "#10161c", "#10161c")
OUTLINE = "#7c7f83"
# The line that marks are compared with, such as a threshold or 0.
DASHED: dict[str, Any] = {"strokeDash": [4, 4], "color": COLOURS[-1]}
# Names are split into lines, since Vega draws a list of texts as lines. With a bottom baseline, the
# first line is above the position, so that two lines are centred.
LINE_BREAK, LINE_HEIGHT = ": ", 14
_LINES = f"split(datum.label, '{LINE_BREAK}')"
_HAS_LINES = f"indexof(datum.label, '{LINE_BREAK}') >= 0"
# Names take a limited part of the page's width, so that marks have room on a phone; a file has no
# page.
_WIDEST = 260
_WIDTH = f"(containerSize()[0] || {2 * _WIDEST})"
_PART = f"min({_WIDEST}, max(110, 0.4 * {_WIDTH}))"
# A legend starts where the marks start, and its labels end at the edge of the page.
LEGEND_BELOW: dict[str, Any] = {
    "orient": "bottom",
    "labelLimit": alt.ExprRef(f"min(420, max(120, 0.6 * {_WIDTH} - 30))"),
}
# The approximate width of one digit of a number on a mark.
CHARACTER_WIDTH = 7


class _Whole:
    """Values that Altair passes on as they are. It converts each value of a plain list, which takes
    15 ms for the rows of a chart with 400 of them."""

    # Altair takes what has a schema and `to_dict` for an object of its own.
    _schema: ClassVar[dict[str, Any]] = {"type": "array"}

    def __init__(self, values: Iterable[Any]) -> None:
        self.values = list(values)

    def to_dict(self, *args: Any, **kwargs: Any) -> list[Any]:
        return self.values


def as_row(found: Any) -> dict[str, Any]:
    """The fields of a dataclass, whose values are no containers: `asdict` would copy each of them,
    and takes five times as long."""
    return {name: getattr(found, name) for name in found.__dataclass_fields__}


def rows(values: Iterable[Mapping[str, Any]]) -> alt.Data:
    """Return the rows of a chart."""
    return alt.Data(values=_Whole(values))


def whole(names: Sequence[str]) -> Any:
    """Return names for Altair to pass on as they are."""
    return _Whole(names)


def row_axis(field: str, names: Sequence[str], **more: Any) -> alt.Y:
    """Return an axis of groups from top to bottom in the given order, with names centred vertically
    in their rows."""
    up = max(0, count_lines(names) - 2) * LINE_HEIGHT // 2
    axis = alt.Axis(
        labelLimit=alt.ExprRef(_PART),
        labelPadding=8,
        ticks=False,
        domain=False,
        labelExpr=_LINES,
        labelBaseline=when(_HAS_LINES, "bottom", "middle"),
        labelOffset=-up,
    )
    return alt.Y(f"{field}:N", title=None, sort=whole(names), axis=axis, **more)


def count_lines(names: Iterable[str]) -> int:
    """Count the lines of the name that has the most lines."""
    return max((1 + name.count(LINE_BREAK) for name in names), default=1)


def row_height(names: Iterable[str], least: int) -> int:
    """Return the row height that fits the name with the most lines, and at least `least`."""
    return max(least, LINE_HEIGHT * count_lines(names) + 6)


def intervals(
    channels: Mapping[str, Any], *transforms: Any, low: str = "low", **look: Any
) -> alt.UnitSpec:
    """Return lines for the intervals of the rows that have `low`.

    They are hidden from screen readers, since the marks already say everything, and a layer without
    lines would be an image without a name.
    """
    return layer(alt.MarkDef("rule", aria=False, **look), *transforms, where(low), **channels)


# The first part of a run's name is its number.
RUN_NUMBER_EXPR = "split(datum.run, ' · ')[0]"


def colours_repeat(names: Sequence[str]) -> bool:
    """True if colours repeat. In greyscale, shapes then do not distinguish all series."""
    return len(names) > len(COLOURS)


def label_marks(
    channels: Mapping[str, Any], *transforms: Any, word: str, at: str, end: float, up: int = 0
) -> alt.UnitSpec:
    """Write a word next to each mark, `up` points higher: on the right of the mark, or on its left
    if the mark's value `at` is greater than `end`."""
    is_left = f"datum.{at} > {end}"
    mark = alt.MarkDef(
        "text",
        fontSize=10,
        limit=130,
        aria=False,
        align=alt.ExprRef(f"{is_left} ? 'right' : 'left'"),
        dx=alt.ExprRef(f"{is_left} ? -8 : 8"),
        dy=-up,
    )
    return layer(mark, *transforms, **channels, text=alt.Text(f"{word}:N"))


def when(test: str, there: Any, elsewhere: Any) -> dict[str, Any]:
    """Return one value where the test, a Vega expression, is true, and another value elsewhere."""
    return {"condition": {"test": test, "value": there}, "value": elsewhere}


def hide_if_narrow(width: str, characters: int | str) -> Any:
    """Hide a number if its mark is too narrow for the number; both arguments are Vega
    expressions."""
    wide = f"{width} >= 4 + {CHARACTER_WIDTH} * {characters}"
    return when(wide, 1, 0)


def colour_by(field: str, names: Sequence[str], title: str) -> alt.Color:
    """Distinguish series by colour. Use it with `shape_by`, so that series also differ in
    greyscale.

    After 8 series the colours repeat, each with a different shape. A series without a name has no
    legend.
    """
    colours = [COLOURS[n % len(COLOURS)] for n in range(len(names))]
    scale = alt.Scale(domain=whole(names), range=whole(colours))
    return alt.Color(f"{field}:N", title=title, scale=scale, legend=_legend(names))


def shape_by(field: str, names: Sequence[str], title: str) -> alt.Shape:
    """Distinguish series by shape, in the same order as `colour_by`."""
    shapes = [SHAPES[(n + n // len(COLOURS)) % len(SHAPES)] for n in range(len(names))]
    scale = alt.Scale(domain=whole(names), range=whole(shapes))
    return alt.Shape(f"{field}:N", title=title, scale=scale, legend=_legend(names))


def colour_in_order(field: str, kinds: Sequence[str], title: str) -> alt.Color:
    """Distinguish ordered categories by lightness, in their order; at most 5 categories."""
    scale = alt.Scale(domain=list(kinds), range=list(_pick_apart(ORDERED_COLOURS, len(kinds))))
    columns = alt.ExprRef(f"{_WIDTH} < 500 ? 1 : 3")
    legend = alt.Legend(**LEGEND_BELOW, direction="horizontal", columns=columns)
    return alt.Color(f"{field}:N", title=title or None, scale=scale, legend=legend)


def text_colour_by(field: str, kinds: Sequence[str]) -> alt.Color:
    """Return the text colour on each of the colours of `colour_in_order`."""
    scale = alt.Scale(domain=list(kinds), range=list(_pick_apart(TEXT_COLOURS, len(kinds))))
    return alt.Color(f"{field}:N", scale=scale, legend=None)


def _pick_apart(of: Sequence[str], number: int) -> list[str]:
    """Pick `number` of the colours, spread as far apart as possible."""
    if number < 2:
        return list(of[:number])
    return [of[round(place * (len(of) - 1) / (number - 1))] for place in range(number)]


def _legend(names: Sequence[str]) -> alt.Legend | None:
    if not any(names):
        return None
    # Otherwise a legend would be as pale as the intervals.
    return alt.Legend(**LEGEND_BELOW, direction="vertical", symbolOpacity=1)


def layer(
    mark: alt.MarkDef, *transforms: Any, data: Any = alt.Undefined, **channels: Any
) -> alt.UnitSpec:
    """Return a layer: marks with their channels, such as `x` or `color`, after the transforms; with
    `data`, the layer has rows of its own."""
    encoding = alt.Encoding(**channels)
    changes = list(transforms) or alt.Undefined
    return alt.UnitSpec(mark=mark, data=data, transform=changes, encoding=encoding)


def where(*fields: str) -> alt.FilterTransform:
    """Return a transform that keeps the rows that have all these fields."""
    return alt.FilterTransform(filter=" && ".join(f"isValid(datum.{one})" for one in fields))


def calculate(field: str, expression: str) -> alt.CalculateTransform:
    """Return a transform that adds a field to each row."""
    return alt.CalculateTransform(**{"calculate": expression, "as": field})


def convert_once(layers: Iterable[alt.UnitSpec]) -> Any:
    """Return layers that many panels have: Altair would convert them for each panel."""
    return _Whole(layer.to_dict(validate=False) for layer in layers)


def draw(
    layers: Sequence[alt.UnitSpec], values: Iterable[Mapping[str, Any]], height: float, **more: Any
) -> dict[str, Any]:
    """Return the specification of a plot of layers over these rows, as wide as the page."""
    data = rows(values)
    return to_spec(
        alt.TopLevelLayerSpec(layer=layers, data=data, width="container", height=height, **more)
    )


def to_spec(chart: alt.TopLevelSpec) -> dict[str, Any]:
    """Return the chart as a Vega-Lite specification that refers to no other hosts and has no style
    of its own."""
    return chart.to_dict(validate=schemapi.DEBUG_MODE)
