"""Detector: scores of error detection, and recall by category (study 001, tables 4, 6 and 8)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from annotation.templatetags import figures as written
from judging.results import recall_by_kind
from judging.results.views import cells, detector_changes, detector_lines, dot_charts, group_fields
from judging.results.views.cells import Cell, Column, GridLine, Row
from judging.results.views.detector_lines import BASELINES, DetectorPage
from judging.results.views.dot_charts import Dot
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    Switch,
    TableQuery,
    ViewContent,
    study_figures,
)
from stats.estimates import Estimate

if TYPE_CHECKING:
    from charts.tradeoff import PrecisionRecall

TITLES = {
    "f1": "F1",
    "precision": "Precision",
    "recall": "Recall",
    "accuracy": "Accuracy",
    "mcc": "MCC",
}
DRAWN = ("precision", "recall", "f1")
CHART_SWITCH = Switch(
    "chart", "In the chart", {"by-detector": "By detector", "plane": "Precision and recall"}
)
# The items that a figure's link shows: those that it is a share of.
ITEM_FILTERS = {"precision": {"result": "detected"}, "recall": {"truth": "error"}}
# The heat of a figure below that of chance in the same group.
SHADES = 3
NOT_NAMED = "none named"

# The rows of intervals and bounds, by the key of a line and by figure.
RangeRows = Mapping[tuple[tuple[object, ...], str], Row]
# Titles of error categories by field and value.
KindTitles = Mapping[tuple[str, str], str]


def build_figures(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per detector and group, including chance and people."""
    page = DetectorPage(asked)
    rows = page.kept(tables[0], "f1")
    beside = {(_key(page, row), row["figure"]): row for row in tables[1]}
    chance = {page.group(row): row for row in rows if row["strategy"] == "random"}
    lines = [_line(page, row, beside, chance) for row in rows]
    named = (Column(TITLES[name], name) for name in TITLES)
    columns = (*page.heads(), Column("Items", "n"), Column("No verdict", "invalid"), *named)
    words = (
        "Positive = error. An item without a verdict counts as “no error” in precision, "
        "recall, F1 and MCC, and as wrong in accuracy. Below a figure: its value if all "
        "missing verdicts were wrong, or all right. A detector asked with all four prompts "
        "gets the mean of their figures, which does not generalise to other wordings. "
        "Shaded: below the random baseline. 95 % intervals are clustered by question."
    )
    grid = cells.build_grid("Error detection", columns, lines)
    draw = _draw_plane if asked.switch_value(CHART_SWITCH.name) == "plane" else _draw_dots
    return ViewContent(grid, draw(page, rows, beside), words)


