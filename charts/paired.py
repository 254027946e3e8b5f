"""Chart of paired means: each run in a group has one line, from people's mean to the evaluator's
mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import marks

ROW_HEIGHT = 17
SIDES = ("People", "Evaluator")


@dataclass(frozen=True, slots=True)
class MeanPair:
    """Two means over the same `n` items, as fractions of 1."""

    run: str
    group: str
    people: float
    evaluator: float
    n: int


def draw_pairs(pairs: Sequence[MeanPair], *, title: str) -> dict[str, Any]:
    """Return a Vega-Lite specification: groups from top to bottom, with one line per run in each
    group.

    People's means are open circles and evaluators' means are filled squares, so that no colour is
    needed to distinguish them.
    """
    runs = list(dict.fromkeys(one.run for one in pairs))
    groups = list(dict.fromkeys(one.group for one in pairs))
    base = alt.Chart(marks.rows(map(marks.as_row, pairs))).encode(
        y=marks.row_axis("group", groups),
        yOffset=alt.YOffset("run:N", sort=runs),
        color=marks.colour_by("run", runs, "Run"),
        tooltip=_tooltip(),
    )
    between = base.mark_rule(strokeWidth=2, opacity=0.6)
    layers = alt.layer(
        between.encode(x=marks.x_channel("people", title), x2=alt.X2("evaluator")),
        _side(base, "people", title),
        _side(base, "evaluator", title),
    )
    height = max(1, len(groups)) * max(36, ROW_HEIGHT * len(runs) + 14)
    return marks.to_spec(layers.properties(width="container", height=height))


def _side(base: alt.Chart, field: str, title: str) -> alt.Chart:
    name = field.capitalize()
    scale = alt.Scale(domain=list(SIDES), range=["circle", "square"])
    legend = alt.Legend(orient="bottom", direction="horizontal", title=None)
    is_evaluator = name == SIDES[1]
    # A square fits into a circle, so that both are visible when the means are equal.
    size = 45 if is_evaluator else 150
    drawn = base.mark_point(size=size, filled=is_evaluator, opacity=1, strokeWidth=2)
    named = drawn.transform_calculate(side=f"'{name}'")
    return named.encode(
        x=marks.x_channel(field, title), shape=alt.Shape("side:N", scale=scale, legend=legend)
    )


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("run:N", title="Run"),
        alt.Tooltip("group:N", title="Items"),
        alt.Tooltip("people:Q", title="People", format=".1%"),
        alt.Tooltip("evaluator:Q", title="Evaluator", format=".1%"),
        alt.Tooltip("n:Q", title="n", format=","),
    ]
