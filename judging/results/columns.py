"""The grammar of result tables: a `Table` of `Column`s, declared once in `results/tables/NAME.py`.

The command, the API and files have all columns and the rows as they are: fractions of 1, unrounded.
A page shows the columns that have a title, each as its kind formats it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

from annotation.models import Project
from annotation.templatetags import figures as written
from judging.models import Run
from judging.results import cells, counted
from judging.results.cells import Cell, Header, Row
from stats.estimates import Estimate

if TYPE_CHECKING:
    from judging.results.page_parts import PageQuery

Rows = Iterable[dict[str, Any]]
# The query that selects the items behind a figure; a function reads its value from the row, and
# `{name}` in a text stands for the row's value in that column.
Link = Mapping[str, str | Callable[[Row], str]]

# The number of outcomes that the database can sum in a tenth of a second, and the number that can
# be bootstrapped, permuted or searched in that time.
SUM_LIMIT, DRAW_LIMIT = 10_000, 5_000
# The same if every group is bootstrapped several times.
GROUP_DRAW_LIMIT = 500
DEFAULT_BY = "ability,category"


def parse_fields(text: str) -> list[str]:
    """Parse the fields in `field,field`. Repetitions are removed, since some databases refuse
    them. PostgreSQL raises an error for the character U+0000, which no name of a field has."""
    names = (name.strip() for name in text.replace("\0", "\N{REPLACEMENT CHARACTER}").split(","))
    return list(dict.fromkeys(name for name in names if name))


def is_invariant(row: Row) -> bool:
    """True if a row is about score-invariant items. Items that were meant to be score-invariant,
    but are labelled as errors, have rows of their own."""
    return bool(row["score_invariant"])


def bad_if_undetected(row: Row) -> str:
    """Which undetected rates are bad: "high", but "low" on score-invariant items."""
    return "low" if is_invariant(row) else "high"


def bad_if_detected(row: Row) -> str:
    """Which detection rates are bad: "low", but "high" on score-invariant items."""
    return "high" if is_invariant(row) else "low"


def items(**which: str | Callable[[Row], str]) -> Link:
    """Link a figure to the items behind it, for example `items(result="missing")`."""
    return which


class Leading:
    """The leading columns of lines, and the links of their figures. This kind has no columns; its
    figures link to the items of the row's run and group."""

    def __init__(self, asked: "PageQuery", rows: Sequence[Row]) -> None:
        self.asked = asked
        self.runs = asked.runs_by_number

    def headers(self) -> list[Header]:
        """The headers of the leading columns."""
        return []

    def cells(self, row: Row) -> list[Cell]:
        """The leading cells of a row."""
        return []

    def kind(self, row: Row) -> str:
        """The kind of a row's line, as in `GridLine`."""
        return ""

    def items_url(self, row: Row, **which: str) -> str:
        """The URL of the items behind a figure of the row."""
        return cells.items_url(self.runs[row["run"]], row, **which)


@dataclass(frozen=True)
class Column:
    """A column of a table. This kind is only in files and the API; the other kinds are also on
    pages.

    `name` is its name in files and in the API, `title` its header on pages and `unit` stands below.
    `link` leads to the items behind a figure, and `note` is a remark below it. A page is sorted by
    the column with `sort` in its URL, or with `name` if that is empty. `shown_as` says how a page
    shows the kind.
    """

    name: str
    title: str = ""
    link: Link | None = None
    _: KW_ONLY
    unit: str = ""
    note: Callable[[Row], str] | None = None
    sort: str = ""
    is_number: ClassVar[bool] = True
    shown_as: ClassVar[str] = ""

    def header(self) -> Header:
        return Header(self.title, self.sort or self.name, self.unit, self.is_number)

    def cell(self, row: Row, of: Leading) -> Cell:
        """The cell of a row on a page with these leading columns."""
        raise NotImplementedError(f"The column {self.name} is shown on no page.")

    def href(self, row: Row, of: Leading) -> str:
        """The URL of the items behind the figure; "" without a link."""
        return _follow(self.link, row, of)

    def note_of(self, row: Row) -> str:
        return self.note(row) if self.note else ""


