"""Bubble chart of people's scores against the evaluator's scores. Each pair of scores has one
circle, sized by its count."""

import math
from collections.abc import Iterable, Mapping, Sequence
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
    # Panels that look alike differ in their data and title alone, and Altair takes 25 ms for each.
    looks = {_look(found, values): found for found in panels.values()}
    drawn = [_panel(found, values, area) for found in looks.values()]
    spec = marks.to_spec(alt.concat(*drawn, columns=PANEL_COLUMNS))
    like = dict(zip(looks, spec["concat"], strict=True))
    spec["concat"] = [_fill_panel(like[_look(one, values)], one) for one in panels.values()]
    return spec


def _look(counts: Sequence[PairCount], values: dict[str, set[float]]) -> tuple[Any, ...]:
    """What a panel looks like apart from its data and title: its axes, whether they are the same
    one, and whether circles have numbers."""
    first = counts[0]
    names = (first.people_axis, first.evaluator_axis)
    axes = [(min(found), max(found), _whole(found)) for found in (values[name] for name in names)]
    return (*axes, names[0] == names[1], len(counts) <= MOST_NUMBERS)


def _fill_panel(panel: Mapping[str, Any], counts: Sequence[PairCount]) -> dict[str, Any]:
    """The same panel with the title and the data of these counts."""
    layers = [
        {name: part for name, part in layer.items() if name != "data" or _is_line(layer)}
        for layer in panel["layer"]
    ]
    title = {**panel["title"], "text": counts[0].panel.split(": ")}
    data = {"values": [marks.as_row(one) for one in counts]}
    return {**panel, "data": data, "layer": layers, "title": title}


def _is_line(layer: Mapping[str, Any]) -> bool:
    return bool(layer["mark"]["type"] == "line")


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


def _panel(counts: Sequence[PairCount], values: dict[str, set[float]], area: alt.Size) -> Any:
    first = counts[0]
    x = _axis(alt.X, "people:Q", "People", values[first.people_axis])
    y = _axis(alt.Y, "evaluator:Q", "Evaluator", values[first.evaluator_axis])
    base = alt.Chart(marks.rows(map(marks.as_row, counts))).encode(x=x, y=y, tooltip=_tooltip())
    drawn = base.mark_circle(color=marks.COLOURS[0], opacity=0.35, stroke=marks.COLOURS[0])
    layers = [drawn.encode(size=area)]
    if first.people_axis == first.evaluator_axis:
        layers.insert(0, _equal(values[first.people_axis], x, y))
    if len(counts) <= MOST_NUMBERS:
        layers.append(base.mark_text(fontSize=11).encode(text=alt.Text("n:Q")))
    title = alt.TitleParams(first.panel.split(": "), fontSize=12, fontWeight="normal")
    return alt.layer(*layers).properties(width=PANEL_SIZE, height=PANEL_SIZE, title=title)


def _equal(values: set[float], x: Any, y: Any) -> alt.Chart:
    ends = [{"people": at, "evaluator": at} for at in (min(values), max(values))]
    line = alt.Chart(marks.rows(ends)).mark_line(
        strokeDash=[4, 4], strokeWidth=1.5, color=marks.COLOURS[-1]
    )
    return line.encode(x=x, y=y)


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
