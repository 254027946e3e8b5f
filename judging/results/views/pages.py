"""The index of the result pages, and the pages themselves.

Parses the URL of a page and gets the figures for it. Also lists the views that reproduce the
printed tables and figures of the studies from a project's own data.
"""

import math
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_GET

from annotation import tasktypes
from annotation.htmx import HtmxRequest
from annotation.items import taxonomy
from annotation.models import Membership, Project
from annotation.projects import access
from annotation.reports.grouping import GROUPING_COLUMNS, Grouping
from charts import files
from formats.writers import FIGURE_FORMATS
from judging import tasks
from judging.models import Run, SavedView
from judging.results import (
    arrays,
    cells,
    empty_pages,
    figure_help,
    figures,
    published_rates,
    run_marks,
)
from judging.results.cells import Header
from judging.results.columns import Table
from judging.results.counted import UnknownField
from judging.results.page_parts import (
    BY_PARAMETER,
    INTERVAL_WORDS,
    INTERVALS_PARAMETER,
    NAME_ALONE,
    NAMED_PARAMETER,
    RUN_PARAMETER,
    SORT_PARAMETER,
    VIEW_PARAMETER,
    Choice,
    ChoiceGroup,
    PageQuery,
    ResultPage,
    ResultView,
    Rows,
    StudyFigure,
    Switch,
    TableQuery,
    ViewContent,
)
from judging.results.tables import PAGES
from judging.results.tables.left_out import LEFT_OUT
from judging.runs import warnings

# The counts of outcomes that no figure includes, shown below every table.
LEFT_OUT_QUERY = TableQuery(LEFT_OUT, "")


@dataclass(frozen=True)
class TableFile:
    """A table of a view: the query to download its rows, and the command that prints them."""

    table: str
    by: str
    query: str
    command: str


def parse_query(member: Membership, slug: str, query: QueryDict) -> PageQuery:
    """Parse the query of a page. Raises Http404 for an unknown page, view or run."""
    page = PAGES.get(slug)
    if page is None:
        raise Http404
    views = {view.slug: view for view in page.views}
    view = views.get(query.get(VIEW_PARAMETER, page.views[0].slug))
    if view is None:
        raise Http404
    every = run_marks.load_marked_runs(member.project)
    wish = PageQuery(member, slug, page, view, select_runs_or_404(every, query), query, every)
    run_marks.hide_shared_part(wish.runs)
    if wish.names_alone:
        run_marks.hide_numbers(wish.runs)
    return wish


def select_runs_or_404(every: Sequence[Run], query: QueryDict) -> list[Run]:
    """The project's runs that the URL selects. Raises Http404."""
    try:
        return figures.select_runs(every, query)
    except figures.UnknownRun as error:
        raise Http404(str(error)) from error


def request_tables(wish: PageQuery) -> list[figures.FigureTable | figures.PendingTable]:
    """Request the tables of a view and the table `left_out`. A table that is not ready is returned
    as a worker's progress. Raises Http404."""
    return [*(_request_table(wish, ask) for ask in wish.view.asks), _request_left_out(wish)]


def request_ready_tables(wish: PageQuery) -> list[Rows] | None:
    """The rows of these tables for a file of the page; None while a worker computes some of them.
    Raises Http404."""
    answers = request_tables(wish)
    making = [one for one in answers if isinstance(one, figures.PendingTable)]
    for one in making:
        tasks.notify_of_figure(one)
    if making:
        return None
    return [one.rows for one in answers if isinstance(one, figures.FigureTable)]


def compute_tables(wish: PageQuery) -> list[Rows]:
    """Compute the rows of these tables, however long it takes; nothing is stored. Raises
    Http404."""
    found = []
    for ask in (*wish.view.asks, LEFT_OUT_QUERY):
        try:
            asked = figures.build_request(wish.project, ask.table, wish.runs, wish.fields(ask))
            found.append(asked.rows())
        except UnknownField as error:
            raise Http404(str(error)) from error
    return found


def list_files(wish: PageQuery) -> list[TableFile]:
    """List each table of a view with its download and command."""
    return [_build_file(wish, ask.file or ask.table, wish.fields(ask)) for ask in wish.view.asks]


def list_filters(wish: PageQuery, tables: Sequence[Rows]) -> list[ChoiceGroup]:
    """The filters for the tables: each field with the values that occur, if there are several or if
    the URL asks for one."""
    fields = dict.fromkeys(field for ask in wish.view.asks for field in wish.narrowing(ask))
    found = [_build_filter(wish, field, tables) for field in fields]
    return [one for one in found if len(one.options) > 1 or any(o.chosen for o in one.options)]


