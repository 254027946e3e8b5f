"""Stacked bar charts, shared by several pages: the items of each group, divided into kinds."""

from collections.abc import Callable, Mapping, Sequence

from judging.models import Run
from judging.results.views import cells, run_group_tables
from judging.results.views.cells import Cell, Column, Row
from judging.results.views.page_parts import ChartSpec, PageQuery, Rows

CellFunction = Callable[[Run, Row], Cell]
# A chart with more bars is unreadable; the table has all of them.
MOST_BARS = 60


def draw_groups(
    asked: PageQuery, rows: Rows, kinds: Mapping[str, str], title: str, caption: str
) -> ChartSpec | None:
    """Draw bars of these kinds, given by column names; the result is None without rows."""
    words = f"{caption}, as shares of the items with a usable reply; the numbers are items."
    return draw_bars(
        [(run_group_tables.chart_label(asked, row), row) for row in rows], kinds, title, words
    )


def draw_bars(
    rows: Sequence[tuple[str, Row]], kinds: Mapping[str, str], title: str, caption: str
) -> ChartSpec | None:
    """Do the same as `draw_groups` for rows that are paired with the names of their bars."""
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import stacked

    parts = [
        stacked.BarPart(group, kinds[name], row[name])
        for group, row in rows[:MOST_BARS]
        for name in kinds
    ]
    if not parts:
        return None
    drawn = stacked.draw_stacked_bars(parts, kinds=list(kinds.values()), title=title)
    return ChartSpec(drawn, caption + cut_note(len(rows)))


def cut_note(number: int) -> str:
    """A note for the caption if the chart shows only the first rows."""
    if number <= MOST_BARS:
        return ""
    return f" The first {MOST_BARS} of {number} rows; choose another grouping to see the rest."


def make_share_cell(name: str, detail: str = "") -> CellFunction:
    """A cell with a count, its share of the parsed items, and a link to the items with that
    detail."""

    def cell(run: Run, row: Row) -> Cell:
        href = cells.items_url(run, row, result="parsed", detail=detail or name)
        return cells.share_cell(row[name], row["parsed"], href)

    return cell


def _parsed_cell(run: Run, row: Row) -> Cell:
    return cells.count_cell(row["parsed"], cells.items_url(run, row, result="parsed"))


def _missing_cell(run: Run, row: Row) -> Cell:
    return cells.count_cell(row["missing"], cells.items_url(run, row, result="missing"))


# The columns before the kinds: parsed and missing items.
COUNT_COLUMNS = (
    (Column("Parsed", "parsed"), _parsed_cell),
    (Column("Missing", "missing"), _missing_cell),
)
