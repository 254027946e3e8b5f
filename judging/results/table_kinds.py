"""What a `results` table is: its columns, and how it is made."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from annotation.models import Project
from judging.models import Run

# Outcomes that the database sums within a tenth of a second, and ones that are drawn, dealt or
# searched through.
SUM_LIMIT, DRAW_LIMIT = 50_000, 5_000
# Ones of which every group is drawn several times over.
GROUP_DRAW_LIMIT = 500
RUN_COLUMNS = ("run", "endpoint", "strategy")

Rows = Iterable[dict[str, Any]]
RowsFunction = Callable[[Project, Sequence[Run], Sequence[str]], Rows]


@dataclass(frozen=True)
class TableKind:
    """A `results` table: its columns beside the fields it is grouped by, and how it is made.

    `before` are columns that stand between the run and the fields; a table that is `of_items` has
    no run. `at_once`: of so many outcomes (or items) it is made while one waits, of more by a
    worker; None for one that is always made at once. `of_people`: it rests on labels as well, or
    on items beside those of the runs. `groups`: whose fields it is grouped by, if that can be
    checked before it is made. `with_duplicates`: by ability and category it has rows of duplicates.
    """

    columns: tuple[str, ...]
    grouped: bool
    rows: RowsFunction
    before: tuple[str, ...] = ()
    of_items: bool = False
    at_once: int | None = DRAW_LIMIT
    of_people: bool = True
    groups: Literal["outcomes", "items", "slices", "answers", ""] = ""
    with_duplicates: bool = False


def from_runs(rows: Callable[[Sequence[Run], Sequence[str]], Rows]) -> RowsFunction:
    """A table that needs the runs alone."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
        return rows(runs, by)

    return made


def from_runs_ungrouped(rows: Callable[[Sequence[Run]], Rows]) -> RowsFunction:
    """A table that needs the runs alone, and has groups of its own."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
        return rows(runs)

    return made


def from_project(rows: Callable[[Project], Rows]) -> RowsFunction:
    """A table that needs no run, and has groups of its own."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
        return rows(project)

    return made


def from_items(rows: Callable[[Project, Sequence[str]], Rows]) -> RowsFunction:
    """A table of the items of a project, which needs no run."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
        return rows(project, by)

    return made


def summed_table(
    columns: Sequence[str], rows: Callable[[Sequence[Run], Sequence[str]], Rows]
) -> TableKind:
    """A table that the database sums up out of outcomes, by the fields that those have."""
    return TableKind(
        ("total", "missing", *columns),
        True,
        from_runs(rows),
        at_once=SUM_LIMIT,
        of_people=False,
        groups="outcomes",
        with_duplicates=True,
    )
