"""How far is the annotation work? Tables that leads see on pages of their own; here they are for
files, the API and the command. They ignore runs."""

from collections.abc import Callable, Iterable, Sequence

from annotation.exporting import tables as annotation_tables
from annotation.models import Project
from annotation.reports import category_board, generation_board
from annotation.reports import tables as lead_tables
from annotation.reports.grouping import Grouping
from judging.models import Run
from judging.results.columns import Rows, Table, plain
from judging.results.counted import GroupBy


def _from_report(
    name: str,
    columns: Iterable[str],
    rows: Callable[[Project, Grouping], Rows],
    group_by: GroupBy | None = None,
    *,
    about: str,
) -> Table:
    """A report over the groups of items by one field: the last of the requested fields that the
    project's items can be grouped by."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
        return rows(project, lead_tables.find_grouping(project, list(by)))

    return Table(name, plain(*columns), made, group_by=group_by, at_once=None, about=about)


BY_ONE_FIELD = GroupBy("one field of the items")
FORECAST = _from_report(
    "forecast",
    lead_tables.FORECAST,
    lead_tables.forecast_table,
    BY_ONE_FIELD,
    about="A row for all items and one per group: labels that are left, and the range of the "
    "day on which they will be done.",
)
CHOICES = _from_report(
    "choices",
    lead_tables.CHOICES,
    lead_tables.choices_table,
    about="A row per day and answer: how many labels gave it.",
)
DROPPED = _from_report(
    "dropped",
    lead_tables.DROPPED_COLUMNS,
    lead_tables.dropped_table,
    about="A row per final label that keeps items out of the final set, and per reason that "
    "labels give: how many items.",
)
BOARD = _from_report(
    "board",
    category_board.IN_FILES,
    lead_tables.board_table,
    BY_ONE_FIELD,
    about="A row per group: the share valid and other figures of the category board, with "
    "their intervals.",
)
MAKING = Table(
    "making",
    plain(*generation_board.COLUMNS),
    lambda project, runs, by: generation_board.table_rows(project),
    at_once=None,
    about="A row per category and generator: what was generated, and how its review came out.",
)
CATEGORIES = Table(
    "categories",
    plain("ability", "category", "items"),
    lambda project, runs, by: annotation_tables.TABLES["categories"].rows(project),
    at_once=None,
    about="A row per category: the number of its items, duplicates included.",
)
