"""Detector: how well are errors found, and which kinds of them? (study 001, tables 4, 6 and 8)"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from annotation.templatetags import figures as written
from judging.results import detecting_kinds
from judging.views.results import cells, detector_changes, detectors, dots, grids, offered
from judging.views.results.cells import Row
from judging.views.results.detectors import BASELINES, Detectors
from judging.views.results.dots import Dot
from judging.views.results.grids import Cell, Column, Line
from judging.views.results.kinds import Ask, Asked, Drawing, Rows, Shown, Switch, View, places
from stats.estimates import Estimate

if TYPE_CHECKING:
    from charts.tradeoff import Point

TITLES = {
    "f1": "F1",
    "precision": "Precision",
    "recall": "Recall",
    "accuracy": "Accuracy",
    "mcc": "MCC",
}
DRAWN = ("precision", "recall", "f1")
CHART = Switch("chart", "In the chart", {"by-detector": "By detector", "plane": "As a plane"})
# What a figure's link leads to: those that it is a share of.
BEHIND = {"precision": {"result": "detected"}, "recall": {"truth": "error"}}
# A figure below that of chance in the same group.
WORSE = 3
NOT_SAID = "none named"

# The rows of intervals and bounds by what tells the rows of figures apart, and by figure.
Beside = Mapping[tuple[tuple[object, ...], str], Row]
# Of kinds of error, by field and value.
Titles = Mapping[tuple[str, str], str]


def figures(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """A line a detector and group, chance and people among them."""
    page = Detectors(asked)
    rows = page.kept(tables[0], "f1")
    beside = {(_key(page, row), row["figure"]): row for row in tables[1]}
    chance = {page.group(row): row for row in rows if row["strategy"] == "random"}
    lines = [_line(page, row, beside, chance) for row in rows]
    named = (Column(TITLES[name], name) for name in TITLES)
    columns = (*page.heads(), Column("Items", "n"), Column("No verdict", "invalid"), *named)
    words = (
        "Positive is an error. An item without a verdict counts as “no error” in precision, recall,"
        " F1 and MCC, and as wrong in accuracy; below a figure stands what it could be had all"
        " missing verdicts been wrong, or right. A detector that was asked by all four prompts is"
        " the mean of their figures, which says nothing of other wordings. Shaded: below the random"
        " baseline. 95 % intervals allow for items of one question being alike."
    )
    grid = grids.of_lines("How well errors are detected", columns, lines)
    draw = _plane if asked.said(CHART.name) == "plane" else _dots
    return Shown(grid, draw(page, rows, beside), words)


def kinds(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """A line a detector, group and kind of error."""
    page = Detectors(asked)
    rows = page.kept(tables[0], "recall")
    titles = _titles(asked)
    lines = [_of_kind(page, row, titles) for row in rows]
    columns = (
        *page.heads(),
        Column("Kind of error", "kind", is_number=False),
        Column("Errors", "n"),
        Column("No verdict", "missing"),
        Column("Detected", "detected"),
        Column("Recall", "recall"),
    )
    words = (
        "Recall among the items that people hold for an error of this kind; an item may be of"
        " several kinds and then counts in each. What has no verdict was not detected. Of a"
        " detector that was asked by four prompts it is the mean, and what is detected a mean, too."
    )
    grid = grids.of_lines("Recall by kind of error", columns, lines)
    return Shown(grid, _kinds_drawn(page, rows, titles), words)


def _kinds_drawn(page: Detectors, rows: Rows, titles: Titles) -> Drawing | None:
    labels = page.labels(rows)
    room = detectors.first(labels)
    return dots.drawing(
        [
            (_kind(row, titles), label, _recall(row))
            for row, label in zip(rows, labels, strict=True)
            if label in room
        ],
        title="Recall",
        caption=f"Recall by kind of error, with 95 % intervals.{detectors.cut(labels)}",
        series="Kind of error",
    )


def _key(page: Detectors, row: Row) -> tuple[object, ...]:
    return row["run"], row["endpoint"], row["strategy"], *(row[one] for one in page.fields)


def _line(page: Detectors, row: Row, beside: Beside, chance: Mapping[str, Row]) -> Line:
    is_ours = row["strategy"] not in BASELINES
    other = chance.get(page.group(row)) if is_ours else None
    counts = (
        cells.count(row["n"], page.items(row)),
        detectors.number(row["invalid"], page.items(row, result="missing")),
    )
    found = [
        _figure(page, name, row, beside.get((_key(page, row), name)), other) for name in TITLES
    ]
    return page.line(row, (*counts, *found), "" if is_ours else "published")


def _figure(page: Detectors, name: str, row: Row, beside: Row | None, other: Row | None) -> Cell:
    value = row[name]
    if value is None:
        return Cell(reason=row["reason"] or "one kind alone")
    write = written.share if name != "mcc" else _plain
    low, high = (beside["low"], beside["high"]) if beside else (None, None)
    is_worse = other is not None and other[name] is not None and value < other[name]
    said = [row["reason"] or "", _bounds(name, beside), "below random" if is_worse else ""]
    return Cell(
        write(value),
        value,
        page.items(row, **BEHIND.get(name, {})),
        interval="" if low is None else f"{write(low)} to {write(high)}",
        reason="" if beside is None else beside["reason"] or "",
        heat=WORSE if is_worse else None,
        note="; ".join(part for part in said if part),
    )


def _plain(value: float | None) -> str:
    return cells.number(value).text


def _bounds(name: str, beside: Row | None) -> str:
    if beside is None or not beside["missing"] or beside["lowest"] is None:
        return ""
    write = written.share if name != "mcc" else _plain
    low, high = write(beside["lowest"]), write(beside["highest"])
    return f"{low} to {high} with the missing" if low != high else ""


def _dots(page: Detectors, rows: Rows, beside: Beside) -> Drawing | None:
    labels = page.labels(rows)
    room = detectors.first(labels)
    drawn: list[Dot] = []
    faint: list[Dot] = []
    for row, label in zip(rows, labels, strict=True):
        found = drawn if row["strategy"] not in BASELINES else faint
        for name in DRAWN if label in room else ():
            one = _estimate(row, name, beside.get((_key(page, row), name)))
            found.append((TITLES[name], label, one))
    caption = (
        "Precision, recall and F1 of each detector, with 95 % intervals; baselines are faint."
        f"{detectors.cut(labels)}"
    )
    title = "Precision, recall, F1"
    return dots.drawing(drawn, title=title, caption=caption, series="Figure", faint=faint)


def _estimate(row: Row, name: str, beside: Row | None) -> Estimate:
    low, high = (beside["low"], beside["high"]) if beside else (None, None)
    return Estimate(row[name], low, high, row["n"])


def _plane(page: Detectors, rows: Rows, beside: Beside) -> Drawing | None:
    # Altair takes a second to import; nothing else should wait for it.
    from charts import tradeoff

    points = [_point(page, row, beside) for row in rows if row["f1"] is not None]
    caption = (
        "Precision against recall, with 95 % intervals; along a dashed line F1 is the same."
        " Baselines are faint. Each group is a mark of its own: narrow down to one to compare."
    )
    return Drawing(tradeoff.points(points), caption) if points else None


def _point(page: Detectors, row: Row, beside: Beside) -> "Point":
    from charts.tradeoff import Point

    precision, recall = (
        _estimate(row, name, beside.get((_key(page, row), name)))
        for name in ("precision", "recall")
    )
    return Point(
        detector=page.series(row),
        group=page.group(row) or "All",
        n=row["n"],
        f1=row["f1"],
        precision=row["precision"],
        precision_low=precision.low,
        precision_high=precision.high,
        recall=row["recall"],
        recall_low=recall.low,
        recall_high=recall.high,
        faint=row["strategy"] in BASELINES,
    )


def _titles(asked: Asked) -> Titles:
    """Kinds in the words that people saw."""
    return {
        (field.name, str(option.value)): option.title
        for field in detecting_kinds.fields(asked.project)
        for option in field.options
    }


def _kind(row: Row, titles: Titles) -> str:
    """A value that the task does not offer any more is its own title."""
    field, value = row["field"], row["value"]
    return titles.get((field, value), value or NOT_SAID)


def _recall(row: Row) -> Estimate:
    return Estimate(row["recall"], row["low"], row["high"], row["n"], row["reason"] or "")


def _of_kind(page: Detectors, row: Row, titles: Titles) -> Line:
    which = {"truth": "error", "kind": f"{row['field']}:{row['value']}"}
    detected = row["detected"]
    found = cells.rate(
        row,
        cells.Rate("recall", "low", "high", "n", missing=""),
        href=page.items(row, **which),
    )
    return page.line(
        row,
        (
            cells.words(_kind(row, titles)),
            cells.count(row["n"], page.items(row, **which)),
            detectors.number(row["missing"], page.items(row, **which, result="missing")),
            Cell(reason=row["reason"] or "")
            if detected is None
            else detectors.number(detected, page.items(row, **which, result="detected")),
            replace(found, n=None),
        ),
    )


VIEWS = (
    View(
        slug="figures",
        title="Detectors",
        asks=(Ask("detector"), Ask("detector_ranges")),
        show=figures,
        studies={"001": places("table 4", "table 6", "table 8", by=("task", "response_model"))},
        empty=detectors.EMPTY,
        switches=(detectors.ROWS, CHART),
        groups=offered.fields,
    ),
    View(
        slug="kinds",
        title="Kinds of error",
        asks=(Ask("error_kinds"),),
        show=kinds,
        studies={},
        empty=detectors.EMPTY,
        switches=(detectors.ROWS,),
        groups=offered.fields,
    ),
    *detector_changes.VIEWS,
)