def _follow(link: Link | None, row: Row, of: Leading) -> str:
    if link is None:
        return ""
    return of.items_url(
        row,
        **{
            name: value(row) if callable(value) else value.format_map(row)
            for name, value in link.items()
        },
    )


class Count(Column):
    """A number of items."""

    shown_as: ClassVar[str] = "count"

    def cell(self, row: Row, of: Leading) -> Cell:
        return cells.count_cell(row[self.name], self.href(row, of), note=self.note_of(row))


@dataclass(frozen=True)
class MeanCount(Column):
    """A number of items, or its mean over prompts with one decimal. If there is no number, the
    column `reason` says why."""

    shown_as: ClassVar[str] = "count, or its mean"
    _: KW_ONLY
    reason: str = "reason"

    def cell(self, row: Row, of: Leading) -> Cell:
        value = row[self.name]
        if value is None:
            return Cell(reason=row[self.reason] or "")
        href = self.href(row, of)
        if float(value).is_integer():
            return cells.count_cell(int(value), href)
        return Cell(f"{value:,.1f}", value, href)


class Number(Column):
    """A number to two decimals, such as a mean."""

    shown_as: ClassVar[str] = "number"

    def cell(self, row: Row, of: Leading) -> Cell:
        return cells.number_cell(row[self.name], note=self.note_of(row))


class Percent(Column):
    """A fraction of 1 in percent, without an n of its own."""

    shown_as: ClassVar[str] = "percentage"

    def cell(self, row: Row, of: Leading) -> Cell:
        return cells.percent_cell(row[self.name])


@dataclass(frozen=True)
class Figure(Column):
    """A figure to two decimals (or in percent), with the interval and the reason in the columns
    named after it. A difference is `signed`."""

    shown_as: ClassVar[str] = "figure with its interval"
    _: KW_ONLY
    in_percent: bool = False
    signed: bool = False

    def cell(self, row: Row, of: Leading) -> Cell:
        build = cells.percent_figure_cell if self.in_percent else cells.figure_cell
        href = "" if row[self.name] is None else self.href(row, of)
        found = build(row, self.name, href, note=self.note_of(row))
        return cells.with_sign(found) if self.signed else found


@dataclass(frozen=True)
class Share(Column):
    """A part of the items in the column `part_of`: a count with its share. If there is no count,
    the column `reason` says why, if there is one."""

    shown_as: ClassVar[str] = "count with its share"
    _: KW_ONLY
    part_of: str = "parsed"
    reason: str = ""

    def cell(self, row: Row, of: Leading) -> Cell:
        if self.reason and row[self.name] is None:
            return Cell(reason=row[self.reason] or "")
        return cells.share_cell(row[self.name], row[self.part_of], self.href(row, of))


