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
    shared = {
        "y": marks.row_axis("group", groups),
        "yOffset": alt.YOffset("run:N", sort=runs),
        "color": marks.colour_by("run", runs, "Run"),
        "tooltip": _tooltip(),
    }
    people, evaluator = marks.x_channel("people", title), marks.x_channel("evaluator", title)
    between = alt.MarkDef("rule", strokeWidth=2, opacity=0.6)
    layers = [
        marks.layer(between, **shared, x=people, x2=alt.X2("evaluator")),
        draw_side(SIDES[0], 150, **shared, x=people),
        draw_side(SIDES[1], 45, **shared, x=evaluator),
    ]
    height = max(1, len(groups)) * max(36, ROW_HEIGHT * len(runs) + 14)
    return marks.draw(layers, map(marks.as_row, pairs), height)


def draw_side(name: str, size: int, *transforms: Any, **channels: Any) -> alt.UnitSpec:
    """Return the marks of one of the SIDES. The evaluator's square must be small enough to fit into
    people's circle, so that both are visible when the means are equal."""
    scale = alt.Scale(domain=list(SIDES), range=["circle", "square"])
    legend = alt.Legend(orient="bottom", direction="horizontal", title=None)
    filled = name == SIDES[1]
    return marks.layer(
        alt.MarkDef("point", size=size, filled=filled, opacity=1, strokeWidth=2),
        *transforms,
        marks.calculate("side", f"'{name}'"),
        **channels,
        shape=alt.Shape("side:N", scale=scale, legend=legend),
    )


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("run:N", title="Run"),
        alt.Tooltip("group:N", title="Items"),
        alt.Tooltip("people:Q", title="People", format=".1%"),
        alt.Tooltip("evaluator:Q", title="Evaluator", format=".1%"),
        alt.Tooltip("n:Q", title="n", format=","),
    ]
