"""Strip chart of score changes: for each group, the share of its items at each step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import marks

STRIP_HEIGHT = 30
SIGNED_EXPR = "datum.value ? format(datum.value, '+~g') : '0'"
# The darkest shade on which the text of the page can still be read.
DARKEST = 0.6


@dataclass(frozen=True, slots=True)
class StepShare:
    """The `n` items of a group at one step. `share` is a fraction of 1."""

    group: str
    step: float
    share: float
    n: int


def draw_strips(
    found: Sequence[StepShare], *, steps: Sequence[float], title: str
) -> dict[str, Any]:
    """Return a Vega-Lite specification: groups from top to bottom in the given order, `steps` from
    left to right. Steps without items are included.

    The shade shows the share. If there is room, a number shows it too.
    """
    groups = list(dict.fromkeys(one.group for one in found))
    shared = {
        "x": alt.X(
            "step:O",
            title=title,
            sort="ascending",
            scale=alt.Scale(domain=list(steps)),
            axis=alt.Axis(labelAngle=0, labelExpr=SIGNED_EXPR),
        ),
        "y": marks.row_axis("group", groups),
        "tooltip": [
            alt.Tooltip("group:N", title="Items"),
            alt.Tooltip("step:Q", title=title),
            alt.Tooltip("share:Q", title="Share", format=".1%"),
            alt.Tooltip("n:Q", title="n", format=","),
        ],
    }
    deep = alt.Opacity(
        "share:Q", legend=None, scale=alt.Scale(domain=[0, 1], range=[0.03, DARKEST])
    )
    shade = alt.MarkDef("rect", color=marks.COLOURS[0], stroke=marks.OUTLINE, strokeWidth=0.5)
    layers = [
        marks.layer(shade, **shared, opacity=deep),
        marks.layer(
            alt.MarkDef("text", fontSize=11),
            **shared,
            text=alt.Text("share:Q", format=".0%"),
            opacity=marks.hide_if_narrow(f"width / {len(steps)}", 4),
        ),
    ]
    height = max(1, len(groups)) * marks.row_height(groups, STRIP_HEIGHT + 6)
    own_scales = alt.Resolve(scale=alt.ScaleResolveMap(opacity="independent"))
    return marks.draw(layers, map(marks.as_row, found), height, resolve=own_scales)
