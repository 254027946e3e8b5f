"""How much do evaluators notice? One mark a run and ability, with its interval."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import altair as alt

from charts import marks

MARK_HEIGHT = 15
MARK_SIZE = 75


@dataclass(frozen=True, slots=True)
class Point:
    """One rate of one run: fractions of 1, `n` the items that it rests on.

    `low` and `high` are None where the interval is not defined. `faint` ones are not ours.
    """

    run: str
    group: str
    rate: float
    low: float | None
    high: float | None
    n: int
    faint: bool = False


def dot_plot(points: Sequence[Point], *, title: str, series: str = "Run") -> dict[str, Any]:
    """A Vega-Lite specification: groups from the top down, a row of marks for each run in them.

    Groups and runs stand in the order in which `points` names them first. `title` says what the
    rate is, `series` what the runs are. Without points it is a chart without marks.
    """
    runs = list(dict.fromkeys(point.run for point in points))
    groups = list(dict.fromkeys(point.group for point in points))
    base = alt.Chart(alt.Data(values=[asdict(point) for point in points])).encode(
        y=alt.Y("group:N", title=None, sort=groups).axis(
            labelLimit=130, labelPadding=8, ticks=False, domain=False, labelExpr=marks.TWO_LINES
        ),
        yOffset=alt.YOffset("run:N", sort=runs),
        tooltip=_tooltip(title, series),
        color=marks.colour("run", runs, series),
    )
    layers = alt.layer(_intervals(base, title), _dots(base, runs, title, series))
    return marks.as_spec(layers.properties(width="container", height=_height(groups, runs)))


def _intervals(base: alt.Chart, title: str) -> alt.Chart:
    defined = base.transform_filter("isValid(datum.low)")
    faint = alt.datum.faint
    return defined.mark_rule(strokeWidth=2).encode(
        x=_rate("low", title),
        x2="high",
        opacity=alt.condition(faint, alt.value(0.4), alt.value(0.75)),
        strokeDash=alt.condition(faint, alt.value([3, 3]), alt.value([1, 0])),
    )


def _dots(base: alt.Chart, runs: Sequence[str], title: str, series: str) -> alt.Chart:
    dots = base.mark_point(size=MARK_SIZE, filled=True)
    return dots.encode(
        x=_rate("rate", title),
        shape=marks.shape("run", runs, series),
        opacity=alt.condition(alt.datum.faint, alt.value(0.5), alt.value(1)),
    )


def _rate(field: str, title: str) -> alt.X:
    axis = alt.Axis(format="%", tickCount=5, title=title, titlePadding=8)
    return alt.X(f"{field}:Q").scale(domain=[0, 1], nice=False).axis(axis)


def _tooltip(title: str, series: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("run:N", title=series),
        alt.Tooltip("group:N", title="Items"),
        alt.Tooltip("rate:Q", title=title, format=".1%"),
        alt.Tooltip("low:Q", title="95 % from", format=".1%"),
        alt.Tooltip("high:Q", title="to", format=".1%"),
        alt.Tooltip("n:Q", title="n", format=","),
    ]


def _height(groups: Sequence[str], runs: Sequence[str]) -> int:
    return max(1, len(groups)) * max(36, MARK_HEIGHT * len(runs) + 14)