def filter_tables(wish: PageQuery, tables: Sequence[Rows]) -> list[Rows]:
    """The rows that match the URL in the fields of their table."""
    return [
        [row for row in rows if figures.matches_query(row, wish.narrowing(ask), wish.query)]
        for ask, rows in zip(wish.view.asks, tables, strict=True)
    ]


def _request_left_out(wish: PageQuery) -> figures.FigureTable | figures.PendingTable:
    if wish.view.of_runs:
        return _request_table(wish, LEFT_OUT_QUERY)
    return figures.FigureTable(LEFT_OUT.name, (), [])


def _build_file(wish: PageQuery, table: Table, by: Sequence[str]) -> TableFile:
    named = [run.number for run in wish.runs]
    narrowed = [name for name in (*by, *wish.view.columns) if name in table.list_columns(by)]
    only = [(name, str(wish.query[name])) for name in narrowed if wish.query.get(name)]
    alone = [(NAMED_PARAMETER, NAME_ALONE)] if wish.names_alone else []
    query = [
        *((RUN_PARAMETER, number) for number in named),
        *((BY_PARAMETER, ",".join(by)), *only, *alone),
    ]
    command = ["results", table.name, "--project", wish.project.slug]
    command += ["--run", *map(str, named)] if RUN_PARAMETER in wish.query else []
    command += ["--by", ",".join(by)]
    command += ["--only", *("=".join(one) for one in only)] if only else []
    command += ["--names-alone"] if alone else []
    return TableFile(table.name, ",".join(by), urlencode(query, safe=","), shlex.join(command))


def _request_table(wish: PageQuery, ask: TableQuery) -> figures.FigureTable | figures.PendingTable:
    fields = wish.fields(ask)
    try:
        return figures.fetch_or_enqueue(
            figures.build_request(wish.project, ask.table, wish.runs, fields)
        )
    except UnknownField as error:
        raise Http404(str(error)) from error


def _build_filter(wish: PageQuery, field: str, tables: Sequence[Rows]) -> ChoiceGroup:
    grouping, said = Grouping(field, field, wish.categories), wish.query.get(field, "")
    given = (row.get(field) for rows in tables for row in rows)
    held = {figures.format_value(value) for value in given if value not in (None, "")}
    values = sorted(
        held | ({said} if said else set()), key=lambda value: _place_choice(grouping, value)
    )
    named = wish.view.named
    options = [
        Choice(
            value,
            (named and named(wish, field, value)) or grouping.title_of(value),
            value == said,
        )
        for value in values
    ]
    title = wish.view.titles.get(field) or field.replace("_", " ").capitalize()
    if field in GROUPING_COLUMNS:
        title = wish.categories.word_groups(title)
    return ChoiceGroup(field, title, options)


def _place_choice(grouping: Grouping, value: str) -> tuple[int, float, str]:
    """The sort key of a choice: numbers by size, so that run 2 comes before run 10, then words."""
    place, name = grouping.place_of(value)
    try:
        number = float(value)
    except ValueError:
        number = math.inf
    return place, number if math.isfinite(number) else math.inf, name


@dataclass(frozen=True)
class SwitchLink:
    """A link to an option; `current` if it is active."""

    title: str
    href: str
    current: bool = False


@dataclass(frozen=True)
class ColumnHeading:
    """The header of a column: the link that sorts by the column, and the current sort order."""

    column: Header
    href: str
    sorted: str


@require_GET
@login_required
def index(request: HttpRequest, slug: str) -> HttpResponse:
    """All pages with their questions, and the places of the studies' tables and figures."""
    member = access.member_for(request, slug, right="results")
    every = run_marks.load_marked_runs(member.project)
    runs = select_runs_or_404(every, request.GET)
    named = RUN_PARAMETER in request.GET
    pages = _list_pages(member.project, runs, every)
    empty = {slug for slug, _, reason in pages if reason}
    context = {
        "project": member.project,
        "member": member,
        "pages": pages,
        "saved": SavedView.objects.seen_by(member),
        "runs": runs,
        "studies": list_studies(member.project, runs if named else every, named=named, empty=empty),
    }
    return render(request, "judging/results/index.html", context)