@dataclass(frozen=True)
class Rate(Column):
    """A rate with its interval and its number of items, by the names of their columns.

    The columns of the interval start with `prefix`: "first_" for first_low, first_high and
    first_reason, unless `reason` names another column. `missing` is "" if the rate leaves no items
    out. `bad` says which values are bad: "high", "low", or "" for neither. With `rest`, 1 minus the
    value is shown.

    `link` leads to the items that the rate counts, and `n_link` to those that it is a share of. If
    the link has a result, such as detected, these are by default the same items with any result.
    """

    shown_as: ClassVar[str] = "rate with its interval"
    _: KW_ONLY
    n: str = "parsed"
    n_link: Link | None = None
    prefix: str = ""
    reason: str = ""
    missing: str = "missing"
    missing_link: Link | None = None
    bad: str | Callable[[Row], str] = ""
    rest: bool = False

    def cell(self, row: Row | None, of: Leading) -> Cell:
        if row is None:
            return Cell(reason="no items")
        found = self.estimate(row)
        value, low, high = found.value, found.low, found.high
        bad = self.bad(row) if callable(self.bad) else self.bad
        return Cell(
            text=written.share(value),
            place=value,
            href=self.href(row, of) if value else "",
            n=found.n,
            n_href=_follow(self._n_link(), row, of) if found.n else "",
            missing=row[self.missing] if self.missing else 0,
            missing_href=_follow(self.missing_link, row, of),
            interval="" if low is None else f"{written.share(low)} to {written.share(high)}",
            reason=found.reason,
            heat=int(written.heat(value, bad)) if bad and value is not None else None,
            note=self.note(row) if self.note else "",
        )

    def _n_link(self) -> Link | None:
        if self.n_link is None and self.link and "result" in self.link:
            return {**self.link, "result": "parsed"}
        return self.n_link

    def estimate(self, row: Row) -> Estimate:
        """The rate as shown, with its interval or the reason why there is none."""
        value, low, high = row[self.name], row[f"{self.prefix}low"], row[f"{self.prefix}high"]
        if self.rest:
            value, low, high = (None if one is None else 1 - one for one in (value, high, low))
        reason = row.get(self.reason or f"{self.prefix}reason") or ""
        return Estimate(
            value, low, high, row[self.n], "nothing parsed" if reason == "no items" else reason
        )


@dataclass(frozen=True)
class Points(Column):
    """A difference of rates in percentage points, with sign and interval. The columns of its
    interval and reason start with `prefix`."""

    shown_as: ClassVar[str] = "difference in points with its interval"
    _: KW_ONLY
    prefix: str = ""
    low: str = "low"
    high: str = "high"
    unit: str = cells.POINTS_UNIT

    def cell(self, row: Row, of: Leading) -> Cell:
        low, high = (row[self.prefix + end] if end else None for end in (self.low, self.high))
        found = cells.points_cell(row[self.name], low, high, row[f"{self.prefix}reason"])
        return replace(found, note=self.note_of(row))


@dataclass(frozen=True)
class Distance(Column):
    """The distance between two rates in percentage points, without sign, or why there is none."""

    shown_as: ClassVar[str] = "distance in points"
    _: KW_ONLY
    unit: str = cells.POINTS_UNIT
    reason: str = "reason"

    def cell(self, row: Row, of: Leading) -> Cell:
        value = row[self.name]
        if value is None:
            return Cell(reason=row[self.reason] or "")
        return Cell(f"{100 * value:.1f}", value)


@dataclass(frozen=True)
class PValue(Column):
    """A p to three decimals, or why there is none."""

    shown_as: ClassVar[str] = "p, or why there is none"
    _: KW_ONLY
    reason: str = "reason"

    def cell(self, row: Row, of: Leading) -> Cell:
        found = cells.p_value_cell(row[self.name], row[self.reason])
        return replace(found, note=self.note_of(row))


@dataclass(frozen=True)
class Text(Column):
    """A text; `write` gives the row's text if that is not the value, and `place` its sort key."""

    shown_as: ClassVar[str] = "text"
    _: KW_ONLY
    write: Callable[[Row], str] | None = None
    place: Callable[[Row], float | str] | None = None
    is_number: ClassVar[bool] = False

    def cell(self, row: Row, of: Leading) -> Cell:
        text = self.write(row) if self.write else row[self.name] or ""
        place = self.place(row) if self.place else None
        return cells.text_cell(text, place, note=self.note_of(row))


@dataclass(frozen=True)
class Titled(Column):
    """The title of a row on this page, which may depend on the project."""

    shown_as: ClassVar[str] = "title"
    _: KW_ONLY
    title_of: Callable[["PageQuery", Row], str]
    is_number: ClassVar[bool] = False

    def cell(self, row: Row, of: Leading) -> Cell:
        return cells.text_cell(self.title_of(of.asked, row), note=self.note_of(row))


class RunNumber(Column):
    """The number of a run, with a link to its page."""

    shown_as: ClassVar[str] = "run, with a link"
    is_number: ClassVar[bool] = False

    def cell(self, row: Row, of: Leading) -> Cell:
        return cells.run_cell(of.runs[row[self.name]])


