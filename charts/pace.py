"""Charts of the labelling pace: labels by day and answer, progress with forecast, label times."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import altair as alt

from charts import marks

# With more days than this, each bar shows a week, since thinner bars cannot be distinguished on a
# phone.
MOST_DAYS = 45
HEIGHT = 220


@dataclass(frozen=True, slots=True)
class ChoiceCount:
    """The number of labels on a day that chose an answer."""

    day: date
    choice: str
    n: int


@dataclass(frozen=True, slots=True)
class DailyTotal:
    """The number of labels done by the end of a day."""

    day: date
    done: int


@dataclass(frozen=True, slots=True)
class LabelTime:
    """The quartiles of one person's times, in seconds per item, over `n` items."""

    person: str
    low: float
    median: float
    high: float
    n: int


def draw_choices(counts: Sequence[ChoiceCount], *, order: Sequence[str]) -> dict[str, Any]:
    """Draw stacked bars, one per day. If there are more than 45 days, draw one bar per week, dated
    by its Monday.

    `order` names the answers from bottom to top.
    """
    days = [count.day for count in counts]
    weekly = bool(days) and (max(days) - min(days)).days >= MOST_DAYS
    rows = _by_week(counts) if weekly else list(counts)
    values = [{"day": c.day.isoformat(), "choice": c.choice, "n": c.n} for c in rows]
    places = [{**value, "place": _place(value["choice"], order)} for value in values]
    unit = "Week of" if weekly else "Day"
    bars = marks.layer(
        alt.MarkDef("bar"),
        x=alt.X("day:O", title=None, axis=alt.Axis(labelAngle=-45, labelOverlap=True)),
        y=_count_axis("n"),
        color=marks.colour_by("choice", list(order), "Answer"),
        order=alt.Order("place:Q"),
        tooltip=[
            alt.Tooltip("day:O", title=unit),
            alt.Tooltip("choice:N", title="Answer"),
            alt.Tooltip("n:Q", title="Labels", format=","),
        ],
    )
    return marks.draw([bars], places, HEIGHT)


def draw_progress(
    done: Sequence[DailyTotal],
    *,
    places: int,
    ends: date | None = None,
    earliest: date | None = None,
    latest: date | None = None,
) -> dict[str, Any]:
    """Draw the number of labels done, day by day, up to the total of `places`, and the forecast
    from the last point.

    The forecast is a line to `ends`, and a wedge between `earliest` and `latest`. Each of the two
    is drawn only if its dates are known. Without a latest day there is no wedge.
    """
    points = [{"day": one.day.isoformat(), "done": one.done} for one in done]
    shared = {
        "x": alt.X("day:T", title=None),
        "y": _count_axis("done"),
        "tooltip": _progress_tooltip(),
    }
    layers = [
        marks.layer(alt.MarkDef("line", interpolate="step-after", strokeWidth=2), **shared),
        marks.layer(alt.MarkDef("point", filled=True, size=18), **shared),
    ]
    if points and places:
        layers += [
            *_forecast_layers(done[-1], places, ends, earliest, latest),
            _target_line(places),
        ]
    return marks.draw(layers, points, HEIGHT)


def draw_times(found: Sequence[LabelTime]) -> dict[str, Any]:
    """Draw one row per person: a line from the lower to the upper quartile, with a mark at the
    median."""
    shared = {
        "y": marks.row_axis("person", [one.person for one in found]),
        "tooltip": [
            alt.Tooltip("person:N", title="Person"),
            alt.Tooltip("median:Q", title="Median, s", format=".1f"),
            alt.Tooltip("low:Q", title="25 % take at most, s", format=".1f"),
            alt.Tooltip("high:Q", title="25 % take at least, s", format=".1f"),
            alt.Tooltip("n:Q", title="Labels", format=","),
        ],
    }
    title = "Seconds per item"
    quartiles = alt.MarkDef("rule", strokeWidth=4, opacity=0.4, color=marks.COLOURS[0])
    median = alt.MarkDef("point", filled=True, size=75, opacity=1, color=marks.COLOURS[0])
    scale, axis = alt.Scale(zero=True), alt.Axis(tickCount=6)
    low = alt.X("low:Q", title=title, scale=scale, axis=axis)
    layers = [
        marks.layer(quartiles, **shared, x=low, x2=alt.X2("high")),
        marks.layer(median, **shared, x=alt.X("median:Q", title=title)),
    ]
    return marks.draw(layers, map(marks.as_row, found), max(1, len(found)) * 28)


def _by_week(counts: Sequence[ChoiceCount]) -> list[ChoiceCount]:
    sums: dict[tuple[date, str], int] = {}
    for count in counts:
        monday = count.day - timedelta(days=count.day.weekday())
        sums[monday, count.choice] = sums.get((monday, count.choice), 0) + count.n
    return [ChoiceCount(day, choice, n) for (day, choice), n in sorted(sums.items())]


def _place(choice: object, order: Sequence[str]) -> int:
    return list(order).index(str(choice)) if choice in order else len(order)


def _count_axis(field: str) -> alt.Y:
    return alt.Y(f"{field}:Q", title="Labels", axis=alt.Axis(tickMinStep=1, format=",d"))


def _progress_tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("day:T", title="Day", format="%d %b %Y"),
        alt.Tooltip("done:Q", title="Labels", format=","),
    ]


def _target_line(places: int) -> alt.UnitSpec:
    """Return the horizontal line at the total, where no labels are left to do."""
    line = alt.MarkDef("rule", **marks.DASHED)
    return marks.layer(line, data=marks.rows([{"done": places}]), y=_count_axis("done"))


def _forecast_layers(
    last: DailyTotal, places: int, ends: date | None, earliest: date | None, latest: date | None
) -> list[alt.UnitSpec]:
    begin = last.day.isoformat()
    layers = []
    if earliest and latest:
        share = (earliest - last.day).days / max(1, (latest - last.day).days)
        slow = round(last.done + share * (places - last.done))
        wedge = [
            {"day": begin, "low": last.done, "high": last.done},
            {"day": earliest.isoformat(), "low": slow, "high": places},
            {"day": latest.isoformat(), "low": places, "high": places},
        ]
        low, high = alt.Y("low:Q", title="Labels"), alt.Y2("high")
        area = alt.MarkDef("area", opacity=0.2)
        layers.append(marks.layer(area, data=marks.rows(wedge), x=alt.X("day:T"), y=low, y2=high))
    if ends:
        rows = [{"day": begin, "done": last.done}, {"day": ends.isoformat(), "done": places}]
        line = marks.layer(
            alt.MarkDef("line", strokeDash=[6, 4], strokeWidth=2),
            data=marks.rows(rows),
            x=alt.X("day:T"),
            y=_count_axis("done"),
            tooltip=_progress_tooltip(),
        )
        layers.append(line)
    return layers
