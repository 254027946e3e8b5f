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


def _legend() -> alt.Legend:
    return alt.Legend(orient="bottom", direction="vertical", labelLimit=420)


def as_spec(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """The chart as a Vega-Lite specification that names no other host and no look of its own."""
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("$schema", None)
    spec.pop("config", None)
    return spec