@dataclass(frozen=True)
class Custom(Column):
    """A number (or a text, with `is_text`) that no other kind formats: `make` builds its cell."""

    shown_as: ClassVar[str] = "number or text"
    _: KW_ONLY
    make: Callable[[Row, Leading], Cell] = lambda row, of: Cell()
    is_text: bool = False

    def header(self) -> Header:
        return replace(super().header(), is_number=not self.is_text)

    def cell(self, row: Row, of: Leading) -> Cell:
        return self.make(row, of)


def plain(*names: str) -> tuple[Column, ...]:
    """Columns that are only in files and the API."""
    return tuple(Column(name) for name in names)


def detail_share(name: str, title: str, detail: str = "") -> Share:
    """A part of the parsed items, with a link to the items with this detail."""
    return Share(name, title, items(result="parsed", detail=detail or name))


# A rate in both directions, as `counted.named_rates` makes them.
NAMED_RATES = plain("detection_rate", "undetected_rate")
RUN = plain("run", "endpoint", "strategy")
# The column with the name of the run in files and the API. Items often have a field "name".
RUN_NAME = "run_name"
MISSING = Count("missing", "Missing", items(result="missing"))
PARSED = Count("parsed", "Parsed", items(result="parsed"))
# Marks the place of the fields that a table is grouped by.
FIELDS = Column("")
# What the columns hold that many tables have, unless the table says otherwise.
COMMON_COLUMNS = {
    "run": "number of the run",
    "endpoint": "name of the evaluator",
    "strategy": "name of the strategy",
    RUN_NAME: "name of the run, if it has one",
    "run_a": "number of the first run of a pair, run a",
    "endpoint_a": "evaluator of run a",
    "strategy_a": "strategy of run a",
    f"{RUN_NAME}_a": "name of run a, if it has one",
    "run_b": "number of the second run of the pair, run b",
    "endpoint_b": "evaluator of run b",
    "strategy_b": "strategy of run b",
    f"{RUN_NAME}_b": "name of run b, if it has one",
    "total": "number of items, missing ones included",
    "missing": "number of items without a usable outcome",
    "parsed": "number of items with a usable outcome",
    "clusters": "number of source questions of the parsed items; items of one question are not "
    "independent",
    "score_invariant": "true in rows about score-invariant items: there, a detection is a false "
    "alarm",
    "errors": "number of parsed error items",
    "invariant": "number of parsed score-invariant items",
    "detected": "number of items whose error was detected; an item with repeats counts by the "
    "share of its repeats",
    "detection_rate": "share of the parsed items in which an error was detected",
    "undetected_rate": "1 minus this share",
    "detection": "detection rate: share of the parsed error items whose error was detected",
    "false_alarm": "false-alarm rate: share of the parsed score-invariant items in which an error "
    "was found",
    "j": "detection minus false alarms",
    "scored": "number of parsed items with a score of both answers",
    "penalty": "mean of the gold score minus the perturbed score, over the `scored` items, in "
    "points of the scale",
    "bottom": "lowest score of the scale",
    "at_top": "highest score of the scale",
    "questions": "number of source questions",
    "metric": "what is scored, as the task type or the strategy names it",
    "off_scale": "whether numbers off their scale are `kept` or `left out`; empty if there are "
    "none",
    "currency": "currency of all amounts in the row",
    "low": "lower end of the 95 % interval of the row's figure; `NAME_low` for the figure `NAME`",
    "high": "upper end of this interval; `NAME_high` for the figure `NAME`",
    "reason": "why the figure or its interval is empty; `NAME_reason` for the figure `NAME`",
}
# Columns whose names end so belong to the figure whose name stands before.
ENDINGS = ("low", "high", "reason")


