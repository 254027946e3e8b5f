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
    chart = (
        alt.Chart(marks.rows(places))
        .mark_bar()
        .encode(
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
    )
    return marks.to_spec(chart.properties(width="container", height=HEIGHT))


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
    base = alt.Chart(marks.rows(points)).encode(
        x=alt.X("day:T", title=None), y=_count_axis("done"), tooltip=_progress_tooltip()
    )
    layers = [
        base.mark_line(interpolate="step-after", strokeWidth=2),
        base.mark_point(filled=True, size=18),
    ]
    if points and places:
        layers += [
            *_forecast_layers(done[-1], places, ends, earliest, latest),
            _target_line(places),
        ]
    layered = alt.layer(*layers)
    return marks.to_spec(layered.properties(width="container", height=HEIGHT))


def draw_times(found: Sequence[LabelTime]) -> dict[str, Any]:
    """Draw one row per person: a line from the lower to the upper quartile, with a mark at the
    median."""
    values = [
        {"person": t.person, "low": t.low, "median": t.median, "high": t.high, "n": t.n}
        for t in found
    ]
    base = alt.Chart(marks.rows(values)).encode(
        y=marks.row_axis("person", [one.person for one in found]),
        tooltip=[
            alt.Tooltip("person:N", title="Person"),
            alt.Tooltip("median:Q", title="Median, s", format=".1f"),
            alt.Tooltip("low:Q", title="25 % take at most, s", format=".1f"),
            alt.Tooltip("high:Q", title="25 % take at least, s", format=".1f"),
            alt.Tooltip("n:Q", title="Labels", format=","),
        ],
    )
    title = "Seconds per item"
    quartiles = base.mark_rule(strokeWidth=4, opacity=0.4, color=marks.COLOURS[0]).encode(
        x=alt.X("low:Q", title=title, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=6)),
        x2=alt.X2("high"),
    )
    median = base.mark_point(filled=True, size=75, opacity=1, color=marks.COLOURS[0]).encode(
        x=alt.X("median:Q", title=title)
    )
    layers = alt.layer(quartiles, median)
    return marks.to_spec(layers.properties(width="container", height=max(1, len(found)) * 28))


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


def _target_line(places: int) -> alt.Chart:
    """Return the horizontal line at the total, where no labels are left to do."""
    every = alt.Chart(marks.rows([{"done": places}]))
    return every.mark_rule(strokeDash=[4, 4], color=marks.COLOURS[-1]).encode(y=_count_axis("done"))


def _forecast_layers(
    last: DailyTotal, places: int, ends: date | None, earliest: date | None, latest: date | None
) -> list[alt.Chart]:
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
        area = alt.Chart(marks.rows(wedge)).mark_area(opacity=0.2)
        layers.append(
            area.encode(x=alt.X("day:T"), y=alt.Y("low:Q", title="Labels"), y2=alt.Y2("high"))
        )
    if ends:
        line = [{"day": begin, "done": last.done}, {"day": ends.isoformat(), "done": places}]
        drawn = alt.Chart(marks.rows(line)).mark_line(strokeDash=[6, 4], strokeWidth=2)
        layers.append(
            drawn.encode(x=alt.X("day:T"), y=_count_axis("done"), tooltip=_progress_tooltip())
        )
    return layers
