"""Chart of J against cost: which evaluator tells errors apart, and what does it cost?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

import altair as alt

from charts import labels, marks
from charts.axes import INTERVAL_ENDS

HEIGHT = 360
# Amounts without an exponent: d3 otherwise cuts the digits to the step and writes 1e+1 for 10.
AMOUNT_FORMAT = ",.12~g"
# From this ratio of the highest to the lowest cost, the axis is logarithmic.
LOG_RATIO = 20


@dataclass(frozen=True, slots=True)
class CostPoint:
    """A run with its cost, 0 or more, and its J from -1 to 1. The ends of the interval of J are
    None if it has none. `said` is the cost as text."""

    run: str
    cost: float
    said: str
    j: float
    low: float | None
    high: float | None


def draw_costs(found: Sequence[CostPoint], *, title: str) -> dict[str, Any]:
    """Return a Vega-Lite specification: one mark per run, with the interval of J and the first word
    of the run's name beside it. `title` says what the cost is of. The axis of costs starts at 0,
    or is logarithmic if no run is free and costs differ by a factor of LOG_RATIO."""
    runs = [one.run for one in found]
    least = min([0.0, *(end for one in found for end in (one.j, one.low) if end is not None)])
    x, at = _cost_axis([one.cost for one in found], title)
    y = alt.Y(
        "j:Q",
        scale=alt.Scale(domain=[least, 1], nice=False),
        axis=alt.Axis(tickCount=5, title="J"),
    )
    spots = [(at(one.cost), (1 - one.j) / (1 - least)) for one in found]
    words = [one.run.split(" · ")[0] for one in found]
    rows = [
        {**marks.as_row(one), "word": word, "right": right, "down": down}
        for one, word, (right, down) in zip(
            found, words, labels.place_labels(spots, words, HEIGHT), strict=True
        )
    ]
    shared = {
        "x": x,
        "y": y,
        "color": marks.colour_by("run", runs, "Run"),
        "tooltip": _tooltip(title),
    }
    chance = alt.MarkDef("rule", strokeWidth=1.5, aria=False, **marks.DASHED)
    point = alt.MarkDef("point", filled=True, opacity=1, size=90)
    ends = {"y": alt.Y("low:Q"), "y2": alt.Y2("high")}
    layers = [
        marks.layer(chance, data=marks.rows([{"j": 0}]), y=y),
        marks.intervals(shared | ends, strokeWidth=1.5, opacity=0.5),
        marks.layer(point, **shared, shape=marks.shape_by("run", runs, "Run")),
        labels.draw_labels(**shared),
    ]
    return marks.draw(layers, rows, HEIGHT)


def _cost_axis(costs: Sequence[float], title: str) -> tuple[alt.X, Callable[[float], float]]:
    """The axis of costs, and a function that places a cost on it, from 0 to 1."""
    low, high = min(costs, default=0), max(costs, default=0)
    axis = alt.Axis(title=title, titlePadding=8, tickCount=5, format=AMOUNT_FORMAT)
    if low > 0 and high > LOG_RATIO * low:
        ends = [low / 1.3, high * 1.3]
        first, width = log10(ends[0]), log10(ends[1] / ends[0])
        tens = range(floor(first), ceil(log10(ends[1])) + 1)
        ticks = [step * 10.0**ten for ten in tens for step in (1, 2, 5)]
        axis.title = f"{title} (logarithmic scale)"
        axis.values = [one for one in ticks if ends[0] <= one <= ends[1]]
        scale = alt.Scale(type="log", domain=ends, nice=False)
        return alt.X("cost:Q", scale=scale, axis=axis), lambda one: (log10(one) - first) / width
    top = 1.05 * high or 1
    scale = alt.Scale(domain=[0, top], nice=False)
    return alt.X("cost:Q", scale=scale, axis=axis), lambda one: one / top


def _tooltip(title: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("run:N", title="Run"),
        alt.Tooltip("said:N", title=title),
        *(
            alt.Tooltip(f"{field}:Q", title=name, format=".2f")
            for field, name in zip(("j", "low", "high"), ("J", *INTERVAL_ENDS), strict=True)
        ),
    ]
