"""What all charts share: colours and shapes that tell runs apart, and how a chart leaves as JSON.

Colours of axes and texts are not set here: the page sets them from its style sheet, so that a
chart follows light and dark.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt

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
ORDERED = ("#123f63", "#2b7fc4", "#7fb3e0", "#cfe3f5", "#f4efe4")
INKS = ("#ffffff", "#ffffff", "#10161c", "#10161c", "#10161c")
OUTLINE = "#7c7f83"
# Vega draws a list of texts as lines.
TWO_LINES = "split(datum.label, ': ')"


def colour(field: str, names: Sequence[str], title: str) -> alt.Color:
    """Tells series apart by colour; use it together with `shape`, so that grey will do.

    Past 8 series the colours return, each with another shape than before.
    """
    colours = [COLOURS[n % len(COLOURS)] for n in range(len(names))]
    scale = alt.Scale(domain=list(names), range=colours)
    return alt.Color(f"{field}:N", title=title, scale=scale, legend=_legend())


def shape(field: str, names: Sequence[str], title: str) -> alt.Shape:
    """Tells series apart by shape, in step with `colour`."""
    shapes = [SHAPES[(n + n // len(COLOURS)) % len(SHAPES)] for n in range(len(names))]
    scale = alt.Scale(domain=list(names), range=shapes)
    return alt.Shape(f"{field}:N", title=title, scale=scale, legend=_legend())


def ordered(field: str, kinds: Sequence[str], title: str) -> alt.Color:
    """Kinds by lightness, in their order; at most 5."""
    scale = alt.Scale(domain=list(kinds), range=list(_spread(ORDERED, len(kinds))))
    legend = alt.Legend(orient="bottom", direction="horizontal", columns=3, labelLimit=420)
    return alt.Color(f"{field}:N", title=title or None, scale=scale, legend=legend)


def on_ordered(field: str, kinds: Sequence[str]) -> alt.Color:
    """The ink on each of these kinds."""
    scale = alt.Scale(domain=list(kinds), range=list(_spread(INKS, len(kinds))))
    return alt.Color(f"{field}:N", scale=scale, legend=None)


def _spread(of: Sequence[str], number: int) -> list[str]:
    """So many of them, as far apart as can be."""
    if number < 2:
        return list(of[:number])
    return [of[round(place * (len(of) - 1) / (number - 1))] for place in range(number)]


def _legend() -> alt.Legend:
    return alt.Legend(orient="bottom", direction="vertical", labelLimit=420)


def as_spec(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """The chart as a Vega-Lite specification that names no other host and no look of its own."""
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("$schema", None)
    spec.pop("config", None)
    return spec
