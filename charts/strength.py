"""Chart of precision and recall of evaluators against an outside rating: a panel for each group."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import marks

HEIGHT = 380
# `charts.js` reduces the columns to those that fit.
PANEL_SIZE, PANEL_COLUMNS = 230, 3
# Part of the range of ratings that stays free at both ends.
MARGIN = 0.06


@dataclass(frozen=True, slots=True)
class RatedPoint:
    """A figure of one evaluator in one group, a fraction of 1, with the ends of its interval (None
    without one), and the rating of the evaluator's model."""

    group: str
    figure: str
    evaluator: str
    rating: float
    value: float
    low: float | None
    high: float | None
    n: int


def draw_strength(found: Sequence[RatedPoint], *, rating: str) -> dict[str, Any]:
    """Return a Vega-Lite specification: ratings from left to right, and for each evaluator a mark
    per figure with its interval. Groups have panels of their own, with the same axes."""
    by_group: dict[str, list[RatedPoint]] = {}
    for one in found:
        by_group.setdefault(one.group, []).append(one)
    figures = list(dict.fromkeys(one.figure for one in found))
    ratings = [one.rating for one in found]
    spare = MARGIN * (max(ratings) - min(ratings)) or 1
    ends = [min(ratings) - spare, max(ratings) + spare]
    x = alt.X(
        "rating:Q",
        scale=alt.Scale(domain=ends, nice=False, zero=False),
        axis=alt.Axis(title=rating, tickCount=5, titlePadding=8),
    )
    layers = _layers(figures, x)
    if len(by_group) == 1:
        return marks.draw(layers, map(marks.as_row, found), HEIGHT)
    same = marks.convert_once(layers)
    panels = [
        alt.LayerSpec(
            layer=same,
            data=marks.rows(map(marks.as_row, of_group)),
            title=alt.TitleParams(group, fontSize=12, fontWeight="normal", limit=PANEL_SIZE + 40),
            width=PANEL_SIZE,
            height=PANEL_SIZE,
        )
        for group, of_group in by_group.items()
    ]
    return marks.to_spec(alt.TopLevelConcatSpec(concat=panels, columns=PANEL_COLUMNS))


def _layers(figures: Sequence[str], x: alt.X) -> list[alt.UnitSpec]:
    colour = marks.colour_by("figure", figures, "Figure")
    shared = {"x": x, "color": colour, "tooltip": _tooltip()}
    ends = {"y": marks.y_channel("low", "Precision and recall"), "y2": alt.Y2("high")}
    return [
        marks.intervals(shared | ends, strokeWidth=1.5, opacity=0.4),
        marks.layer(
            alt.MarkDef("point", size=75, filled=True, opacity=1),
            **shared,
            y=marks.y_channel("value", "Precision and recall"),
            shape=marks.shape_by("figure", figures, "Figure"),
        ),
    ]


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("evaluator:N", title="Evaluator"),
        alt.Tooltip("group:N", title="Items"),
        alt.Tooltip("rating:Q", title="Rating"),
        alt.Tooltip("figure:N", title="Figure"),
        *marks.interval_tooltip("value", "Value"),
    ]
