"""Detector: how well are errors found, and which kinds of them? (study 001, tables 4, 6 and 8)

It also shows what changes with another way to ask: another wording or order of the options (section
4.3), or samples or steps, compared with prompt 1-A (tables 5 and 7).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from annotation.templatetags import figures as written
from judging.results import drilldown, recall_by_kind
from judging.results.views import cells, detector_lines, dot_charts, group_fields
from judging.results.views.cells import Cell, Column, GridLine, Row
from judging.results.views.detector_lines import BASELINES, DetectorPage
from judging.results.views.dot_charts import Dot
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    StudyFigure,
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
# A figure links to the items of its denominator.
ITEM_FILTERS = {"precision": {"result": "detected"}, "recall": {"truth": "error"}}
# The heat of a figure that is below that of chance in the same group.
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
        "“Error” is the positive class. An item without a verdict counts as “no error” in "
        "precision, recall, F1 and MCC, and as wrong in accuracy. The range below a figure: its "
        "values if all missing verdicts were wrong or all were right. If a detector was asked "
        "with all four prompts, its figures are means over the prompts and do not generalise to "
        "other wordings. Shaded: below the random baseline. 95 % intervals are clustered by "
        "question."
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
        "Recall among the items labelled with an error of this category; an item with several "
        "categories counts in each. An item without a verdict counts as not detected. If a "
        "detector was asked with four prompts, recall and detected are means over the prompts."
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
    """The title of an error category; a value that is no longer an option is used as its own
    title."""
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


BIASES = {
    "wording": "Wording: type 1 minus type 2",
    "order-1": "Order, type 1: A minus B",
    "order-2": "Order, type 2: A minus B",
}
SIDE_TITLES = {"wording": ("type 1", "type 2"), "order-1": ("A", "B"), "order-2": ("A", "B")}
BIAS_FIGURES = {"recall": "Recall", "precision": "Precision"}
FIGURES = {"f1": "F1", "precision": "Precision", "recall": "Recall", "accuracy": "Accuracy"}
DRAWN_CHANGES = ("f1", "precision", "recall")
BIAS_SWITCH = Switch("bias", "Comparison", BIASES)
_BY = ("task", "response_model")
PROMPTS = (
    *study_figures("section 4.3", by=_BY),
    *study_figures("figure 10", by=_BY),
    StudyFigure("figure 11", by=_BY, query={"bias": "order-1"}),
)
CHANGES = (
    StudyFigure("table 5", ("detect-self-consistency", "detect-1a"), _BY),
    StudyFigure("table 7", ("detect-steps", "detect-1a"), _BY),
)
EMPTY_BIAS = (
    "No evaluator was asked with two or more of the four prompts. Start runs of detect-1a, "
    "detect-1b, detect-2a and detect-2b at one endpoint over the same items."
)
EMPTY_CHANGES = (
    "No evaluator was asked both with prompt 1-A and in another way. Start runs of detect-1a "
    "and of detect-steps or detect-self-consistency at one endpoint over the same items."
)


def build_biases(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per evaluator and group: recall and precision for each way to ask."""
    page, bias = DetectorPage(asked), asked.switch_value(BIAS_SWITCH.name)
    found: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in page.ordered(row for row in tables[0] if row["bias"] == bias):
        key = (row["endpoint"], *(row[one] for one in page.fields))
        found.setdefault(key, {})[row["figure"]] = row
    lines = [_bias_line(page, rows) for rows in found.values()]
    counts = (Column("Items", "n"), Column("No verdict", "missing"))
    columns = (*page.heads(), *counts, *_sides(bias))
    words = (
        "In percentage points, on the items that all prompts of the evaluator share. Type 1 "
        "asks for errors, type 2 asks whether the response is valid; A and B differ in which "
        "answer is named first. Last row: mean and standard deviation over evaluators and "
        "groups, as in study 001, section 4.3; its figure 11 draws B minus A."
    )
    drawn = [row for rows in found.values() for row in rows.values() if row["endpoint"]]
    caption = f"{BIASES[bias]}: differences of recall and precision, in points."
    shifts = [
        (label, BIAS_FIGURES[row["figure"]], row, row["total"])
        for row, label in zip(drawn, _labels(page, drawn), strict=True)
    ]
    return ViewContent(
        cells.build_grid(BIASES[bias], columns, lines), _drawing(shifts, caption), words
    )


