"""Correlations above, mean ratings below: two plots one above the other that share the groups on
their x axis (study 003, figures 1 to 3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import marks
from charts.axes import RATES, Axis
from charts.paired import SIDES, draw_side

HEIGHTS = (150, 190)


@dataclass(frozen=True, slots=True)
class GroupRating:
    """The `n` items of a group that a run and people rated: their correlation with its interval,
    None if it is not defined, and both means as fractions of 1, None without a scale."""

    run: str
    group: str
    correlation: float | None
    low: float | None
    high: float | None
    people: float | None
    evaluator: float | None
    n: int


def draw_upright(found: Sequence[GroupRating], *, title: str, axis: Axis) -> dict[str, Any]:
    """Return a Vega-Lite specification: groups from left to right in both plots, in the given
    order, with one mark per run. A group without a correlation has a gap above its means."""
    runs = list(dict.fromkeys(one.run for one in found))
    groups = list(dict.fromkeys(one.group for one in found))
    shared = {
        "xOffset": alt.XOffset("run:N", sort=marks.whole(runs)),
        "color": marks.colour_by("run", runs, "Run"),
        "tooltip": _tooltip(title, axis),
    }
    above, below = ({**shared, "x": _x(groups, labels=labels)} for labels in (False, True))
    ends = {"y": marks.y_channel("low", title, axis), "y2": alt.Y2("high")}
    y = marks.y_channel("correlation", title, axis)
    people, evaluator = (marks.y_channel(side.lower(), "Mean rating, scaled") for side in SIDES)
    rule = alt.MarkDef("rule", strokeWidth=2, opacity=0.6, aria=False)
    dot = alt.MarkDef("point", filled=True, size=55, opacity=1)
    both = marks.where("people", "evaluator")
    correlations = [
        marks.intervals(above | ends, strokeWidth=2, opacity=0.6),
        marks.layer(dot, marks.where("correlation"), **above, y=y),
    ]
    means = [
        marks.layer(rule, both, **below, y=people, y2=alt.Y2("evaluator")),
        draw_side(SIDES[0], 80, marks.where("people"), **below, y=people),
        draw_side(SIDES[1], 25, marks.where("evaluator"), **below, y=evaluator),
    ]
    plots = [
        alt.LayerSpec(layer=layers, width="container", height=height)
        for layers, height in zip((correlations, means), HEIGHTS, strict=True)
    ]
    rows = marks.rows(map(marks.as_row, found))
    return marks.to_spec(alt.TopLevelVConcatSpec(vconcat=plots, data=rows, spacing=12))


def _x(groups: Sequence[str], *, labels: bool) -> alt.X:
    axis = alt.Axis(
        labels=labels,
        ticks=False,
        labelAngle=-90,
        labelLimit=150,
        # On a phone, only as many groups are named as there is room for.
        labelOverlap="parity",
        labelPadding=6,
    )
    return alt.X("group:N", title=None, scale=alt.Scale(domain=marks.whole(groups)), axis=axis)


def _tooltip(title: str, axis: Axis) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("run:N", title="Run"),
        alt.Tooltip("group:N", title="Items"),
        *marks.interval_tooltip("correlation", title, axis.tooltip),
        alt.Tooltip("people:Q", title="People", format=RATES.tooltip),
        alt.Tooltip("evaluator:Q", title="Evaluator", format=RATES.tooltip),
    ]
