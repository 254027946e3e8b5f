"""Building blocks of result pages: views, switches, filters, and the parsed query of a page."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.http import QueryDict

from annotation.items import taxonomy
from annotation.items.taxonomy import Taxonomy
from annotation.models import Membership, Project
from annotation.reports.grouping import Grouping
from judging.models import Run
from judging.results import columns, counted
from judging.results.arrays import JUDGING_FRAMES
from judging.results.cells import Grid, Row
from judging.results.columns import Table
from judging.results.frames import EXPLANATION_FRAME

Rows = list[dict[str, Any]]

BY_PARAMETER, INTERVALS_PARAMETER, RUN_PARAMETER, SORT_PARAMETER, VIEW_PARAMETER = (
    "by",
    "intervals",
    "run",
    "sort",
    "view",
)
# How runs are named: by number and name, or by the name alone.
NAMED_PARAMETER, NAME_ALONE = "named", "name"
# Said in the words of a view about its table; left out where the table shows no intervals.
INTERVAL_WORDS = "95 % intervals are clustered by question."


@dataclass(frozen=True)
class TableQuery:
    """A table and its fields; None means the fields in the URL, else the view's default. `file` is
    the table that readers get as a file, if it is another one."""

    table: Table
    by: str | None = None
    file: Table | None = None


@dataclass(frozen=True)
class Switch:
    """Options for showing the same figures, by their value in the URL; the first is the default.
    `more` lists further ones of the project, for the grouping fields alone."""

    name: str
    title: str
    options: Mapping[str, str]
    more: Callable[[Project], Mapping[str, str]] | None = None


@dataclass(frozen=True)
class Choice:
    """A checkbox, or the field of a number: `value` is then its URL parameter and `number` what the
    URL says."""

    value: str
    title: str
    chosen: bool = False
    number: str = ""


@dataclass(frozen=True)
class ChoiceGroup:
    """Optional additions to a page, as checkboxes, or radio buttons if `only_one` can be chosen;
    `name` is the URL parameter. With `with_numbers`, a number for each option."""

    name: str
    title: str
    options: Sequence[Choice]
    only_one: bool = False
    with_numbers: bool = False

    @property
    def parameters(self) -> list[str]:
        """The URL parameters of the group."""
        return [one.value for one in self.options] if self.with_numbers else [self.name]


@dataclass(frozen=True)
class ChartSpec:
    """A chart as a Vega-Lite specification, with a caption."""

    spec: dict[str, Any]
    caption: str


@dataclass(frozen=True)
class ViewContent:
    """The content of a view; `words` explain how to read the figures, and `screen_words` what only
    a page has, such as shades and links. `headline` is the result in one sentence, and `under` is a
    remark on it; both are shown first on the page."""

    grid: Grid
    drawing: ChartSpec | None = None
    words: str = ""
    screen_words: str = ""
    headline: str = ""
    under: str = ""


@dataclass(frozen=True)
class StudyFigure:
    """A table or figure of a study, by its name there.

    `strategies` are the strategies in the figure (none: any), and `query` is the URL query with
    which a view shows the figure. The figure is grouped by the fields in `by` if the items have all
    of them.
    """

    name: str
    strategies: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    query: Mapping[str, str] = field(default_factory=dict)


def study_figures(*names: str, by: tuple[str, ...] = ()) -> tuple[StudyFigure, ...]:
    """Study figures about any strategy."""
    return tuple(StudyFigure(name, by=by) for name in names)


@dataclass(frozen=True)
class ResultView:
    """One way to answer the question of a page: tables of figures and the way to show them.

    `build` gets the rows of each table in `asks`, filtered as the URL says. `figures` names the
    texts of `figure_help` that say how the figures are made. `studies` names the
    tables and figures of each study that the view reproduces. `empty` says what to do if there is
    nothing to show. `groups` offers fields for grouping its tables, several at once, with their
    titles. With `grouped`, the first field is used if the URL names none. The URL can also filter
    by `columns`. `titles` has the titles of columns whose name is not a title; `named` gives the
    title of a value, "" to show the value itself. A view that is not `of_runs` is available before
    the first run. One that `counts_all` counts items that no other view does, so it does not say
    how many items its runs share.
    """

    slug: str
    title: str
    asks: tuple[TableQuery, ...]
    build: Callable[["PageQuery", Sequence[Rows]], ViewContent]
    studies: Mapping[str, Sequence[StudyFigure]]
    empty: str
    figures: tuple[str, ...] = ()
    switches: tuple[Switch, ...] = ()
    of_runs: bool = True
    counts_all: bool = False
    choices: Callable[["PageQuery"], Sequence[ChoiceGroup]] | None = None
    groups: Callable[[Project], Mapping[str, str]] | None = None
    grouped: bool = False
    columns: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    named: Callable[["PageQuery", str, str], str] | None = None
    table_first: bool = False


@dataclass(frozen=True)
class ResultPage:
    """One question about evaluators; `picture` names a drawing of `judging/results/index.html`, and
    `needs` is what must be there, as in `empty_pages.REASONS`."""

    title: str
    question: str
    picture: str
    views: tuple[ResultView, ...]
    needs: str = "runs"

    @cached_property
    def taken_names(self) -> frozenset[str]:
        """The names that are taken. An item field with such a name cannot be used for grouping,
        since rows and URLs need unique names."""
        views = [view for view in self.views if view.groups]
        asks = [ask for view in views for ask in view.asks]
        tables = [table for ask in asks for table in (ask.table, ask.file) if table]
        held = (name for table in tables for name in table.list_file_columns(()))
        switches = (one.name for view in views for one in view.switches)
        return frozenset(
            (
                BY_PARAMETER,
                INTERVALS_PARAMETER,
                NAMED_PARAMETER,
                RUN_PARAMETER,
                SORT_PARAMETER,
                VIEW_PARAMETER,
                *held,
                *switches,
            )
        )


@dataclass(frozen=True)
class PageQuery:
    """The parsed query of a page: its view and its runs; the other parameters are in `query`.

    `every` has all judging runs of the project, from which `offered` selects.
    """

    member: Membership
    slug: str
    page: ResultPage
    view: ResultView
    runs: Sequence[Run]
    query: QueryDict
    every: Sequence[Run]

    @property
    def offered(self) -> list[Run]:
        """The runs to choose from; archived runs and pilots only if they are already chosen."""
        return [run for run in self.every if run.archived_at is None or run in self.runs]

    @property
    def project(self) -> Project:
        return self.member.project

    @cached_property
    def categories(self) -> Taxonomy:
        """The categories under which the chosen runs were made, with the names of today; the
        project's of today if the runs differ, or without a run."""
        today = taxonomy.load_taxonomy(self.project)
        return counted.load_categories(self.runs).named_as(today) if self.runs else today

    @property
    def categories_warning(self) -> str:
        """What a page and its table for a paper say if the runs were made under different versions
        of the categories; "" otherwise."""
        if not self.view.of_runs or len({run.taxonomy_id for run in self.runs}) < 2:
            return ""
        return (
            "The categories changed between these runs: groups of one name may hold other items, "
            "and a run keeps the categories that it was started with. To compare groups, choose "
            "runs of the same time or run the older ones again."
        )

    def group_title(self, name: str, group: str) -> str:
        """The title of a group of items by this field."""
        return Grouping(name, name, self.categories).title_of(group)

    @cached_property
    def runs_by_number(self) -> dict[int, Run]:
        """The chosen runs by number."""
        return {run.number: run for run in self.runs}

    @cached_property
    def judging_runs(self) -> list[Run]:
        """The chosen runs that judge items, without runs that check explanations."""
        return [run for run in self.runs if run.strategy.strategy().frame != EXPLANATION_FRAME]

    def is_judging(self, row: Row, *names: str) -> bool:
        """True if the run of a row judges items, or each of its runs in these columns."""
        return all(row[name] in self._judging_numbers for name in names or ("run",))

    @cached_property
    def _judging_numbers(self) -> set[int]:
        return {run.number for run in self.judging_runs}

    def is_perturbed(self, row: Row) -> bool:
        """True if the run of a row judges perturbed answers, so that it tells score-invariant items
        from errors."""
        return row["run"] in self._perturbed_numbers

    @cached_property
    def _perturbed_numbers(self) -> set[int]:
        frames = {run.number: run.strategy.strategy().frame for run in self.runs}
        return {number for number, frame in frames.items() if frame in JUDGING_FRAMES}

    @property
    def names_alone(self) -> bool:
        """True if runs with a name are shown without their number."""
        return self.query.get(NAMED_PARAMETER) == NAME_ALONE

    @property
    def intervals(self) -> bool:
        """True if the table shows intervals; charts always do."""
        return INTERVALS_PARAMETER in self.query

    def switch_value(self, name: str) -> str:
        """The current option of a switch; `by` may also be fields that are not among its
        options."""
        options = next(one.options for one in self.view.switches if one.name == name)
        said = self.query.get(name)
        first = next(iter(options))
        return said if said is not None and (said in options or name == BY_PARAMETER) else first

    @cached_property
    def groups(self) -> Mapping[str, str]:
        """The fields that the view's tables can be grouped by, several at once."""
        return {name: title for name, title in self._named.items() if self._can_name(name)}

    @property
    def withheld(self) -> list[str]:
        """Fields of items that cannot be offered, because a URL cannot contain their names."""
        return [name for name in self._named if not self._can_name(name)]

    def _can_name(self, field: str) -> bool:
        """True if a name is free and can be part of a comma-separated list."""
        # SQLite cannot find a name with a quotation mark in JSON.
        is_found = columns.parse_fields(field) == [field] and '"' not in field
        return is_found and field not in self.page.taken_names

    @cached_property
    def _named(self) -> Mapping[str, str]:
        return self.view.groups(self.project) if self.view.groups else {}

    def fields(self, ask: TableQuery | None = None) -> list[str]:
        """The fields that a table is grouped by, or those that the URL or the view names."""
        if ask and ask.by is not None:
            return columns.parse_fields(ask.by)
        if self.view.groups:
            first = next(iter(self.groups), "") if self.view.grouped else ""
            return columns.parse_fields(self.query.get(BY_PARAMETER, first))
        if any(one.name == BY_PARAMETER for one in self.view.switches):
            return columns.parse_fields(self.switch_value(BY_PARAMETER))
        return columns.parse_fields(self.query.get(BY_PARAMETER, columns.DEFAULT_BY))

    def narrowing(self, ask: TableQuery) -> list[str]:
        """The columns of a table that the URL may filter by."""
        return [*self.fields(ask), *self.view.columns]

    @property
    def heeded(self) -> list[str]:
        """The URL parameters that the view uses besides runs and view."""
        switches = [one.name for one in self.view.switches]
        groups = self.view.choices(self) if self.view.choices else ()
        boxes = [name for one in groups for name in one.parameters]
        filters = [name for ask in self.view.asks for name in self.narrowing(ask)]
        return list(
            dict.fromkeys(
                [
                    *(*switches, BY_PARAMETER, INTERVALS_PARAMETER, NAMED_PARAMETER),
                    *(SORT_PARAMETER, *boxes, *filters),
                ]
            )
        )

    @property
    def here(self) -> str:
        """The URL of this page with its current query."""
        return self.link()

    @property
    def runs_query(self) -> str:
        """The query for other pages with the same runs, named in the same way; "" for the default
        of both."""
        chosen = self.runs if RUN_PARAMETER in self.query else ()
        pairs = [f"{RUN_PARAMETER}={run.number}" for run in chosen]
        pairs += [f"{NAMED_PARAMETER}={NAME_ALONE}"] if self.names_alone else []
        return f"?{'&'.join(pairs)}" if pairs else ""

    def link(self, **changes: str | None) -> str:
        """The URL with these changes; None removes a parameter."""
        query = self.query.copy()
        for name, value in changes.items():
            query.pop(name, None)
            if value is not None:
                query[name] = value
        return f"?{query.urlencode(safe=',')}"

    def link_of(self, runs: Iterable[Run]) -> str:
        """The URL with these runs instead of the current ones."""
        query = self.query.copy()
        query.setlist(RUN_PARAMETER, [str(run.number) for run in runs])
        return f"?{query.urlencode(safe=',')}"
