"""The undetected rate next to the values of another table for the same run and group."""

from typing import Any

from judging.models import Run
from judging.results.views import cells, page_parts
from judging.results.views.cells import Cell, Column, RateColumns, Row
from judging.results.views.page_parts import Rows

KEY_FIELDS = ("run", "ability", "category", "source_ability", "score_invariant")


def row_key(row: Row) -> tuple[Any, ...]:
    """The key of a row: its run and its group."""
    return tuple(row.get(name) for name in KEY_FIELDS)


def add_rates(rows: Rows, undetected: Rows) -> Rows:
    """Add to each row, as `of_rate`, the row of `undetected` for the same run and group."""
    found = {row_key(row): row for row in undetected}
    return [{**row, "of_rate": found.get(row_key(row))} for row in rows]


def _undetected_cell(run: Run, row: Row) -> Cell:
    bad = "low" if page_parts.is_invariant(row) else "high"
    href = cells.items_url(run, row, result="undetected")
    return cells.rate_cell(row["of_rate"], RateColumns(bad=bad), href=href)


UNDETECTED_COLUMN = (Column("Undetected rate", "rate"), _undetected_cell)
