"""Tables of figures, requested by name: the same for page, file, API and command.

`request_table` answers at once. It computes small tables in the request. A worker computes large
tables, once for each state of their data; until then `request_table` reports the progress.
`compute_or_fetch` waits for the figures instead. Both give the same rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast, Length
from django.utils import timezone
from django.utils.datastructures import MultiValueDict
from django.utils.text import get_text_list

from annotation.models import Item, Project
from annotation.reports.grouping import GROUPING_COLUMNS, MAX_LENGTH, Grouping
from judging.models import Outcome, Run, StoredFigure
from judging.results import cache, run_marks
from judging.results.cache import CacheKey
from judging.results.columns import DEFAULT_BY, RUN_NAME, Table, parse_fields
from judging.results.counted import UnknownField
from judging.results.tables import RESULT_TABLES, find_table

# Query parameters for the whole table, not for its rows.
TABLE_PARAMETERS = ("run", "by")
# More than any page offers. For each field that is unknown, all items are read.
MOST_FIELDS = 25
# A table has up to five rows for each run and group. A million rows would take gigabytes to show.
MOST_GROUPS = 20_000
# A longer value names no group. It may have a megabyte, which each row of the group would repeat.
LONGEST_GROUP = 1_000


class UnknownRun(ValueError):
    """A run that the project does not have."""


def describe_grouping() -> str:
    """By which fields each table can be grouped, in a sentence for help texts."""
    found: dict[str, list[str]] = {}
    for name, table in RESULT_TABLES.items():
        if table.group_by:
            found.setdefault(table.group_by.words, []).append(name)
    return "; ".join(f"{get_text_list(names, 'and')}: {words}" for words, names in found.items())


@dataclass(frozen=True)
class FigureTable:
    """A table with its ordered columns and its rows; `at` is the time when a stored table was
    computed."""

    table: str
    columns: tuple[str, ...]
    rows: list[dict[str, Any]]
    at: datetime | None = None


@dataclass(frozen=True)
class PendingTable:
    """A table that a worker computes. `figure` is the id to send in a notification, and `since` is
    the time of the request.

    The worker has done `done` of `total` parts of a `step`; all three are empty before the start.
    `failure` says why computing failed; a worker tries again later. `last` is the table from before
    the latest change, if it exists.
    """

    figure: int
    table: str
    columns: tuple[str, ...]
    since: datetime | None
    step: str
    done: int
    total: int
    failure: str
    last: FigureTable | None


@dataclass(frozen=True)
class TableRequest:
    """A checked request for a table."""

    project: Project
    table: Table
    runs: list[Run]
    by: list[str]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.table.list_file_columns(self.by)

    def wish(self) -> CacheKey:
        """The cache key: everything that the rows depend on, and nothing else."""
        runs = tuple(run.pk for run in self._resting)
        by = tuple(self.by) if self.table.group_by else ()
        return CacheKey(self.project, self.table.name, runs, by)

    def state(self) -> str:
        """A fingerprint of the data behind the rows: a stored table is current as long as the
        fingerprint is the same."""
        return cache.compute_fingerprint(self.project, self._resting, self.table)

    def rows(self) -> list[dict[str, Any]]:
        """Compute the rows now, however long it takes. Raises `UnknownField` for more than
        `MOST_GROUPS` groups, and for fields with texts (`check_length_of_groups`)."""
        if self.table.group_by:
            self.check_length_of_groups()
            if self.table.group_by.combines and not self.is_small():
                self._check_number_of_groups()
        return list(self.table.rows(self.project, self.runs, self.by))

    def is_small(self) -> bool:
        """True if the table is small enough to compute while the user waits."""
        most = self.table.at_once
        if most is None:
            return True
        if self.table.of_items:
            return Item.objects.in_project(self.project).all()[: most + 1].count() <= most
        return Outcome.objects.filter(run__in=self.runs)[: most + 1].count() <= most

    def check_length_of_groups(self) -> None:
        """Raise `UnknownField` for fields with values longer than `LONGEST_GROUP`; in a sealed
        project, whose figures contain no texts, for all that are too long to name a group."""
        most = MAX_LENGTH if self.project.sealed else LONGEST_GROUP
        items = Item.objects.in_project(self.project)
        own = [name for name in self.by if name not in GROUPING_COLUMNS]
        # Each question reads the fields of all items, and what is measured of items is no field.
        if not own or not items.filter(fields__has_any_keys=own).exists():
            return
        for name in own:
            value = Cast(Grouping(name, name).expression(), TextField())
            if items.alias(length=Length(value)).filter(length__gt=most).exists():
                raise UnknownField(
                    f"The field {name} has values of more than {most:,} characters, which "
                    "name no groups. Choose other fields."
                )

    def _check_number_of_groups(self) -> None:
        groups = {
            f"group_{place}": Grouping(name, name).expression("item__")
            for place, name in enumerate(self.by)
        }
        found = Outcome.objects.filter(run__in=self._resting).order_by()
        if found.values("run", **groups).distinct()[: MOST_GROUPS + 1].count() > MOST_GROUPS:
            raise UnknownField(
                f"Grouped by {', '.join(self.by)}, the items of these runs have more than "
                f"{MOST_GROUPS:,} groups. Choose other fields, or fewer runs."
            )

    @property
    def _resting(self) -> list[Run]:
        """The runs that the rows depend on."""
        return [] if self.table.of_items else self.runs


def request_table(
    project: Project, table: str, query: MultiValueDict[str, str]
) -> FigureTable | PendingTable:
    """Return a table of `RESULT_TABLES` for `?run=N&run=M&by=field,field` if it is cached or quick
    to compute, else the progress of a worker; `&column=value` selects the rows with that value.

    Call `tasks.notify_of_figure` afterwards; otherwise a worker starts some seconds later. Raises
    `UnknownRun` for an unknown run, `UnknownField` for an unknown field.
    """
    found = fetch_or_enqueue(
        build_request(
            project,
            RESULT_TABLES[table],
            select_project_runs(project, query),
            parse_fields(query.get("by", DEFAULT_BY)),
        )
    )
    if isinstance(found, FigureTable):
        return filter_rows(found, query)
    return replace(found, last=found.last and filter_rows(found.last, query))


def build_request(
    project: Project, table: Table, runs: Sequence[Run], by: Sequence[str]
) -> TableRequest:
    """Check a request. Raises `UnknownField` for an unknown field, for one with the same name as a
    column of the table, for more than `MOST_FIELDS`, and for one with texts of a sealed project."""
    if len(by) > MOST_FIELDS:
        raise UnknownField(f"A table is grouped by at most {MOST_FIELDS} fields. Name fewer.")
    if table.group_by:
        table.group_by.check(project, by)
    columns = table.list_file_columns(by)
    if taken := [name for name in by if columns.count(name) > 1]:
        raise UnknownField(
            f"The table {table.name} has a column {', '.join(taken)} of its own. Import the field "
            "under another name to group by it."
        )
    made = TableRequest(project, table, list(runs), list(by))
    if table.group_by and project.sealed:
        made.check_length_of_groups()  # now: the table may be stored from before the seal
    return made


def fetch_or_enqueue(
    asked: TableRequest, now: datetime | None = None
) -> FigureTable | PendingTable:
    """The requested table, as from `request_table`."""
    wish = asked.wish()
    # Only large tables are stored, so if this one is, there is no need to count.
    found = cache.find(wish) if asked.table.at_once is not None else None
    if found is None and asked.is_small():
        return _build_table(asked, asked.rows())
    now, state = now or timezone.now(), asked.state()
    if found and found.state == state:
        return _to_table(asked, found)
    if found is None or not (found.wanted_at or found.rests(now)):
        found = cache.enqueue(wish, now)
    last = _to_table(asked, found) if found.made_at else None
    return PendingTable(
        figure=found.pk,
        table=asked.table.name,
        columns=asked.columns,
        since=found.wanted_at,
        step=found.step,
        done=found.done,
        total=found.total,
        failure=found.failure,
        last=last,
    )


def compute_or_fetch(asked: TableRequest) -> FigureTable:
    """Compute or load the requested table; a large table is stored for the next time."""
    if asked.is_small():
        return _build_table(asked, asked.rows())
    wish, state = asked.wish(), asked.state()
    found = cache.find(wish)
    if not found or found.state != state:
        found = cache.compute_and_store(wish, state, asked.rows)
    return _to_table(asked, found)


def list_due(now: datetime) -> list[int]:
    """List the ids of figures that wait for a worker."""
    return cache.list_due(now)


def run_job(figure: int) -> bool:
    """Compute requested figures; return True if they were computed."""
    return cache.run_job(figure, _compute_key)


def select_project_runs(project: Project, query: MultiValueDict[str, str]) -> list[Run]:
    """The runs in `?run=N&run=M`, or the default runs (`run_marks`) if the query names none."""
    return select_runs(run_marks.load_marked_runs(project), query)


def select_runs(runs: Iterable[Run], query: MultiValueDict[str, str]) -> list[Run]:
    """Do the same as `select_project_runs`, but choose from all judging runs of a project."""
    named = set(query.getlist("run"))
    if not named:
        return run_marks.select_default(runs)
    if not all(number.isdecimal() and len(number) < 10 for number in named):
        raise UnknownRun("Give the number of a run.")
    numbers = set(map(int, named))
    found = [run for run in runs if run.number in numbers]
    if len(found) < len(numbers):
        raise UnknownRun("Some of these runs are not in the project.")
    return found


def matches_query(row: Mapping[str, Any], names: Iterable[str], query: Mapping[str, str]) -> bool:
    """True if a row matches the query in these columns; "" or no value in the query matches all
    rows."""
    return all(_is_asked(row[name], query.get(name, "")) for name in names if name in row)


def _is_asked(value: Any, said: str) -> bool:
    if said in ("", format_value(value)):
        return True
    # A whole number of a scale is 3.0 in a row, and people write 3.
    return isinstance(value, float) and said == f"{value:g}"


def filter_rows(made: FigureTable, query: Mapping[str, str]) -> FigureTable:
    """Keep only the rows of the table that match the query."""
    names = [name for name in made.columns if name not in TABLE_PARAMETERS]
    return replace(made, rows=[row for row in made.rows if matches_query(row, names, query)])


def drop_run_numbers(made: FigureTable) -> FigureTable:
    """The table without the numbers of its runs. A table in which a run has no name, or two runs
    have one name, is not changed."""
    pairs = {name.replace("run", RUN_NAME, 1): name for name in ("run", "run_a", "run_b")}
    held = {name: number for name, number in pairs.items() if name in made.columns}
    runs = {(row[name], row[number]) for row in made.rows for name, number in held.items()}
    named = [name for name, number in runs if number is not None]
    if None in named or len({*named}) < len(named):
        return made
    return replace(
        made,
        columns=tuple(one for one in made.columns if one not in held.values()),
        rows=[{k: v for k, v in row.items() if k not in held.values()} for row in made.rows],
    )


def format_value(value: Any) -> str:
    """Format a value of a row as in a URL."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _compute_key(wish: CacheKey) -> tuple[str, Iterable[dict[str, Any]]]:
    runs = list(Run.objects.for_results().filter(pk__in=wish.runs))
    found = build_request(wish.project, find_table(wish.table), runs, wish.by)
    return found.state(), found.rows()


def _to_table(asked: TableRequest, figure: StoredFigure) -> FigureTable:
    return _build_table(asked, cache.load_rows(figure), figure.made_at)


def _build_table(
    asked: TableRequest, rows: list[dict[str, Any]], at: datetime | None = None
) -> FigureTable:
    """The table with the names of its runs, which are not stored with its rows."""
    named = asked.table.with_run_names(rows, asked.runs)
    return FigureTable(asked.table.name, asked.columns, named, at)
