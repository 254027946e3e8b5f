"""Missing: unusable replies, their causes, and the resulting bounds of the rates."""

from collections.abc import Sequence
from dataclasses import replace

from judging.models import Run
from judging.results import undetected
from judging.results.views import (
    cells,
    dot_charts,
    run_group_tables,
    stacked_charts,
    undetected_beside,
)
from judging.results.views.cells import Cell, Column, Row
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    TableQuery,
    ViewContent,
)
from judging.strategies import frames
from stats.estimates import Estimate

NOTHING_MISSING = "nothing is missing"


def build_causes(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per cause, with the rate and its bounds over all values of the missing replies."""
    rows = undetected_beside.add_rates(tables[0], tables[1])
    grid = run_group_tables.build_table(
        asked,
        "Missing replies by cause",
        rows,
        (
            (stacked_charts.COUNT_COLUMNS[0][0], _parsed_cell),
            (Column("Cause", "cause", is_number=False), _cause_cell),
            (Column("Items", "n"), _items_cell),
            (Column("If all missing were detected", "lowest"), _bound_cell("lowest")),
            (undetected_beside.UNDETECTED_COLUMN[0], _rate_cell),
            (Column("If all missing were undetected", "highest"), _bound_cell("highest")),
            (Column("By category, p", "p"), _dependence_cell),
        ),
    )
    words = (
        "A reply that could not be used never counts as a verdict. The two bounds are the "
        "undetected rate if all missing items were detected, or all undetected. A small p "
        "suggests that missing replies depend on the category. For error detection and "
        "ratings, see the bounds on the pages Detector and Against people."
    )
    return ViewContent(grid, _drawing(asked, rows), words)


def _cause_cell(run: Run, row: Row) -> Cell:
    return cells.text_cell(row["cause"] or NOTHING_MISSING)


def _parsed_cell(run: Run, row: Row) -> Cell:
    """The number of parsed items; without a link for ratings, which are neither detected nor
    undetected."""
    if _has_rate(row):
        return stacked_charts.COUNT_COLUMNS[0][1](run, row)
    judges = frames.get_item_needs(run.strategy.strategy()) == "detection"
    return cells.count_cell(row["parsed"], _items_url(run, row, result="parsed") if judges else "")


def _items_cell(run: Run, row: Row) -> Cell:
    if not row["cause"]:
        return cells.count_cell(0)
    return cells.count_cell(row["n"], _items_url(run, row, result="missing", cause=row["cause"]))


def _items_url(run: Run, row: Row, **which: str) -> str:
    """The URL of the list of items; detectors' items have no ability to filter by."""
    if _has_rate(row):
        return cells.items_url(run, row, **which)
    group = {field: row[field] for field in undetected.FIELDS if row.get(field)}
    return cells.outcomes_url(run, **group, **which, counted="yes")


def _has_rate(row: Row) -> bool:
    """True if the row has an undetected rate; detectors and ratings have none."""
    return row["lowest"] is not None


def _rate_cell(run: Run, row: Row) -> Cell:
    _, cell = undetected_beside.UNDETECTED_COLUMN
    return cell(run, row) if _has_rate(row) else Cell()


def _bound_cell(name: str) -> stacked_charts.CellFunction:
    """A cell with a bound over all items, with usable and missing replies."""

    def cell(run: Run, row: Row) -> Cell:
        return replace(cells.percent_cell(row[name]), n=row["total"]) if _has_rate(row) else Cell()

    return cell


def _dependence_cell(run: Run, row: Row) -> Cell:
    return cells.p_value_cell(row["p"], row["p_reason"])


def _drawing(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    """Draw one mark per run and group, however many causes there are."""
    groups = {undetected_beside.row_key(row): row for row in rows if row["of_rate"]}
    found = [
        (
            "",
            run_group_tables.chart_label(asked, row),
            Estimate(row["of_rate"]["rate"], row["lowest"], row["highest"], row["parsed"]),
        )
        for row in groups.values()
    ]
    caption = (
        "Undetected rates with bounds. The lower bound counts every missing reply as a "
        "detection, the upper bound counts none as a detection. These are not confidence "
        "intervals."
    )
    return dot_charts.draw_dots(found, title="Undetected rate", caption=caption)


VIEWS = (
    ResultView(
        slug="causes",
        title="Causes and bounds",
        asks=(TableQuery("missing"), TableQuery("undetected")),
        build=build_causes,
        studies={},
        empty="The chosen runs have no outcomes of items with a final label.",
        switches=(run_group_tables.group_switch(),),
    ),
)
