"""Tables of the work of people: how far they agree, how fast they are, what is left to do."""

from collections.abc import Callable, Sequence

from annotation import ledger
from annotation.leads import agreement, making
from annotation.leads.grouping import Grouping
from annotation.models import Project
from judging.models import Run
from judging.results.kinds import Figures, Make, Rows, of_project


def of_leads(rows: Callable[[Project, Grouping], Rows]) -> Make:
    """A report of leads as a table; runs are nothing to it, and `by` names a group of items."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
        return rows(project, ledger.by_named(project, list(by)))

    return made


OF_LEADS: dict[str, Figures] = {
    "agreement": Figures(agreement.COLUMNS, False, of_project(agreement.rows), at_once=None),
    "confusion": Figures(
        agreement.CONFUSION_COLUMNS, False, of_project(agreement.confusions), at_once=None
    ),
    "pace": Figures(ledger.PEOPLE, False, of_leads(ledger.people), at_once=None),
    "forecast": Figures(ledger.GROUPS, False, of_leads(ledger.groups), at_once=None),
    "choices": Figures(ledger.CHOICES, False, of_leads(ledger.choices), at_once=None),
    "dropped": Figures(ledger.DROPPED, False, of_leads(ledger.dropped), at_once=None),
    "making": Figures(making.COLUMNS, False, of_project(making.rows), at_once=None),
    "board": Figures(ledger.BOARD, False, of_leads(ledger.categories), at_once=None),
}
