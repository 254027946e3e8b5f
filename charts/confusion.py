"""Confusion heatmap: how often one annotator says X and another says Y. Darker means more often."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import marks

CELL_SIZE = 40
# The darkest shade on which the text of the page can still be read.
DARKEST = 0.6
SAME, OTHER = "the same", "not the same"


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """The `n` items for which one side says `row` and the other says `column`. `share` is their
    share of the items in the row."""

    row: str
    column: str
    n: int
    share: float


def draw_heatmap(
    found: Sequence[AnswerPair], answers: Sequence[str], *, rows: str, columns: str
) -> dict[str, Any]:
    """Return a Vega-Lite specification: answers in their order, downwards and to the right.

    `rows` and `columns` say whose answers they are. The shade shows the share of the row, and the
    number shows the count. Cells where both sides say the same have a thick border.
    """
    values = [{**marks.as_row(one), "said": _describe_pair(one)} for one in found]
    shared = {
        "x": alt.X(
            "column:N",
            title=columns,
            sort=list(answers),
            axis=alt.Axis(labelAngle=-30, labelLimit=120, orient="top", domain=False, ticks=False),
        ),
        "y": alt.Y(
            "row:N",
            title=rows,
            sort=list(answers),
            axis=alt.Axis(labelLimit=170, domain=False, ticks=False),
        ),
        "tooltip": _tooltip(rows, columns),
    }
    deep = alt.Opacity(
        "share:Q", legend=None, scale=alt.Scale(domain=[0, 1], range=[0.03, DARKEST])
    )
    thick = marks.when(f"datum.said == '{SAME}'", 2.5, 0.5)
    shade = alt.MarkDef("rect", color=marks.COLOURS[0])
    edge = alt.MarkDef("rect", filled=False, stroke=marks.OUTLINE)
    number = alt.MarkDef("text", fontSize=11)
    layers = [
        marks.layer(shade, **shared, opacity=deep),
        marks.layer(edge, **shared, strokeWidth=thick),
        marks.layer(number, **shared, text=alt.Text("n:Q", format=",")),
    ]
    return marks.draw(layers, values, max(1, len(answers)) * CELL_SIZE)


def _describe_pair(met: AnswerPair) -> str:
    return SAME if met.row == met.column else OTHER


def _tooltip(rows: str, columns: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("row:N", title=rows),
        alt.Tooltip("column:N", title=columns),
        alt.Tooltip("said:N", title="They say"),
        alt.Tooltip("n:Q", title="Items", format=","),
        alt.Tooltip("share:Q", title="Of the row", format=".1%"),
    ]
