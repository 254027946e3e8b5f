"""Effects of other ways to ask: wording and order of the options (study 001, section 4.3), and
samples or steps compared with prompt 1-A (tables 5 and 7)."""

from collections.abc import Sequence
from typing import Any

from judging.results import drilldown
from judging.results.views import cells, detector_lines, group_fields
from judging.results.views.cells import Cell, Column, GridLine, Row
from judging.results.views.detector_lines import DetectorPage
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

BIASES = {
    "wording": "Wording: type 1 minus type 2",
    "order-1": "Order, type 1: A minus B",
    "order-2": "Order, type 2: A minus B",
}
SIDE_TITLES = {"wording": ("type 1", "type 2"), "order-1": ("A", "B"), "order-2": ("A", "B")}
BIAS_FIGURES = {"recall": "Recall", "precision": "Precision"}
FIGURES = {"f1": "F1", "precision": "Precision", "recall": "Recall", "accuracy": "Accuracy"}
DRAWN = ("f1", "precision", "recall")
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
    "No evaluator was asked with two of the four prompts. Start runs of detect-1a, "
    "detect-1b, detect-2a and detect-2b at one endpoint over the same items."
)
EMPTY_CHANGES = (
    "No evaluator was asked both with prompt 1-A and in another way. Start runs of detect-1a "
    "and of detect-steps or detect-self-consistency at one endpoint over the same items."
)


def build_biases(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per evaluator and group: recall and precision with either way to ask."""
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
    """One line per run and group: its figures minus those of its evaluator's prompt 1-A."""
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
    drawn = [rows[name] for rows in found.values() for name in DRAWN]
    shifts = [
        (label, FIGURES[row["figure"]], row, row["n"])
        for row, label in zip(drawn, page.labels(drawn), strict=True)
    ]
    title = "Effect of steps, samples and prompts"
    return ViewContent(cells.build_grid(title, columns, lines), _drawing(shifts, caption), words)


def _labels(page: DetectorPage, rows: Sequence[Row]) -> list[str]:
    """Labels of an evaluator with several prompts, without run numbers."""
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
    # Imported here, since Altair takes a second and nothing else should wait for it.
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


VIEWS = (
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
