"""What all pages with stacked bars share: items of a group that divide into kinds."""

from collections.abc import Callable, Mapping, Sequence

from judging.models import Run
from judging.views.results import cells, flat
from judging.views.results.cells import Row
from judging.views.results.grids import Cell, Column
from judging.views.results.kinds import Asked, Drawing, Rows

Draw = Callable[[Run, Row], Cell]
# Past so many bars nobody reads a chart; the table has them all.
MOST_BARS = 60


def drawing(
    asked: Asked, rows: Rows, kinds: Mapping[str, str], title: str, caption: str
) -> Drawing | None:
    """Bars of these kinds, by the names of their columns; None without a row."""
    words = f"{caption}, as shares of the items with a usable reply; the numbers are items."
    return bars([(flat.label(asked, row), row) for row in rows], kinds, title, words)


def bars(
    rows: Sequence[tuple[str, Row]], kinds: Mapping[str, str], title: str, caption: str
) -> Drawing | None:
    """The same, each row with the name of its bar."""
    # Altair takes a second to import; nothing else should wait for it.
    from charts import stacked

    parts = [
        stacked.Part(group, kinds[name], row[name])
        for group, row in rows[:MOST_BARS]
        for name in kinds
    ]
    if not parts:
        return None
    drawn = stacked.bars(parts, kinds=list(kinds.values()), title=title)
    return Drawing(drawn, caption + of_first(len(rows)))


def of_first(number: int) -> str:
    """What a caption adds where a chart shows the first of so many lines alone."""
    if number <= MOST_BARS:
        return ""
    return f" The first {MOST_BARS} of {number} lines; group otherwise to see the rest."


def share(name: str, detail: str = "") -> Draw:
    """A count with its share of the parsed items, which leads to those that have the detail."""

    def cell(run: Run, row: Row) -> Cell:
        href = cells.items(run, row, result="parsed", detail=detail or name)
        return cells.share(row[name], row["parsed"], href)

    return cell


def _parsed(run: Run, row: Row) -> Cell:
    return cells.count(row["parsed"], cells.items(run, row, result="parsed"))


def _missing(run: Run, row: Row) -> Cell:
    return cells.count(row["missing"], cells.items(run, row, result="missing"))


# What stands before the kinds: of how many items they are, and how many are missing.
COUNTED = ((Column("Parsed", "parsed"), _parsed), (Column("Missing", "missing"), _missing))
