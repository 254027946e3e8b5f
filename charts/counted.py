"""Bubble chart of people's scores against the evaluator's scores. Each pair of scores has one
circle, sized by its count."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import marks

PANEL_SIZE = 200
PANEL_COLUMNS = 4
# With more circles, a panel has no room for the numbers in them. With more ticks, an axis has no
# room for the labels.
MOST_NUMBERS, MOST_TICKS = 60, 8
# Circles at the ends of an axis need half their width as padding; no circle is wider than this.
PADDING, LARGEST_CIRCLE = 26, 50


@dataclass(frozen=True, slots=True)
class PairCount:
    """The `n` items of a panel that have one certain score from people and one from the evaluator.

    Axes with the same name have the same range in every panel.
    """

    panel: str
    people: float
    evaluator: float
    n: int
    people_axis: str = ""
    evaluator_axis: str = ""


def draw_circles(counts: Sequence[PairCount]) -> dict[str, Any]:
    """Return a Vega-Lite specification: panels in their order, with circles sized by area on one
    scale for all panels.

    Each circle shows the number of items, unless a panel has too many circles. If both axes have
    the same name, a dashed line shows where the scores are equal.
    """
    values = _by_axis(counts)
    most = max((one.n for one in counts), default=1)
    scale = alt.Scale(domain=[0, most], range=[0, _largest(values)])
    area = alt.Size("n:Q", legend=None, scale=scale)
    panels: dict[str, list[PairCount]] = {}
    for one in counts:
        panels.setdefault(one.panel, []).append(one)
    drawn = [_panel(found, values, area) for found in panels.values()]
    return marks.to_spec(alt.TopLevelConcatSpec(concat=drawn, columns=PANEL_COLUMNS))


def _by_axis(counts: Iterable[PairCount]) -> dict[str, set[float]]:
    found: dict[str, set[float]] = {}
    for one in counts:
        found.setdefault(one.people_axis, set()).add(one.people)
        found.setdefault(one.evaluator_axis, set()).add(one.evaluator)
    return found


def _largest(values: dict[str, set[float]]) -> float:
    """Return the largest circle area that leaves room for neighbours, if the values are a few
    integers."""
    steps = [len(whole) - 1 for of_axis in values.values() if (whole := _whole(of_axis))]
    apart = (PANEL_SIZE - 2 * PADDING) / max([2, *steps])
    return math.pi / 4 * min(LARGEST_CIRCLE, 0.9 * apart) ** 2


def _whole(values: set[float]) -> range | None:
    """Return the whole numbers of an axis, if all values are whole and there is room for a tick at
    each number."""
    every = range(int(min(values)), int(max(values)) + 1)
    fits = all(value == int(value) for value in values) and len(every) <= MOST_TICKS
    return every if fits else None


def _panel(
    counts: Sequence[PairCount], values: dict[str, set[float]], area: alt.Size
) -> alt.LayerSpec:
    first = counts[0]
    x = _axis(alt.X, "people:Q", "People", values[first.people_axis])
    y = _axis(alt.Y, "evaluator:Q", "Evaluator", values[first.evaluator_axis])
    shared = {"x": x, "y": y, "tooltip": _tooltip()}
    colour = marks.COLOURS[0]
    circle = alt.MarkDef("circle", color=colour, opacity=0.35, stroke=colour)
    layers = [marks.layer(circle, **shared, size=area)]
    if first.people_axis == first.evaluator_axis:
        line = alt.MarkDef("line", strokeWidth=1.5, **marks.DASHED)
        at = values[first.people_axis]
        ends = marks.rows({"people": end, "evaluator": end} for end in (min(at), max(at)))
        layers.insert(0, marks.layer(line, data=ends, x=x, y=y))
    if len(counts) <= MOST_NUMBERS:
        number = alt.MarkDef("text", fontSize=11)
        layers.append(marks.layer(number, **shared, text=alt.Text("n:Q")))
    return alt.LayerSpec(
        layer=layers,
        data=marks.rows(map(marks.as_row, counts)),
        title=alt.TitleParams(first.panel.split(": "), fontSize=12, fontWeight="normal"),
        width=PANEL_SIZE,
        height=PANEL_SIZE,
    )


def _axis(channel: Any, field: str, title: str, values: set[float]) -> Any:
    """Return the axis; whole numbers get one tick each if there is room."""
    ticks = _whole(values)
    how = {"values": list(ticks), "format": "d"} if ticks else {"tickCount": 5}
    ends = [min(values), max(values)]
    return channel(
        field,
        scale=alt.Scale(domain=ends, nice=False, zero=False, padding=PADDING),
        axis=alt.Axis(title=title, titlePadding=6, **how),
    )


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("panel:N", title="Run and metric"),
        alt.Tooltip("people:Q", title="People"),
        alt.Tooltip("evaluator:Q", title="Evaluator"),
        alt.Tooltip("n:Q", title="Items", format=","),
    ]
