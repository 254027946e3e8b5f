"""Charts of detection rate against false-alarm rate: do runs tell errors from score-invariant
changes? One plane for all runs, or a small one for each run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import labels, marks

HEIGHT = 360
# Two small planes are side by side on a phone; `charts.js` reduces the columns to those that fit.
PANEL_SIZE, PANEL_COLUMNS, PANEL_SPACING = 100, 7, 6


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
    colour, shape = marks.colour_by("run", runs, "Run"), marks.shape_by("run", runs, "Run")
    shared = {"x": _x("false_alarm"), "y": _y("detection"), "color": colour}
    told = {**shared, "tooltip": _tooltip()}
    size = marks.when("datum.whole", 170, 45)
    point = alt.MarkDef("point", filled=True, opacity=1)
    layers = [
        _chance_line(),
        *_intervals(told, opacity=0.5),
        marks.layer(point, **told, shape=shape, size=size),
    ]
    if marks.colours_repeat(runs):
        layers.append(labels.draw_labels(data=marks.rows(_numbers(found)), **shared))
    return marks.draw(layers, map(marks.as_row, found), HEIGHT)


def draw_panels(found: Sequence[SensitivityPoint]) -> dict[str, Any]:
    """Return a Vega-Lite specification: a small plane for each run, in their order, under its name.
    The large mark with the intervals is over all items, and the small marks are groups, which have
    the same colour in every plane."""
    runs = list(dict.fromkeys(one.run for one in found))
    groups = list(dict.fromkeys(one.group for one in found if not one.whole))
    layers = marks.convert_once(_panel_layers(groups))
    panels = [_panel([one for one in found if one.run == run], layers) for run in runs]
    return marks.to_spec(
        alt.TopLevelConcatSpec(concat=panels, columns=PANEL_COLUMNS, spacing=PANEL_SPACING)
    )


def _panel(found: Sequence[SensitivityPoint], layers: Any) -> alt.LayerSpec:
    """The small plane of one run, with the run's name on two lines."""
    name = found[0].run.split(" · ")
    title = alt.TitleParams(
        [" · ".join(name[:2]), *[" · ".join(name[2:])][: len(name) - 2]],
        fontSize=11,
        fontWeight="normal",
        limit=PANEL_SIZE + 40,
        anchor="start",
    )
    data = marks.rows(map(marks.as_row, found))
    return alt.LayerSpec(layer=layers, data=data, title=title, width=PANEL_SIZE, height=PANEL_SIZE)


def _panel_layers(groups: Sequence[str]) -> list[alt.UnitSpec]:
    shared = {"x": _x("false_alarm", 2), "y": _y("detection", 2), "tooltip": _tooltip()}
    is_whole, is_group = (
        alt.FilterTransform(filter=one) for one in ("datum.whole", "!datum.whole")
    )
    return [
        _chance_line(2),
        # Without a colour, the lines would be black, on the dark page too.
        *_intervals(shared, is_whole, ticks=2, color=marks.OUTLINE),
        marks.layer(alt.MarkDef("point", filled=True, opacity=1, size=90), is_whole, **shared),
        marks.layer(
            alt.MarkDef("point", filled=True, opacity=1, size=35),
            is_group,
            **shared,
            color=marks.colour_by("group", groups, "Items"),
            shape=marks.shape_by("group", groups, "Items"),
        ),
    ]


def _intervals(
    shared: dict[str, Any], *transforms: Any, ticks: int = 5, **look: Any
) -> list[alt.UnitSpec]:
    look["strokeWidth"] = 1.5
    across = {"x": _x("false_alarm_low", ticks), "x2": alt.X2("false_alarm_high")}
    up = {"y": _y("detection_low", ticks), "y2": alt.Y2("detection_high")}
    return [
        marks.intervals(shared | across, *transforms, low="false_alarm_low", **look),
        marks.intervals(shared | up, *transforms, low="detection_low", **look),
    ]


def _numbers(found: Sequence[SensitivityPoint]) -> list[dict[str, Any]]:
    """The first words of the runs, and where they are beside their marks over all items."""
    whole = [one for one in found if one.whole]
    words = [one.run.split(" · ")[0] for one in whole]
    spots = [(one.false_alarm, 1 - one.detection) for one in whole]
    places = labels.place_labels(spots, words, HEIGHT)
    return [
        {**marks.as_row(one), "word": word, "right": right, "down": down}
        for one, word, (right, down) in zip(whole, words, places, strict=True)
    ]


def _chance_line(ticks: int = 5) -> alt.UnitSpec:
    line = alt.MarkDef("line", strokeWidth=1.5, **marks.DASHED)
    ends = marks.rows([{"at": 0}, {"at": 1}])
    return marks.layer(line, data=ends, x=_x("at", ticks), y=_y("at", ticks))


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
