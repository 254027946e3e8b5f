"""Tables of the work of people: how far they agree, how fast they are, what is left to do."""

from collections.abc import Callable, Sequence

from annotation import ledger
from annotation.leads import agreement, making
from annotation.leads.grouping import Grouping
from annotation.models import Project
from judging.models import Run
from judging.results.kinds import Rows, RowsFunction, TableKind, from_project


def from_report(rows: Callable[[Project, Grouping], Rows]) -> RowsFunction:
    """A report of leads as a table; runs are nothing to it, and `by` names a group of items."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
        return rows(project, ledger.find_grouping(project, list(by)))

    return made


LEAD_TABLES: dict[str, TableKind] = {
    "agreement": TableKind(
        agreement.COLUMNS, False, from_project(agreement.agreement_rows), at_once=None
    ),
    "confusion": TableKind(
        agreement.CONFUSION_COLUMNS, False, from_project(agreement.confusion_rows), at_once=None
    ),
    "pace": TableKind(ledger.PACE_COLUMNS, False, from_report(ledger.pace_table), at_once=None),
    "forecast": TableKind(
        ledger.FORECAST_COLUMNS, False, from_report(ledger.forecast_table), at_once=None
    ),
    "choices": TableKind(
        ledger.CHOICES_COLUMNS, False, from_report(ledger.choices_table), at_once=None
    ),
    "dropped": TableKind(
        ledger.DROPPED_COLUMNS, False, from_report(ledger.dropped_table), at_once=None
    ),
    "making": TableKind(making.COLUMNS, False, from_project(making.table_rows), at_once=None),
    "board": TableKind(ledger.BOARD_COLUMNS, False, from_report(ledger.board_table), at_once=None),
}
