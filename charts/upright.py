"""Correlations above, mean ratings below: two plots one above the other that share the groups on
their x axis (study 003, figures 1 to 3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import marks
from charts.axes import RATES, Axis
from charts.paired import SIDES

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
    base = alt.Chart(marks.rows(map(marks.as_row, found))).encode(
        xOffset=alt.XOffset("run:N", sort=runs), color=marks.colour_by("run", runs, "Run")
    )
    above, below = (
        base.encode(x=_x(groups, labels=labels), tooltip=_tooltip(title, axis))
        for labels in (False, True)
    )
    dots = above.transform_filter("isValid(datum.correlation)").mark_point(
        filled=True, size=55, opacity=1
    )
    ends = marks.y_channel("low", title, axis), alt.Y2("high")
    correlations = alt.layer(
        marks.intervals(above, strokeWidth=2, opacity=0.6).encode(y=ends[0], y2=ends[1]),
        dots.encode(y=marks.y_channel("correlation", title, axis)),
    )
    between = below.transform_filter("isValid(datum.people) && isValid(datum.evaluator)")
    means = alt.layer(
        between.mark_rule(strokeWidth=2, opacity=0.6, aria=False).encode(
            y=marks.y_channel("people", "Mean rating, scaled"), y2=alt.Y2("evaluator")
        ),
        *(_side(below, side) for side in SIDES),
    )
    plots = (
        plot.properties(width="container", height=height)
        for plot, height in zip((correlations, means), HEIGHTS, strict=True)
    )
    return marks.to_spec(alt.vconcat(*plots, spacing=12))


def _x(groups: Sequence[str], *, labels: bool) -> alt.X:
    across = alt.X("group:N", title=None).scale(domain=marks.whole(groups))
    # On a phone, only as many groups are named as there is room for.
    return across.axis(
        labels=labels,
        ticks=False,
        labelAngle=-90,
        labelLimit=150,
        labelOverlap="parity",
        labelPadding=6,
    )


def _side(base: alt.Chart, name: str) -> alt.Chart:
    field, is_evaluator = name.lower(), name == SIDES[1]
    scale = alt.Scale(domain=list(SIDES), range=["circle", "square"])
    legend = alt.Legend(orient="bottom", direction="horizontal", title=None)
    # A square fits into a circle, so that both are visible when the means are equal.
    size = 25 if is_evaluator else 80
    there = base.transform_filter(f"isValid(datum.{field})").transform_calculate(side=f"'{name}'")
    drawn = there.mark_point(size=size, filled=is_evaluator, opacity=1, strokeWidth=2)
    return drawn.encode(
        y=marks.y_channel(field, "Mean rating, scaled"),
        shape=alt.Shape("side:N", scale=scale, legend=legend),
    )


def _tooltip(title: str, axis: Axis) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("run:N", title="Run"),
        alt.Tooltip("group:N", title="Items"),
        *marks.interval_tooltip("correlation", title, axis.tooltip),
        alt.Tooltip("people:Q", title="People", format=RATES.tooltip),
        alt.Tooltip("evaluator:Q", title="Evaluator", format=RATES.tooltip),
    ]
