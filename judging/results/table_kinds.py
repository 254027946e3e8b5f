"""Kinds of `results` tables: their columns, and how they are computed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from annotation.models import Project
from judging.models import Run

# The number of outcomes that the database can sum in a tenth of a second, and the number that can
# be bootstrapped, permuted or searched in that time.
SUM_LIMIT, DRAW_LIMIT = 50_000, 5_000
# The same if every group is bootstrapped several times.
GROUP_DRAW_LIMIT = 500
RUN_COLUMNS = ("run", "endpoint", "strategy")

Rows = Iterable[dict[str, Any]]
RowsFunction = Callable[[Project, Sequence[Run], Sequence[str]], Rows]


@dataclass(frozen=True)
class TableKind:
    """A `results` table: its columns besides the fields it is grouped by, and how it is computed.

    `before` are columns between the run and the fields; a table that is `of_items` has no run.
    `at_once`: with up to this many outcomes (or items) it is computed while the user waits, with
    more by a worker; None means always at once. `of_people`: the table also depends on labels, or
    on items that are not in the runs. `groups`: the kind of fields it is grouped by, if that can be
    checked in advance. `with_duplicates`: if the table is grouped by ability and category, it has
    rows for duplicates.
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
    """Wrap the function of a table that needs only the runs and the fields."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
        return rows(runs, by)

    return made


def from_runs_ungrouped(rows: Callable[[Sequence[Run]], Rows]) -> RowsFunction:
    """Wrap the function of a table that needs only the runs and has its own groups."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
        return rows(runs)

    return made


def from_project(rows: Callable[[Project], Rows]) -> RowsFunction:
    """Wrap the function of a table that needs no run and has its own groups."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
        return rows(project)

    return made


def from_items(rows: Callable[[Project, Sequence[str]], Rows]) -> RowsFunction:
    """Wrap the function of a table of a project's items, which needs no run."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
        return rows(project, by)

    return made


def summed_table(
    columns: Sequence[str], rows: Callable[[Sequence[Run], Sequence[str]], Rows]
) -> TableKind:
    """Describe a table that the database sums from outcomes, by fields of the outcomes."""
    return TableKind(
        ("total", "missing", *columns),
        True,
        from_runs(rows),
        at_once=SUM_LIMIT,
        of_people=False,
        groups="outcomes",
        with_duplicates=True,
    )