def build_changes(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per run and group: its figures minus its evaluator's figures with prompt 1-A."""
    page = DetectorPage(asked)
    found: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in page.ordered(tables[0]):
        key = (row["run"], *(row[one] for one in page.fields))
        found.setdefault(key, {})[row["figure"]] = row
    lines = [_change_line(page, rows) for rows in found.values()]
    columns = (
        *page.heads(),
        Column("Against run", "against", is_number=False),
        Column("Items in both", "n"),
        *(Column(title, name) for name, title in FIGURES.items()),
    )
    words = (
        "Each run minus prompt 1-A of the same evaluator, in percentage points, on the items "
        "that both evaluated. Star: the figure is higher with p < 0.1 (one-sided, 1,000 "
        "paired bootstrap draws of clusters, not corrected for multiple comparisons, as in "
        "study 001). With many rows, some stars are due to chance."
    )
    caption = "Differences from prompt 1-A in points, with 95 % intervals."
    drawn = [rows[name] for rows in found.values() for name in DRAWN_CHANGES]
    shifts = [
        (label, FIGURES[row["figure"]], row, row["n"])
        for row, label in zip(drawn, page.labels(drawn), strict=True)
    ]
    title = "Effect of steps, samples and prompts"
    return ViewContent(cells.build_grid(title, columns, lines), _drawing(shifts, caption), words)


def _labels(page: DetectorPage, rows: Sequence[Row]) -> list[str]:
    """The labels of an evaluator with several prompts, without run numbers."""
    return page.labels([{**row, "run": None} for row in rows])


def _sides(bias: str) -> list[Column]:
    first, second = SIDE_TITLES[bias]
    return [
        column
        for name, title in BIAS_FIGURES.items()
        for column in (
            Column(f"{title}, {first}", f"{name}-first"),
            Column(f"{title}, {second}", f"{name}-second"),
            Column(f"{title}: difference", f"{name}-by", cells.POINTS_UNIT),
        )
    ]


def _bias_line(page: DetectorPage, rows: dict[str, Row]) -> GridLine:
    first = next(iter(rows.values()))
    is_mean = first["endpoint"] is None
    name = cells.text_cell(first["endpoint"] or "")
    if is_mean:
        n = first["cells"]
        name = cells.text_cell("Mean", note=f"over {n} pair{'s' * (n > 1)} of evaluator and group")
    heads = (*page.line(first, ()).cells[:-1], name)
    counts = (cells.count_cell(first["total"]), detector_lines.items_cell(first["missing"]))
    figures = [cell for name in BIAS_FIGURES for cell in _bias_cells(rows[name])]
    return GridLine((*heads, *counts, *figures), "published" if is_mean else "")


def _bias_cells(row: Row) -> tuple[Cell, Cell, Cell]:
    difference = cells.points_cell(row["difference"], reason=row["reason"])
    if row["sd"] is not None:
        difference = Cell(difference.text, difference.place, note=f"± {100 * row['sd']:.1f}")
    elif row["reason"] and difference.is_there:
        difference = Cell(difference.text, difference.place, note=row["reason"])
    return cells.percent_cell(row["first"]), cells.percent_cell(row["second"]), difference


def _change_line(page: DetectorPage, rows: dict[str, Row]) -> GridLine:
    row = rows["f1"]
    left = f"{row['left_out']} in one only" if row["left_out"] else ""
    base = page.runs[row["against"]]
    both = page.items(row, **{drilldown.SHARED_WITH: str(base.number)})
    counts = (cells.run_cell(base), cells.count_cell(row["n"], both, note=left))
    return page.line(row, (*counts, *(_change_cell(rows[name]) for name in FIGURES)))


def _change_cell(row: Row) -> Cell:
    cell = cells.points_cell(row["difference"], row["low"], row["high"], row["reason"])
    if not cell.is_there:
        return cell
    before, after = (cells.percent_cell(row[name]).text for name in ("before", "after"))
    star = "*" if row["starred"] else ""
    note = f"{before} to {after}" + (f"; {row['reason']}" if row["reason"] else "")
    return Cell(
        f"{cell.text}{star}", cell.place, interval=cell.interval, reason=cell.reason, note=note
    )


def _drawing(shifts: Sequence[tuple[str, str, Row, int]], caption: str) -> ChartSpec | None:
    # Altair takes a second to import; nothing else should wait for it.
    from charts import shifts as charted

    labels = [label for label, _, row, _ in shifts if row["difference"] is not None]
    room = detector_lines.select_first(labels)
    found = [
        charted.Shift(label, figure, 100 * row["difference"], *_ends(row), n)
        for label, figure, row, n in shifts
        if row["difference"] is not None and label in room
    ]
    if not found:
        return None
    spec = charted.draw_shifts(found, title="Difference in points")
    return ChartSpec(spec, f"{caption}{detector_lines.caption_cut(labels)}")


def _ends(row: Row) -> tuple[float | None, float | None]:
    low, high = row.get("low"), row.get("high")
    return (None, None) if low is None or high is None else (100 * low, 100 * high)


CHANGE_VIEWS = (
    ResultView(
        slug="prompts",
        title="Wording and order",
        asks=(TableQuery("bias"),),
        build=build_biases,
        studies={"001": PROMPTS},
        empty=EMPTY_BIAS,
        switches=(BIAS_SWITCH,),
        groups=group_fields.list_fields,
    ),
    ResultView(
        slug="changes",
        title="Steps and samples",
        asks=(TableQuery("changes"),),
        build=build_changes,
        studies={"001": CHANGES},
        empty=EMPTY_CHANGES,
        groups=group_fields.list_fields,
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
    *CHANGE_VIEWS,
)