@require_GET
@login_required
def page(request: HtmxRequest, slug: str, page: str) -> HttpResponse:
    """One page for the chosen runs; for htmx only the part that a switch changes."""
    member = access.member_for(request, slug, right="results")
    wish = parse_query(member, page, request.GET)
    context = {
        "project": member.project,
        "member": member,
        "asked": wish,
        "pages": _list_pages(wish.project, wish.runs, wish.every),
        "runs": wish.offered,
        "warned": warnings.load_summaries(wish.runs) if wish.view.of_runs else [],
        **_set_aside_context(wish),
        "saved": SavedView.objects.seen_by(member).filter(page=page),
        **_figures_context(wish),
    }
    template = "judging/results/page.html"
    return render(request, f"{template}#figures" if request.htmx else template, context)


def _list_pages(
    project: Project, runs: Sequence[Run], every: Sequence[Run]
) -> list[tuple[str, ResultPage, str]]:
    """All pages by slug, each with the reason why it has nothing to show, "" if it may have."""
    empty = empty_pages.find_empty_pages(PAGES, project, runs, every)
    return [(slug, page, empty.get(slug, "")) for slug, page in PAGES.items()]


def _figures_context(wish: PageQuery) -> dict[str, Any]:
    """The context for a view's figures; while a worker computes some of them, its progress."""
    answers = request_tables(wish)
    making = [one for one in answers if isinstance(one, figures.PendingTable)]
    for one in making:
        tasks.notify_of_figure(one)
    common = {"kept": _hidden_fields(wish), "making": making}
    if making:
        return {**common, "switches": _build_switches(wish)}
    return common | _content_context(
        wish, [one.rows for one in answers if isinstance(one, figures.FigureTable)]
    )


