"""Chart of detection rate against false-alarm rate: do runs tell errors from score-invariant
changes?"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import altair as alt

from charts import marks

HEIGHT = 360
RULE_STYLE = {"strokeWidth": 1.5, "opacity": 0.5}


@dataclass(frozen=True, slots=True)
class SensitivityPoint:
    """The detection rate and the false-alarm rate of one run over a group, or over all items
    (`whole`). Both are fractions of 1 and have the ends of their intervals."""

    run: str
    group: str
    whole: bool
    detection: float
    detection_low: float | None
    detection_high: float | None
    false_alarm: float
    false_alarm_low: float | None
    false_alarm_high: float | None


def draw_plane(found: Sequence[SensitivityPoint]) -> dict[str, Any]:
    """Return a Vega-Lite specification: one mark per point, with the intervals of both rates. The
    group of a point is in the tooltip. If there are more runs than colours, the marks over all
    items are labelled with the first word of their run."""
    runs = list(dict.fromkeys(one.run for one in found))
    base = alt.Chart(alt.Data(values=[asdict(one) for one in found])).encode(
        color=marks.colour_by("run", runs, "Run"), tooltip=_tooltip()
    )
    x, y = _x("false_alarm"), _y("detection")
    whole = marks.when(alt.SizeValue, "datum.whole", 170, 45)
    numbers = base.transform_filter(alt.datum.whole).transform_calculate(word=marks.RUN_NUMBER_EXPR)
    named = (
        [marks.label_marks(numbers, "word", "false_alarm", 0.9, 7)]
        if marks.colours_repeat(runs)
        else []
    )
    layers = alt.layer(
        _chance_line(),
        marks.intervals(base, "false_alarm_low", **RULE_STYLE).encode(
            x=_x("false_alarm_low"), x2=alt.X2("false_alarm_high"), y=y
        ),
        marks.intervals(base, "detection_low", **RULE_STYLE).encode(
            x=x, y=_y("detection_low"), y2=alt.Y2("detection_high")
        ),
        base.mark_point(filled=True, opacity=1).encode(
            x=x, y=y, shape=marks.shape_by("run", runs, "Run"), size=whole
        ),
        *(one.encode(x=x, y=y) for one in named),
    )
    return marks.to_spec(layers.properties(width="container", height=HEIGHT))


def _chance_line() -> alt.Chart:
    ends = alt.Data(values=[{"at": 0}, {"at": 1}])
    line = alt.Chart(ends).mark_line(strokeDash=[4, 4], strokeWidth=1.5, color=marks.COLOURS[-1])
    return line.encode(x=_x("at"), y=_y("at"))


def _x(field: str) -> alt.X:
    axis = alt.Axis(format="%", tickCount=5, title="False alarms", titlePadding=8)
    return alt.X(f"{field}:Q").scale(domain=[0, 1], nice=False).axis(axis)


def _y(field: str) -> alt.Y:
    axis = alt.Axis(format="%", tickCount=5, title="Detection")
    return alt.Y(f"{field}:Q").scale(domain=[0, 1], nice=False).axis(axis)


def _tooltip() -> list[alt.Tooltip]:
    rates = {"detection": "Detection", "false_alarm": "False alarms"}
    ends = {"": "", "_low": ", 95 % from", "_high": ", to"}
    return [
        alt.Tooltip("run:N", title="Run"),
        alt.Tooltip("group:N", title="Items"),
        *(
            alt.Tooltip(f"{field}{end}:Q", title=f"{title}{words}", format=".1%")
            for field, title in rates.items()
            for end, words in ends.items()
        ),
    ]
