"""Tables of figures as asked for by name: the same for page, file, API and command.

`ask` answers at once: small tables are made in the request, large ones by a worker, once for each
state of what they rest on; until then it says how far that is. `make` waits for the figures
instead. Both give the same rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.datastructures import MultiValueDict

from annotation.leads import grouping
from annotation.models import Item, Project
from judging.models import Outcome, Run, StoredFigure
from judging.results import (
    aligning_scores,
    blindspots,
    detecting,
    keeping,
    measured,
    reports,
    run_marks,
    states,
    tables,
)
from judging.results.counting import UnknownField, check
from judging.results.keeping import Wish
from judging.results.kinds import Figures

BY = "ability,category"
GROUPED = (
    "undetected, scores, score_changes, verdicts, order_effect, repeats, explanations, doses, "
    f"penalties and missing: {', '.join(reports.FIELDS)}, or empty for one row a run; detector, "
    "detector_ranges, error_kinds, changes, bias, "
    f"majority and dataset: {', '.join(grouping.COLUMNS)} and any field that the items "
    "have of their own, such as task or response_model, or empty; alignment, alignment_groups, "
    "ceiling, alt_test, by_score, pairs and points: these and answer_length, short or long by the "
    "median number of words of the expected answer; forecast and board: one field of the items; "
    f"blindspots: columns and fields of items, and {', '.join(measured.MEASURES)}"
)

# What a query says of the whole table, and not of its rows.
NAMED_OTHERWISE = ("run", "by")


class UnknownRun(ValueError):
    """A run that the project does not have."""


@dataclass(frozen=True)
class Made:
    """A table with its columns in their order and its rows; `at`, when a stored one was made."""

    table: str
    columns: tuple[str, ...]
    rows: list[dict[str, Any]]
    at: datetime | None = None


@dataclass(frozen=True)
class Making:
    """A table that a worker makes: `figure` is what to ring for, `since` when it was asked for.

    `done` of `total` of a `step` in words are done, all empty before it is begun. `failure` says
    why it could not be made; it is tried again later. `last` is the table as it was before
    something changed, if it ever was made.
    """

    figure: int
    table: str
    columns: tuple[str, ...]
    since: datetime | None
    step: str
    done: int
    total: int
    failure: str
    last: Made | None


@dataclass(frozen=True)
class Asked:
    """What a query asks for, found and checked."""

    project: Project
    table: str
    runs: list[Run]
    by: list[str]

    @property
    def columns(self) -> tuple[str, ...]:
        return tables.columns(self.table, self.by)

    def wish(self) -> Wish:
        """What the rows follow from, and nothing else."""
        runs = tuple(run.pk for run in self._resting)
        by = tuple(self.by) if self._kind.grouped or self._kind.groups else ()
        return Wish(self.project, self.table, runs, by)

    def state(self) -> str:
        return states.of(self.project, self._resting, of_people=self._kind.of_people)

    def rows(self) -> list[dict[str, Any]]:
        return list(self._kind.rows(self.project, self.runs, self.by))

    @property
    def may_be_large(self) -> bool:
        return self._kind.at_once is not None

    def is_small(self) -> bool:
        """Whether it is made while one waits: it rests on few outcomes, or items."""
        most = self._kind.at_once
        if most is None:
            return True
        if self._kind.of_items:
            return Item.objects.in_project(self.project).all()[: most + 1].count() <= most
        return Outcome.objects.filter(run__in=self.runs)[: most + 1].count() <= most

    @property
    def _resting(self) -> list[Run]:
        """The runs that the rows rest on."""
        return [] if self._kind.of_items else self.runs

    @property
    def _kind(self) -> Figures:
        return tables.RESULTS[self.table]


def make(project: Project, table: str, query: MultiValueDict[str, str]) -> Made:
    """A table of `tables.RESULTS` for `?run=N&run=M&by=field,field`, however long it takes; with
    `&column=value` the rows alone that have it.

    Raises `UnknownRun` for a run, `reports.UnknownField` for a field that is not there.
    """
    found = asked(project, table, chosen(project, query), fields(query.get("by", BY)))
    return narrowed(made(found), query)


def ask(project: Project, table: str, query: MultiValueDict[str, str]) -> Made | Making:
    """The same, if it is there or made in no time; else how far a worker is with it.

    Ring for a worker then (`tasks.ring_for`); without that it begins some seconds later. Raises
    as `make` does.
    """
    found = answer(asked(project, table, chosen(project, query), fields(query.get("by", BY))))
    if isinstance(found, Made):
        return narrowed(found, query)
    return replace(found, last=found.last and narrowed(found.last, query))


def asked(project: Project, table: str, runs: Sequence[Run], by: Sequence[str]) -> Asked:
    """What is asked for, checked. Raises `reports.UnknownField`."""
    groups = tables.RESULTS[table].groups
    if groups == "items":
        detecting.groupings(project, by)
    elif groups == "slices":
        blindspots.check(project, by)
    elif groups == "answers":
        aligning_scores.named(project, by)
    elif groups == "outcomes":
        check(by)
    _check_names(table, by)
    return Asked(project, table, list(runs), list(by))


def _check_names(table: str, by: Sequence[str]) -> None:
    """Raise `UnknownField` for a field that a row could not hold beside a column of its name."""
    columns = tables.columns(table, by)
    if taken := [name for name in by if columns.count(name) > 1]:
        raise UnknownField(
            f"The table {table} has a column {', '.join(taken)} of its own. Give the items' field"
            " another name to group by it."
        )


def answer(asked: Asked, now: datetime | None = None) -> Made | Making:
    """What is asked for, as `ask` gives it."""
    wish = asked.wish()
    # What is stored was large once: then nothing needs to be counted.
    found = keeping.found(wish) if asked.may_be_large else None
    if found is None and asked.is_small():
        return Made(asked.table, asked.columns, asked.rows())
    now, state = now or timezone.now(), asked.state()
    if found and found.state == state:
        return _stored(asked, found)
    if found is None or not (found.wanted_at or found.rests(now)):
        found = keeping.want(wish, now)
    last = _stored(asked, found) if found.made_at else None
    return Making(
        figure=found.pk,
        table=asked.table,
        columns=asked.columns,
        since=found.wanted_at,
        step=found.step,
        done=found.done,
        total=found.total,
        failure=found.failure,
        last=last,
    )


def made(asked: Asked) -> Made:
    """What is asked for, as `make` gives it; a large table is stored for the next time."""
    if asked.is_small():
        return Made(asked.table, asked.columns, asked.rows())
    wish, state = asked.wish(), asked.state()
    found = keeping.found(wish)
    if not found or found.state != state:
        found = keeping.make_now(wish, state, asked.rows)
    return _stored(asked, found)


def due(now: datetime) -> list[int]:
    """The ids of figures that wait for a worker."""
    return keeping.due(now)


def work(figure: int) -> bool:
    """Make figures that are waited for; whether they were made."""
    return keeping.work(figure, _of_wish)


def fields(text: str) -> list[str]:
    """The fields that `field,field` names, each once: a database may refuse a column twice."""
    names = (name.strip() for name in text.split(","))
    return list(dict.fromkeys(name for name in names if name))


def chosen(project: Project, query: MultiValueDict[str, str]) -> list[Run]:
    """The runs that `?run=N&run=M` names, the usual ones (`run_marks`) where it names none."""
    return among(run_marks.marked_runs(project), query)


def among(runs: Iterable[Run], query: MultiValueDict[str, str]) -> list[Run]:
    """The same, of all runs of a project that judge."""
    named = set(query.getlist("run"))
    if not named:
        return run_marks.usual(runs)
    if not all(number.isdecimal() and len(number) < 10 for number in named):
        raise UnknownRun("A run is named by its number.")
    numbers = set(map(int, named))
    found = [run for run in runs if run.number in numbers]
    if len(found) < len(numbers):
        raise UnknownRun("The project has not all of these runs.")
    return found


def fits(row: Mapping[str, Any], names: Iterable[str], query: Mapping[str, str]) -> bool:
    """Whether a row has what a query says of these columns; "" and no word of one are anything."""
    return all(query.get(name, "") in ("", word(row[name])) for name in names if name in row)


def narrowed(made: Made, query: Mapping[str, str]) -> Made:
    """The rows alone that have what the query says of their columns."""
    names = [name for name in made.columns if name not in NAMED_OTHERWISE]
    return replace(made, rows=[row for row in made.rows if fits(row, names, query)])


def word(value: Any) -> str:
    """A value of a row as an address says it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _of_wish(wish: Wish) -> tuple[str, Iterable[dict[str, Any]]]:
    runs = list(Run.objects.for_results().filter(pk__in=wish.runs))
    found = asked(wish.project, wish.table, runs, wish.by)
    return found.state(), found.rows()


def _stored(asked: Asked, figure: StoredFigure) -> Made:
    return Made(asked.table, asked.columns, keeping.rows_of(figure), figure.made_at)
