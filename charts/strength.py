"""Chart of precision and recall of evaluators against an outside rating: a panel for each group."""

from collections.abc import Mapping, Sequence
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
    first = _panel(found if len(by_group) == 1 else next(iter(by_group.values())), figures, x)
    if len(by_group) == 1:
        return marks.to_spec(first.properties(width="container", height=HEIGHT))
    sized = first.properties(
        width=PANEL_SIZE,
        height=PANEL_SIZE,
        title=alt.TitleParams("", fontSize=12, fontWeight="normal", limit=PANEL_SIZE + 40),
    )
    spec = marks.to_spec(alt.concat(sized, columns=PANEL_COLUMNS))
    # Panels differ in their data and title alone, and Altair takes 25 ms for each.
    [panel] = spec["concat"]
    spec["concat"] = [_fill_panel(panel, *one) for one in by_group.items()]
    return spec


def _panel(found: Sequence[RatedPoint], figures: Sequence[str], x: alt.X) -> Any:
    base = alt.Chart(marks.rows(map(marks.as_row, found))).encode(
        x=x, color=marks.colour_by("figure", figures, "Figure"), tooltip=_tooltip()
    )
    y = marks.y_channel("value", "Precision and recall")
    return alt.layer(
        marks.intervals(base, strokeWidth=1.5, opacity=0.4).encode(
            y=marks.y_channel("low", "Precision and recall"), y2=alt.Y2("high")
        ),
        base.mark_point(size=75, filled=True, opacity=1).encode(
            y=y, shape=marks.shape_by("figure", figures, "Figure")
        ),
    )


def _fill_panel(
    panel: Mapping[str, Any], group: str, found: Sequence[RatedPoint]
) -> dict[str, Any]:
    """The same panel for another group."""
    data = {"values": [marks.as_row(one) for one in found]}
    return {
        **panel,
        "title": {**panel["title"], "text": group},
        "layer": [{**layer, "data": data} for layer in panel["layer"]],
    }


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("evaluator:N", title="Evaluator"),
        alt.Tooltip("group:N", title="Items"),
        alt.Tooltip("rating:Q", title="Rating"),
        alt.Tooltip("figure:N", title="Figure"),
        *marks.interval_tooltip("value", "Value"),
    ]
