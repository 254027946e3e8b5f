"""Labels beside the marks of a chart that overlap neither each other nor a mark."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from charts import marks

# Labels must not overlap on a phone, where the marks have this much room.
NARROW = 265
LABEL_HEIGHT, MARK_SIZE = 12, 10
# Where a label can be: right (1) or left (-1) of its mark or neither, and so many points lower.
_PLACES = (
    *((side, dy) for dy in (-8, 8) for side in (1, -1)),
    *((side, dy) for dy in (-18, 18, -30, 30, -42, 42) for side in (0, 1, -1)),
)
# The middle, the width and the height of something on the chart, in points.
Box = tuple[float, float, float, float]


def draw_labels(**parts: Any) -> alt.UnitSpec:
    """Write the `word` of each row beside its mark, `right` and `down` so many points from it, as
    `place_labels` says. The parts are channels and data, as for `marks.layer`."""
    right, down = alt.ExprRef("datum.right"), alt.ExprRef("datum.down")
    mark = alt.MarkDef("text", fontSize=10, aria=False, dx=right, dy=down)
    return marks.layer(mark, **parts, text=alt.Text("word:N"))


def place_labels(
    spots: Sequence[tuple[float, float]], words: Sequence[str], height: float
) -> list[tuple[float, float]]:
    """Place a label beside each mark, so that labels overlap neither each other nor a mark, if
    there is room. The positions of the marks are fractions of the chart, from its upper left
    corner, which is `height` points high; the distances of the labels from them are in points."""
    marked = [(x * NARROW, y * height, MARK_SIZE, MARK_SIZE) for x, y in spots]
    taken = list(marked)
    placed: list[tuple[float, float]] = []
    for (x, y, *_), word in zip(marked, words, strict=True):
        width = marks.CHARACTER_WIDTH * len(word) + 2
        offered = [(side * ((width + MARK_SIZE) / 2 + 1), dy) for side, dy in _PLACES]
        boxes = [(x + dx, y + dy, width, LABEL_HEIGHT) for dx, dy in offered]
        crossed = [
            sum(_overlap(box, other) for other in taken) + _overhang(box, height) for box in boxes
        ]
        best = crossed.index(min(crossed))
        taken.append(boxes[best])
        placed.append(offered[best])
    return placed


def _overlap(a: Box, b: Box) -> float:
    """The area that two boxes share."""
    x = min(a[2], b[2], (a[2] + b[2]) / 2 - abs(a[0] - b[0]))
    y = min(a[3], b[3], (a[3] + b[3]) / 2 - abs(a[1] - b[1]))
    return x * y if x > 0 and y > 0 else 0


def _overhang(box: Box, height: float) -> float:
    """The area of a box that is outside the chart."""
    return box[2] * box[3] - _overlap(box, (NARROW / 2, height / 2, NARROW, height))