def build_kinds(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per detector, group and error category."""
    page = DetectorPage(asked)
    rows = page.kept(tables[0], "recall")
    titles = _titles(asked)
    lines = [_kind_line(page, row, titles) for row in rows]
    columns = (
        *page.heads(),
        Column("Error category", "kind", is_number=False),
        Column("Errors", "n"),
        Column("No verdict", "missing"),
        Column("Detected", "detected"),
        Column("Recall", "recall"),
    )
    words = (
        "Recall among the items labelled with an error of this category; an item with "
        "several categories counts in each. An item without a verdict counts as not "
        "detected. For a detector asked with four prompts, recall and detected are means "
        "over the prompts."
    )
    grid = cells.build_grid("Recall by error category", columns, lines)
    return ViewContent(grid, _draw_kinds(page, rows, titles), words)


def _draw_kinds(page: DetectorPage, rows: Rows, titles: KindTitles) -> ChartSpec | None:
    labels = page.labels(rows)
    room = detector_lines.select_first(labels)
    return dot_charts.draw_dots(
        [
            (_kind(row, titles), label, _recall(row))
            for row, label in zip(rows, labels, strict=True)
            if label in room
        ],
        title="Recall",
        caption="Recall by error category, with 95 % intervals."
        + detector_lines.caption_cut(labels),
        series="Error category",
    )


def _key(page: DetectorPage, row: Row) -> tuple[object, ...]:
    return row["run"], row["endpoint"], row["strategy"], *(row[one] for one in page.fields)


def _line(page: DetectorPage, row: Row, beside: RangeRows, chance: Mapping[str, Row]) -> GridLine:
    is_ours = row["strategy"] not in BASELINES
    other = chance.get(page.group(row)) if is_ours else None
    counts = (
        cells.count_cell(row["n"], page.items(row)),
        detector_lines.items_cell(row["invalid"], page.items(row, result="missing")),
    )
    found = [
        _figure(page, name, row, beside.get((_key(page, row), name)), other) for name in TITLES
    ]
    return page.line(row, (*counts, *found), "" if is_ours else "published")


def _figure(page: DetectorPage, name: str, row: Row, beside: Row | None, other: Row | None) -> Cell:
    value = row[name]
    if value is None:
        return Cell(reason=row["reason"] or "one category only")
    write = written.share if name != "mcc" else _format_value
    low, high = (beside["low"], beside["high"]) if beside else (None, None)
    is_worse = other is not None and other[name] is not None and value < other[name]
    said = [row["reason"] or "", _bounds_note(name, beside), "below random" if is_worse else ""]
    return Cell(
        write(value),
        value,
        page.items(row, **ITEM_FILTERS.get(name, {})),
        interval="" if low is None else f"{write(low)} to {write(high)}",
        reason="" if beside is None else beside["reason"] or "",
        heat=SHADES if is_worse else None,
        note="; ".join(part for part in said if part),
    )


def _format_value(value: float | None) -> str:
    return cells.number_cell(value).text


def _bounds_note(name: str, beside: Row | None) -> str:
    if beside is None or not beside["missing"] or beside["lowest"] is None:
        return ""
    write = written.share if name != "mcc" else _format_value
    low, high = write(beside["lowest"]), write(beside["highest"])
    return f"{low} to {high} with missing" if low != high else ""


def _draw_dots(page: DetectorPage, rows: Rows, beside: RangeRows) -> ChartSpec | None:
    labels = page.labels(rows)
    room = detector_lines.select_first(labels)
    drawn: list[Dot] = []
    faint: list[Dot] = []
    for row, label in zip(rows, labels, strict=True):
        found = drawn if row["strategy"] not in BASELINES else faint
        for name in DRAWN if label in room else ():
            one = _estimate(row, name, beside.get((_key(page, row), name)))
            found.append((TITLES[name], label, one))
    caption = (
        "Precision, recall and F1 of each detector, with 95 % intervals; baselines are faint."
        f"{detector_lines.caption_cut(labels)}"
    )
    title = "Precision, recall, F1"
    return dot_charts.draw_dots(drawn, title=title, caption=caption, series="Figure", faint=faint)


def _estimate(row: Row, name: str, beside: Row | None) -> Estimate:
    low, high = (beside["low"], beside["high"]) if beside else (None, None)
    return Estimate(row[name], low, high, row["n"])


def _draw_plane(page: DetectorPage, rows: Rows, beside: RangeRows) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import tradeoff

    points = [_point(page, row, beside) for row in rows if row["f1"] is not None]
    caption = (
        "Precision against recall, with 95 % intervals. Dashed lines: equal F1. Baselines "
        "are faint. Each group has its own mark; filter to one group to compare."
    )
    return ChartSpec(tradeoff.draw_tradeoff(points), caption) if points else None


def _point(page: DetectorPage, row: Row, beside: RangeRows) -> "PrecisionRecall":
    from charts.tradeoff import PrecisionRecall

    precision, recall = (
        _estimate(row, name, beside.get((_key(page, row), name)))
        for name in ("precision", "recall")
    )
    return PrecisionRecall(
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


def _titles(asked: PageQuery) -> KindTitles:
    """The titles of error categories as annotators saw them."""
    return {
        (field.name, str(option.value)): option.title
        for field in recall_by_kind.error_kind_fields(asked.project)
        for option in field.options
    }


def _kind(row: Row, titles: KindTitles) -> str:
    """The title of an error category; a value that is no longer an option is its own title."""
    field, value = row["field"], row["value"]
    return titles.get((field, value), value or NOT_NAMED)


def _recall(row: Row) -> Estimate:
    return Estimate(row["recall"], row["low"], row["high"], row["n"], row["reason"] or "")


def _kind_line(page: DetectorPage, row: Row, titles: KindTitles) -> GridLine:
    which = {"truth": "error", "kind": f"{row['field']}:{row['value']}"}
    detected = row["detected"]
    found = cells.rate_cell(
        row,
        cells.RateColumns("recall", "low", "high", "n", missing=""),
        href=page.items(row, **which),
    )
    return page.line(
        row,
        (
            cells.text_cell(_kind(row, titles)),
            cells.count_cell(row["n"], page.items(row, **which)),
            detector_lines.items_cell(row["missing"], page.items(row, **which, result="missing")),
            Cell(reason=row["reason"] or "")
            if detected is None
            else detector_lines.items_cell(detected, page.items(row, **which, result="detected")),
            replace(found, n=None),
        ),
    )


VIEWS = (
    ResultView(
        slug="figures",
        title="Detectors",
        asks=(TableQuery("detector"), TableQuery("detector_ranges")),
        build=build_figures,
        studies={
            "001": study_figures("table 4", "table 6", "table 8", by=("task", "response_model"))
        },
        empty=detector_lines.EMPTY,
        switches=(detector_lines.ROWS_SWITCH, CHART_SWITCH),
        groups=group_fields.list_fields,
    ),
    ResultView(
        slug="kinds",
        title="Error categories",
        asks=(TableQuery("error_kinds"),),
        build=build_kinds,
        studies={},
        empty=detector_lines.EMPTY,
        switches=(detector_lines.ROWS_SWITCH,),
        groups=group_fields.list_fields,
    ),
    *detector_changes.VIEWS,
)