def build_content(wish: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """What the page shows of the rows of its tables, filtered and sorted as the URL says."""
    shown = wish.view.build(wish, filter_tables(wish, tables))
    words = shown.words
    if not (wish.intervals and shown.grid.has_intervals):
        words = words.replace(f" {INTERVAL_WORDS}", "")
    grid = shown.grid.sorted(wish.query.get(SORT_PARAMETER, ""))
    return replace(shown, grid=grid, words=words)


def _content_context(wish: PageQuery, found: list[Rows]) -> dict[str, Any]:
    *tables, left_out = found
    shown = build_content(wish, tables)
    return {
        "shown": shown,
        "grid": shown.grid,
        "switches": _build_switches(wish, with_intervals=shown.grid.has_intervals),
        "headings": [_build_heading(wish, column) for column in shown.grid.columns],
        "narrowing": list_filters(wish, tables),
        "choices": wish.view.choices(wish) if wish.view.choices else (),
        "files": list_files(wish),
        "explained": [figure_help.load_figures()[name] for name in wish.view.figures],
        "formats": FIGURE_FORMATS,
        "chart_forms": files.TYPES,
        "left_out": [
            (wish.runs_by_number[row["run"]], row)
            for row in left_out
            if row["pending"] or row["other_revision"] or row["unlabelled"]
        ],
        "regrouped": describe_regrouped(wish, left_out),
        "alike": "" if wish.view.counts_all else _compare_items(wish, left_out),
    }


def describe_regrouped(wish: PageQuery, left_out: Rows) -> str:
    """What a page and its table for a paper say of items that are in another category by now; "" if
    there are none."""
    moved: dict[int, list[str]] = {}
    for row in left_out:
        if row["regrouped"]:
            moved.setdefault(row["regrouped"], []).append(wish.runs_by_number[row["run"]].mention)
    if not moved:
        return ""
    told = "; ".join(
        f"{_count_items(number)} after the start of {', '.join(runs)}"
        for number, runs in moved.items()
    )
    return (
        f"Moved to another category: {told}. Figures by category and ability have these items in "
        "the former one."
    )


def _compare_items(wish: PageQuery, left_out: Rows) -> str:
    """A sentence on whether the chosen runs judged the same items (for one run: how many items it
    judged); "" without such a run."""
    runs = {run.number: run for run in wish.runs}
    of_runs = [row for row in left_out if row["shared"] is not None]
    if not of_runs:
        return ""
    of_what = "_with_duplicates" if _has_duplicates(wish) else ""
    sizes = [row[f"items{of_what}"] for row in of_runs]
    least, most, shared = min(sizes), max(sizes), of_runs[0][f"shared{of_what}"]
    if len(of_runs) == 1:
        name = cells.run_name(runs[of_runs[0]["run"]])
        return f"Run {name}: {_count_items(most)}."
    if shared == most:
        return f"These {len(sizes)} runs evaluated the same {_count_items(most)}."
    each = _count_items(most) if least == most else f"{least:,} to {_count_items(most)}"
    advice = (
        "The page Compare uses only the items that both runs of a pair share."
        if len(arrays.select_judging(wish.runs)) > 1
        else "None of them can be compared in pairs; choose runs over the same items to compare."
    )
    return (
        f"These {len(sizes)} runs cover different items: {each} each, {shared:,} in all of them."
        f" Their rates are not directly comparable. {advice}"
    )


def _has_duplicates(wish: PageQuery) -> bool:
    """True if a table of the view counts duplicates."""
    return any(
        ask.table.with_duplicates and {"ability", "category"} <= {*wish.fields(ask)}
        for ask in wish.view.asks
    )


def _count_items(n: int) -> str:
    return f"{n:,} item" if n == 1 else f"{n:,} items"


def _set_aside_context(wish: PageQuery) -> dict[str, Any]:
    """The context for runs that are not shown by default, with links to all and to the default."""
    is_other = set(run_marks.select_default(wish.every)) != set(wish.runs)
    return {
        "hidden": "" if RUN_PARAMETER in wish.query else run_marks.describe_set_aside(wish.every),
        "all_runs": wish.link_of(wish.offered),
        "tags": _tag_links(wish),
        "usual": wish.link(**{RUN_PARAMETER: None}) if is_other else "",
        "none_usual": RUN_PARAMETER not in wish.query and any(run.marks for run in wish.runs),
    }


def _tag_links(wish: PageQuery) -> list[SwitchLink]:
    """For each tag of the offered runs, a link that chooses the runs with the tag."""
    by_tag: dict[str, list[Run]] = {}
    for run in wish.offered:
        for tag in run.tags:
            by_tag.setdefault(tag, []).append(run)
    return [
        SwitchLink(tag, wish.link_of(runs), runs == list(wish.runs))
        for tag, runs in sorted(by_tag.items())
    ]


def _build_switches(
    wish: PageQuery, *, with_intervals: bool = True
) -> list[tuple[str, list[SwitchLink]]]:
    """The switches: views of the page, options of the view, grouping fields, intervals, and how
    runs are named."""
    found = [(one.title, _option_links(wish, one)) for one in wish.view.switches]
    if wish.groups:
        found.append(("Grouped by", _field_links(wish)))
    shown = {"no": wish.link(intervals=None), "yes": wish.link(intervals="yes")}
    now = "yes" if wish.intervals else "no"
    titles = {"no": "only n", "yes": "with intervals"}
    if with_intervals:
        found.append(
            ("Next to each rate", [SwitchLink(titles[k], shown[k], k == now) for k in shown])
        )
    if wish.view.of_runs and (wish.names_alone or any(run.name for run in wish.runs)):
        both, alone = (wish.link(**{NAMED_PARAMETER: one}) for one in (None, NAME_ALONE))
        links = [
            SwitchLink("number and name", both, not wish.names_alone),
            SwitchLink("name", alone, wish.names_alone),
        ]
        found.append(("Runs named by", links))
    views = [
        SwitchLink(
            wish.categories.word_groups(view.title), _view_url(wish, view), view is wish.view
        )
        for view in wish.page.views
    ]
    return [("View", views), *found] if len(views) > 1 else found


def _view_url(wish: PageQuery, view: ResultView) -> str:
    """The URL of another view of the page, with the same grouping if possible."""
    first = view is wish.page.views[0]
    by = wish.query.get(BY_PARAMETER) if view.groups and view.groups == wish.view.groups else None
    return wish.link(
        **{VIEW_PARAMETER: None if first else view.slug, SORT_PARAMETER: None, BY_PARAMETER: by}
    )


def _field_links(wish: PageQuery) -> list[SwitchLink]:
    """A link for each grouping field that adds or removes it."""
    chosen = wish.fields()
    offered = {**wish.groups, **{name: name for name in chosen if name not in wish.groups}}
    return [
        SwitchLink(title, _toggled_url(wish, chosen, name), name in chosen)
        for name, title in offered.items()
    ]


def _toggled_url(wish: PageQuery, chosen: list[str], name: str) -> str:
    """The URL with a field added or removed; a filter by that field is removed too."""
    kept = [one for one in chosen if one != name]
    by = ",".join(kept if name in chosen else [*chosen, name])
    return wish.link(
        **{BY_PARAMETER: by if by or wish.view.grouped else None, SORT_PARAMETER: None, name: None}
    )


def _option_links(wish: PageQuery, switch: Switch) -> list[SwitchLink]:
    now, first = wish.switch_value(switch.name), next(iter(switch.options))
    changed = {SORT_PARAMETER: None} if switch.name == BY_PARAMETER else {}
    options = {**switch.options, **(switch.more(wish.project) if switch.more else {})}
    return [
        SwitchLink(
            wish.categories.word_groups(title),
            wish.link(**{switch.name: None if value == first else value}, **changed),
            value == now,
        )
        for value, title in options.items()
    ]


def _build_heading(wish: PageQuery, column: Header) -> ColumnHeading:
    """The header of a column: numbers sort descending first, words ascending; a second click
    reverses the order."""
    up, down, now = column.name, f"-{column.name}", wish.query.get(SORT_PARAMETER, "")
    if not column.name:
        return ColumnHeading(column, "", "")
    first, second = (down, up) if column.is_number else (up, down)
    stands = {up: "ascending", down: "descending"}.get(now, "")
    return ColumnHeading(column, wish.link(sort=second if now == first else first), stands)


def _hidden_fields(wish: PageQuery) -> list[tuple[str, str]]:
    """Hidden fields of the form for parameters that are switched elsewhere."""
    switched = [
        VIEW_PARAMETER,
        SORT_PARAMETER,
        INTERVALS_PARAMETER,
        NAMED_PARAMETER,
        BY_PARAMETER,
        *(one.name for one in wish.view.switches),
    ]
    switched += [] if wish.view.of_runs else [RUN_PARAMETER]
    names = dict.fromkeys(switched)
    return [(name, value) for name in names for value in wish.query.getlist(name)]


STUDIES = {
    "000": "Study 000: perturbed answers",
    "001": "Study 001: natural errors",
    "002": "Study 002: rubric scores",
    "003": "Study 003: ratings of people",
}


@dataclass(frozen=True)
class StudyLink:
    """A table or figure of a study, the view that reproduces it, and what is lacking for it, "" if
    there is a run with its strategies."""

    place: StudyFigure
    href: str
    lacking: str

    @property
    def strategy(self) -> str:
        """The strategy of the figure, if there is exactly one."""
        return self.place.strategies[0] if len(self.place.strategies) == 1 else ""


# The fields of a project, by the function that lists them.
FieldsBySource = Mapping[Callable[[Project], Mapping[str, str]], set[str]]
# Keys are the titles of pages.
LinksByPage = list[tuple[str, list[StudyLink]]]


def list_studies(
    project: Project, runs: Sequence[Run], *, named: bool, empty: Collection[str] = ()
) -> list[tuple[str, LinksByPage]]:
    """The tables and figures of each study. If the runs are `named`, all are used, whatever their
    strategy. Otherwise a table uses the default runs among those with its strategies, if there are
    any. Pages in `empty`, by slug, have nothing to show. A project with categories of its own has
    none of these tables."""
    if tasktypes.load_task_type(project).categories and not published_rates.covers(
        taxonomy.load_taxonomy(project)
    ):
        return []
    offered = _load_fields(project)
    return [
        (title, _study_links(study, offered, runs, named, empty))
        for study, title in STUDIES.items()
    ]


def _load_fields(project: Project) -> FieldsBySource:
    """The grouping fields, loaded once for views that offer the same fields."""
    asks = {view.groups for page in PAGES.values() for view in page.views if view.groups}
    return {ask: set(ask(project)) for ask in asks}


def _study_links(
    study: str,
    offered: FieldsBySource,
    runs: Sequence[Run],
    named: bool,
    empty: Collection[str],
) -> LinksByPage:
    found = []
    for slug, page in PAGES.items():
        places = [(view, place) for view in page.views for place in view.studies.get(study, ())]
        printed = []
        for view, place in places:
            of_place = [run for run in runs if run.strategy.slug in place.strategies]
            of_place = of_place if named else run_marks.select_default(of_place)
            query = [
                *_view_parameters(view, place, offered),
                *_run_parameters(runs if named else of_place),
            ]
            href = f"{slug}/?{urlencode(query, safe=',')}"
            lacking = "" if of_place or not place.strategies else "no run"
            if not lacking and slug in empty:
                lacking = "nothing to show"
            printed.append(StudyLink(place, href, lacking))
        if printed:
            found.append((page.title, printed))
    return found


def _run_parameters(runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    return ((RUN_PARAMETER, str(run.number)) for run in runs)


def _view_parameters(
    view: ResultView, place: StudyFigure, offered: FieldsBySource
) -> Iterator[tuple[str, str]]:
    yield VIEW_PARAMETER, view.slug
    yield from place.query.items()
    if place.by and (view.groups is None or offered[view.groups].issuperset(place.by)):
        yield BY_PARAMETER, ",".join(place.by)
