"""Tables of the work of people: how far they agree, how fast they are, what is left to do."""

from collections.abc import Callable, Sequence

from annotation.models import Project
from annotation.reports import agreement, generation_board, tables
from annotation.reports.grouping import Grouping
from judging.models import Run
from judging.results.table_kinds import Rows, RowsFunction, TableKind, from_project


def from_report(rows: Callable[[Project, Grouping], Rows]) -> RowsFunction:
    """A report of leads as a table; runs are nothing to it, and `by` names a group of items."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
        return rows(project, tables.find_grouping(project, list(by)))

    return made


LEAD_TABLES: dict[str, TableKind] = {
    "agreement": TableKind(
        agreement.COLUMNS, False, from_project(agreement.agreement_rows), at_once=None
    ),
    "confusion": TableKind(
        agreement.CONFUSION_COLUMNS, False, from_project(agreement.confusion_rows), at_once=None
    ),
    "pace": TableKind(tables.PACE_COLUMNS, False, from_report(tables.pace_table), at_once=None),
    "forecast": TableKind(
        tables.FORECAST_COLUMNS, False, from_report(tables.forecast_table), at_once=None
    ),
    "choices": TableKind(
        tables.CHOICES_COLUMNS, False, from_report(tables.choices_table), at_once=None
    ),
    "dropped": TableKind(
        tables.DROPPED_COLUMNS, False, from_report(tables.dropped_table), at_once=None
    ),
    "making": TableKind(
        generation_board.COLUMNS, False, from_project(generation_board.table_rows), at_once=None
    ),
    "board": TableKind(tables.BOARD_COLUMNS, False, from_report(tables.board_table), at_once=None),
}
