"""Chart of precision against recall of detectors: what it costs in false alarms to find more
errors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from charts import marks

HEIGHT = 400
RULE_STYLE = {"strokeWidth": 1.5, "opacity": 0.4}
# The values of F1 for which a line is drawn.
F1_LEVELS = (0.2, 0.4, 0.6, 0.8)
CURVE_STEPS = 40


@dataclass(frozen=True, slots=True)
class PrecisionRecall:
    """Precision and recall of one detector over `n` items, as fractions of 1, with the ends of
    their intervals (None without an interval). `faint` marks baselines."""

    detector: str
    group: str
    n: int
    f1: float
    precision: float
    precision_low: float | None
    precision_high: float | None
    recall: float
    recall_low: float | None
    recall_high: float | None
    faint: bool = False


def draw_tradeoff(found: Sequence[PrecisionRecall]) -> dict[str, Any]:
    """Return a Vega-Lite specification: one mark per point, with the intervals of both rates, on
    lines of equal F1. If there are more detectors than colours, the name of the detector is next to
    each mark."""
    names = list(dict.fromkeys(one.detector for one in found))
    x, y = marks.x_channel("recall", "Recall"), marks.y_channel("precision", "Precision")
    shared = {
        "x": x,
        "y": y,
        "color": marks.colour_by("detector", names, "Detector"),
        "tooltip": _tooltip(),
    }
    across = {"x": marks.x_channel("recall_low", "Recall"), "x2": alt.X2("recall_high")}
    up = {"y": marks.y_channel("precision_low", "Precision"), "y2": alt.Y2("precision_high")}
    layers = [
        *_f1_curves(y),
        marks.intervals(shared | across, low="recall_low", **RULE_STYLE),
        marks.intervals(shared | up, low="precision_low", **RULE_STYLE),
        marks.layer(
            alt.MarkDef("point", size=85, filled=True),
            **shared,
            shape=marks.shape_by("detector", names, "Detector"),
            opacity=marks.when("datum.faint", 0.5, 1),
        ),
    ]
    if marks.colours_repeat(names):
        layers.append(marks.label_marks(shared, word="detector", at="recall", end=0.8, up=7))
    return marks.draw(layers, map(marks.as_row, found), HEIGHT)


def _f1_curves(y: alt.Y) -> tuple[alt.UnitSpec, alt.UnitSpec]:
    """Return lines of equal F1, each labelled at its right end."""
    rows = [row for f1 in F1_LEVELS for row in _f1_curve(f1)]
    ends = [{"at": 1.0, "precision": f1 / (2 - f1), "name": f"F1 {f1:.0%}"} for f1 in F1_LEVELS]
    line = alt.MarkDef("line", strokeWidth=1, opacity=0.7, **marks.DASHED)
    word = alt.MarkDef("text", align="right", dx=-4, dy=-7, fontSize=11)
    x = marks.x_channel("at", "Recall")
    return (
        marks.layer(line, data=marks.rows(rows), x=x, y=y, detail=alt.Detail("f1:N")),
        marks.layer(word, data=marks.rows(ends), x=x, y=y, text=alt.Text("name:N")),
    )


def _f1_curve(f1: float) -> Iterator[dict[str, float]]:
    """Yield the points of one line of equal F1. The precision is 1 at its left end, and elsewhere:

    precision = f1 x recall / (2 x recall - f1)
    """
    first = f1 / (2 - f1)
    for step in range(CURVE_STEPS + 1):
        # Points are closer together at the left end, where the line is steep.
        recall = first + (1 - first) * (step / CURVE_STEPS) ** 3
        yield {"f1": f1, "at": recall, "precision": min(1.0, f1 * recall / (2 * recall - f1))}


def _tooltip() -> list[alt.Tooltip]:
    ends = {"": "", "_low": ", 95 % from", "_high": ", to"}
    return [
        alt.Tooltip("detector:N", title="Detector"),
        alt.Tooltip("group:N", title="Items"),
        alt.Tooltip("f1:Q", title="F1", format=".1%"),
        *(
            alt.Tooltip(f"{field}{end}:Q", title=f"{field.capitalize()}{words}", format=".1%")
            for field in ("precision", "recall")
            for end, words in ends.items()
        ),
        alt.Tooltip("n:Q", title="n", format=","),
    ]
