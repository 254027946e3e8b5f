"""Chart of J against cost: which evaluator tells errors apart, and what does it cost?"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import log10
from typing import Any

import altair as alt

from charts import marks
from charts.axes import INTERVAL_ENDS

HEIGHT = 360
# From this ratio of the highest to the lowest cost, the axis is logarithmic.
LOG_RATIO = 20
# Labels must not overlap on a phone, where the marks have this much room.
NARROW = 265
LABEL_HEIGHT, MARK_SIZE = 12, 10
# Where a label can be: right (1) or left (-1) of its mark or neither, and so many points lower.
_PLACES = (
    *((side, dy) for dy in (-8, 8) for side in (1, -1)),
    *((side, dy) for dy in (-18, 18, -30, 30, -42, 42) for side in (0, 1, -1)),
)


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
    y = alt.Y("j:Q").scale(domain=[least, 1], nice=False).axis(tickCount=5, title="J")
    spots = [(at(one.cost), (1 - one.j) / (1 - least)) for one in found]
    words = [one.run.split(" · ")[0] for one in found]
    rows = [
        {**asdict(one), "word": word, "right": right, "down": down}
        for one, word, (right, down) in zip(found, words, place_labels(spots, words), strict=True)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=x, y=y, color=marks.colour_by("run", runs, "Run"), tooltip=_tooltip(title)
    )
    layers = alt.layer(
        _chance_line(y),
        marks.intervals(base, strokeWidth=1.5, opacity=0.5).encode(
            y=alt.Y("low:Q"), y2=alt.Y2("high")
        ),
        base.mark_point(filled=True, opacity=1, size=90).encode(
            shape=marks.shape_by("run", runs, "Run")
        ),
        base.mark_text(
            fontSize=10, aria=False, dx=alt.ExprRef("datum.right"), dy=alt.ExprRef("datum.down")
        ).encode(text=alt.Text("word:N")),
    )
    return marks.to_spec(layers.properties(width="container", height=HEIGHT))


def _cost_axis(costs: Sequence[float], title: str) -> tuple[alt.X, Callable[[float], float]]:
    """The axis of costs, and a function that places a cost on it, from 0 to 1."""
    low, high = min(costs, default=0), max(costs, default=0)
    x = alt.X("cost:Q").axis(alt.Axis(title=title, titlePadding=8, tickCount=5, format="~g"))
    if low > 0 and high > LOG_RATIO * low:
        ends = [low / 1.3, high * 1.3]
        first, width = log10(ends[0]), log10(ends[1] / ends[0])
        return x.scale(
            type="log", domain=ends, nice=False
        ), lambda one: (log10(one) - first) / width
    top = 1.05 * high or 1
    return x.scale(domain=[0, top], nice=False), lambda one: one / top


def place_labels(
    spots: Sequence[tuple[float, float]], words: Sequence[str]
) -> list[tuple[float, float]]:
    """Place a label beside each mark, so that labels overlap neither each other nor a mark, if
    there is room. The positions of the marks are fractions of the chart, from its upper left
    corner; the distances of the labels from them are in points."""
    marked = [(x * NARROW, y * HEIGHT, MARK_SIZE, MARK_SIZE) for x, y in spots]
    taken = list(marked)
    placed = []
    for (x, y, *_), word in zip(marked, words, strict=True):
        width = marks.CHARACTER_WIDTH * len(word) + 2
        offered = [(side * ((width + MARK_SIZE) / 2 + 1), dy) for side, dy in _PLACES]
        boxes = [(x + dx, y + dy, width, LABEL_HEIGHT) for dx, dy in offered]
        crossed = [sum(_overlap(box, other) for other in taken) + _overhang(box) for box in boxes]
        best = crossed.index(min(crossed))
        taken.append(boxes[best])
        placed.append(offered[best])
    return placed


# The middle, the width and the height of something on the chart.
Box = tuple[float, float, float, float]


def _overlap(a: Box, b: Box) -> float:
    """The area that two boxes share."""
    x = min(a[2], b[2], (a[2] + b[2]) / 2 - abs(a[0] - b[0]))
    y = min(a[3], b[3], (a[3] + b[3]) / 2 - abs(a[1] - b[1]))
    return x * y if x > 0 and y > 0 else 0


def _overhang(box: Box) -> float:
    """The area of a box that is outside the chart."""
    return box[2] * box[3] - _overlap(box, (NARROW / 2, HEIGHT / 2, NARROW, HEIGHT))


def _chance_line(y: alt.Y) -> alt.Chart:
    line = alt.Chart(alt.Data(values=[{"j": 0}]))
    return line.mark_rule(
        strokeDash=[4, 4], strokeWidth=1.5, color=marks.COLOURS[-1], aria=False
    ).encode(y=y)


def _tooltip(title: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("run:N", title="Run"),
        alt.Tooltip("said:N", title=title),
        *(
            alt.Tooltip(f"{field}:Q", title=name, format=".2f")
            for field, name in zip(("j", "low", "high"), ("J", *INTERVAL_ENDS), strict=True)
        ),
    ]