@dataclass(frozen=True)
class Table:
    """A table of figures: its columns in the order of files, and how its rows are computed.

    `rows` gets a project, its runs and the fields to group by, which are some of `group_by`;
    None means that the rows do not depend on them. `at_once`: with up to this many outcomes (or
    items, if it is `of_items` and needs no runs) it is computed while the user waits, with more by
    a worker; None means always at once. `of_people`: the table also depends on labels, or on items
    that are not in the runs. `settings`: what its rows depend on besides data and code, such as the
    project's name. `with_duplicates`: if the table is grouped by ability and category, it
    has rows for duplicates.

    `about` says to readers of the reference what a row is, and `meanings` what a column holds: its
    unit, and what a share is a share of. Columns that are not in it mean the same in all tables.
    """

    name: str
    columns: tuple[Column, ...]
    rows: Callable[[Project, Sequence[Run], Sequence[str]], Rows]
    group_by: counted.GroupBy | None = None
    at_once: int | None = DRAW_LIMIT
    of_people: bool = True
    of_items: bool = False
    with_duplicates: bool = False
    settings: Callable[[Project, Sequence[Run]], list[Any]] = lambda project, runs: []
    about: str = ""
    meanings: Mapping[str, str] = field(default_factory=dict)

    @property
    def module(self) -> str:
        """The module that declares the table."""
        return self.rows.__module__

    def list_columns(self, by: Sequence[str]) -> tuple[str, ...]:
        """The names of all columns, if the table is grouped by these fields."""
        return tuple(name for one in self.columns for name in (by if one is FIELDS else [one.name]))

    def list_file_columns(self, by: Sequence[str]) -> tuple[str, ...]:
        """The names of all columns in files and the API. These have the names of the runs too,
        which no row has, since a run can get another name while its figures stay."""
        names = self._names
        pairs = ((column, names.get(column, "")) for column in self.list_columns(by))
        return tuple(one for pair in pairs for one in pair if one)

    def explain(self, column: str) -> str:
        """What a column holds, in Markdown; "" for an end of a figure's interval, or the reason why
        it is empty, if the table says nothing else about them."""
        return self.meanings.get(column) or COMMON_COLUMNS.get(column, "")

    def with_run_names(self, rows: Rows, runs: Iterable[Run]) -> list[dict[str, Any]]:
        """The rows with the names of their runs; None for a run without a name, and in a row that
        is about several runs or none."""
        names, columns = {run.number: run.name or None for run in runs}, self._names
        if not columns:
            return list(rows)
        found = []
        for row in rows:
            named: dict[str, Any] = {}
            for column, value in row.items():
                named[column] = value
                if column in columns:
                    side = column.removeprefix("strategy")
                    named[columns[column]] = names.get(row[f"run{side}"])
            found.append(named)
        return found

    @property
    def _names(self) -> dict[str, str]:
        """The columns with names of runs, by the column that each follows."""
        held = {column.name for column in self.columns}
        return {
            f"strategy{side}": RUN_NAME + side
            for side in ("", "_a", "_b")
            if {f"run{side}", f"strategy{side}"} <= held
        }

    def __getitem__(self, name: str) -> Column:
        """The column of this name, or the one by which a page is sorted with it."""
        return next(one for one in self.columns if name in (one.name, one.sort) and one.title)

    def rate(self, name: str) -> Rate:
        """The rate in the column of this name, as charts draw it."""
        found = self[name]
        assert isinstance(found, Rate)
        return found


def summed_table(
    name: str,
    rows: Callable[[Sequence[Run], Sequence[str]], Rows],
    *columns: Column,
    about: str = "",
    meanings: Mapping[str, str] | None = None,
) -> Table:
    """A table that the database sums from outcomes, by fields of the outcomes."""

    @wraps(rows)
    def of_runs(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
        return rows(runs, by)

    return Table(
        name,
        (*RUN, FIELDS, *columns),
        of_runs,
        group_by=counted.BY_OUTCOME_FIELDS,
        at_once=SUM_LIMIT,
        of_people=False,
        with_duplicates=True,
        about=about,
        meanings=meanings or {},
    )
