"""Which of two notices more? One mark a pair of runs, with its interval, beside nought."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import altair as alt

from charts import marks, values

STEP = 32


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two rates, from -1 to 1, over `n` items; without an interval both None."""

    pair: str
    difference: float
    low: float | None
    high: float | None
    n: int


def dots(found: Sequence[Difference]) -> dict[str, Any]:
    """A Vega-Lite specification: pairs from the top down in their order."""
    base = alt.Chart(alt.Data(values=[asdict(one) for one in found])).encode(
        y=marks.rows("pair", [one.pair for one in found]),
        tooltip=[
            alt.Tooltip("pair:N", title="Pair"),
            *values.told("difference", "Difference", "+.1%"),
        ],
    )
    nought = alt.Chart(alt.Data(values=[{"at": 0}]))
    line = nought.mark_rule(strokeDash=[4, 4], color=marks.COLOURS[-1]).encode(x=_x("at"))
    rules = marks.intervals(base, strokeWidth=2, opacity=0.75, color=marks.COLOURS[0])
    shown = base.mark_point(filled=True, size=75, opacity=1, color=marks.COLOURS[0])
    layers = alt.layer(line, rules.encode(x=_x("low"), x2="high"), shown.encode(x=_x("difference")))
    return marks.as_spec(layers.properties(width="container", height=max(1, len(found)) * STEP))


def _x(field: str) -> alt.X:
    axis = alt.Axis(format="+%", tickCount=5, title="Difference of detection rates", titlePadding=8)
    return alt.X(f"{field}:Q").scale(domain=[-1, 1], nice=False).axis(axis)
