"""Charts of detection rate against false-alarm rate: do runs tell errors from score-invariant
changes? One plane for all runs, or a small one for each run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import labels, marks

HEIGHT = 360
# Two small planes are side by side on a phone; `charts.js` reduces the columns to those that fit.
PANEL_SIZE, PANEL_COLUMNS, PANEL_SPACING = 100, 7, 6
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
    items are labelled with the first word of their run, so that no label overlaps another."""
    runs = list(dict.fromkeys(one.run for one in found))
    base = alt.Chart(marks.rows(map(marks.as_row, found))).encode(
        color=marks.colour_by("run", runs, "Run"), tooltip=_tooltip()
    )
    x, y = _x("false_alarm"), _y("detection")
    whole = marks.when(alt.SizeValue, "datum.whole", 170, 45)
    named = [_numbers(found, runs)] if marks.colours_repeat(runs) else []
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


def draw_panels(found: Sequence[SensitivityPoint]) -> dict[str, Any]:
    """Return a Vega-Lite specification: a small plane for each run, in their order, under its name.
    The large mark with the intervals is over all items, and the small marks are groups, which have
    the same colour in every plane."""
    runs = list(dict.fromkeys(one.run for one in found))
    groups = list(dict.fromkeys(one.group for one in found if not one.whole))
    by_run = {run: [one for one in found if one.run == run] for run in runs}
    first = _panel(by_run[runs[0]], groups)
    spec = marks.to_spec(alt.concat(first, columns=PANEL_COLUMNS, spacing=PANEL_SPACING))
    # Panels differ in their data and title alone, and Altair takes 40 ms for each.
    [panel] = spec["concat"]
    spec["concat"] = [_fill_panel(panel, run, of_run) for run, of_run in by_run.items()]
    return spec


def _fill_panel(
    panel: Mapping[str, Any], run: str, found: Sequence[SensitivityPoint]
) -> dict[str, Any]:
    """The same panel for another run."""
    chance, *layers = panel["layer"]
    data = {"values": [marks.as_row(one) for one in found]}
    return {
        **panel,
        "title": {**panel["title"], "text": _panel_title(run)},
        "layer": [chance, *({**layer, "data": data} for layer in layers)],
    }


def _panel_title(run: str) -> list[str]:
    """The name of a run on two lines."""
    name = run.split(" · ")
    return [" · ".join(name[:2]), *[" · ".join(name[2:])][: len(name) - 2]]


def _panel(
    found: Sequence[SensitivityPoint], groups: Sequence[str]
) -> alt.LayerChart | alt.FacetChart:
    base = alt.Chart(marks.rows(map(marks.as_row, found))).encode(tooltip=_tooltip())
    x, y = _x("false_alarm", 2), _y("detection", 2)
    whole = base.transform_filter(alt.datum.whole)
    layers = alt.layer(
        _chance_line(2),
        marks.intervals(whole, "false_alarm_low", **RULE_STYLE).encode(
            x=_x("false_alarm_low", 2), x2=alt.X2("false_alarm_high"), y=y
        ),
        marks.intervals(whole, "detection_low", **RULE_STYLE).encode(
            x=x, y=_y("detection_low", 2), y2=alt.Y2("detection_high")
        ),
        whole.mark_point(filled=True, opacity=1, size=90).encode(x=x, y=y),
        base.transform_filter("!datum.whole")
        .mark_point(filled=True, opacity=1, size=35)
        .encode(
            x=x,
            y=y,
            color=marks.colour_by("group", groups, "Items"),
            shape=marks.shape_by("group", groups, "Items"),
        ),
    )
    title = alt.TitleParams(
        _panel_title(found[0].run),
        fontSize=11,
        fontWeight="normal",
        limit=PANEL_SIZE + 40,
        anchor="start",
    )
    return layers.properties(width=PANEL_SIZE, height=PANEL_SIZE, title=title)


def _numbers(found: Sequence[SensitivityPoint], runs: Sequence[str]) -> alt.Chart:
    """The first words of the runs beside their marks over all items."""
    whole = [one for one in found if one.whole]
    words = [one.run.split(" · ")[0] for one in whole]
    spots = [(one.false_alarm, 1 - one.detection) for one in whole]
    rows = [
        {**marks.as_row(one), "word": word, "right": right, "down": down}
        for one, word, (right, down) in zip(
            whole, words, labels.place_labels(spots, words, HEIGHT), strict=True
        )
    ]
    base = alt.Chart(marks.rows(rows)).encode(color=marks.colour_by("run", runs, "Run"))
    return labels.draw_labels(base)


def _chance_line(ticks: int = 5) -> alt.Chart:
    ends = marks.rows([{"at": 0}, {"at": 1}])
    line = alt.Chart(ends).mark_line(strokeDash=[4, 4], strokeWidth=1.5, color=marks.COLOURS[-1])
    return line.encode(x=_x("at", ticks), y=_y("at", ticks))


def _x(field: str, ticks: int = 5) -> alt.X:
    axis = alt.Axis(format="%", tickCount=ticks, title="False alarms", titlePadding=8)
    return alt.X(f"{field}:Q", scale=marks.SHARES, axis=axis)


def _y(field: str, ticks: int = 5) -> alt.Y:
    axis = alt.Axis(format="%", tickCount=ticks, title="Detection")
    return alt.Y(f"{field}:Q", scale=marks.SHARES, axis=axis)


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
