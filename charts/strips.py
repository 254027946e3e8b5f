"""How far did scores move? One strip a group: the share of its items at each step."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import altair as alt

from charts import marks

STRIP = 30
# The darkest that the page's ink can still be read on.
DARKEST = 0.6


@dataclass(frozen=True, slots=True)
class Step:
    """So many items of a group at one step: `share` is a fraction of 1."""

    group: str
    step: float
    share: float
    n: int


def strips(steps: Sequence[Step], *, title: str) -> dict[str, Any]:
    """A Vega-Lite specification: groups from the top down in their order, steps from left to right.

    The share is told by the depth of the shade and by its number.
    """
    groups = list(dict.fromkeys(one.group for one in steps))
    base = alt.Chart(alt.Data(values=[asdict(one) for one in steps])).encode(
        x=alt.X("step:O", title=title, sort="ascending").axis(labelAngle=0),
        y=alt.Y("group:N", title=None, sort=groups).axis(
            labelLimit=170, labelPadding=8, ticks=False, domain=False, labelExpr=marks.TWO_LINES
        ),
        tooltip=[
            alt.Tooltip("group:N", title="Items"),
            alt.Tooltip("step:Q", title=title),
            alt.Tooltip("share:Q", title="Share", format=".1%"),
            alt.Tooltip("n:Q", title="n", format=","),
        ],
    )
    deep = alt.Opacity("share:Q", legend=None).scale(domain=[0, 1], range=[0.03, DARKEST])
    shades = base.mark_rect(color=marks.COLOURS[0], stroke=marks.OUTLINE, strokeWidth=0.5)
    numbers = base.mark_text(fontSize=11).encode(text=alt.Text("share:Q", format=".0%"))
    layers = alt.layer(shades.encode(opacity=deep), numbers)
    return marks.as_spec(
        layers.properties(width="container", height=max(1, len(groups)) * (STRIP + 6))
    )
