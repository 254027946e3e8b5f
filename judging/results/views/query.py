"""From an address to what it asks for, and to the figures that answer it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import Http404, QueryDict

from annotation.models import Membership
from annotation.reports.grouping import Grouping
from judging.models import Run
from judging.results import figures, run_marks, undetected
from judging.results.tables import list_columns
from judging.results.views.page_parts import (
    BY_PARAMETER,
    RUN_PARAMETER,
    VIEW_PARAMETER,
    Choice,
    ChoiceGroup,
    PageQuery,
    Rows,
    TableQuery,
)
from judging.results.views.registry import PAGES

# What no figure of the chosen runs counts, below every table.
LEFT_OUT_TABLE = TableQuery("left_out", "")


@dataclass(frozen=True)
class TableFile:
    """A table of a view: the query that gives its rows as a file, and the command that prints
    them."""

    table: str
    by: str
    query: str
    command: str


def parse_query(member: Membership, slug: str, query: QueryDict) -> PageQuery:
    """What an address asks for. Raises Http404 for a page, view or run that is not there."""
    page = PAGES.get(slug)
    if page is None:
        raise Http404
    views = {view.slug: view for view in page.views}
    view = views.get(query.get(VIEW_PARAMETER, page.views[0].slug))
    if view is None:
        raise Http404
    every = run_marks.load_marked_runs(member.project)
    return PageQuery(member, slug, page, view, select_runs_or_404(every, query), query, every)


def select_runs_or_404(every: Sequence[Run], query: QueryDict) -> list[Run]:
    """Those of a project's runs that the address asks for. Raises Http404."""
    try:
        return figures.select_runs(every, query)
    except figures.UnknownRun as error:
        raise Http404(str(error)) from error


def request_tables(wish: PageQuery) -> list[figures.FigureTable | figures.PendingTable]:
    """Each table of a view and what they leave out, or how far a worker is. Raises Http404."""
    return [*(_request_table(wish, ask) for ask in wish.view.asks), _request_left_out(wish)]


def compute_tables(wish: PageQuery) -> list[Rows]:
    """The rows of the same, however long they take; nothing is stored. Raises Http404."""
    found = []
    for ask in (*wish.view.asks, LEFT_OUT_TABLE):
        try:
            asked = figures.build_request(wish.project, ask.table, wish.runs, wish.fields(ask))
            found.append(asked.rows())
        except undetected.UnknownField as error:
            raise Http404(str(error)) from error
    return found


def list_files(wish: PageQuery) -> list[TableFile]:
    """Each table of a view, with what gives the same rows as a file."""
    return [_build_file(wish, ask.table, wish.fields(ask)) for ask in wish.view.asks]


def list_filters(wish: PageQuery, tables: Sequence[Rows]) -> list[ChoiceGroup]:
    """What the tables can be narrowed down by: each field with the values that it has there, if it
    has several or the address asks for one."""
    fields = dict.fromkeys(field for ask in wish.view.asks for field in wish.narrowing(ask))
    found = [_build_filter(wish, field, tables) for field in fields]
    return [one for one in found if len(one.options) > 1 or any(o.chosen for o in one.options)]


def filter_tables(wish: PageQuery, tables: Sequence[Rows]) -> list[Rows]:
    """The rows that have what the address says of the fields of their table."""
    return [
        [row for row in rows if figures.matches_query(row, wish.narrowing(ask), wish.query)]
        for ask, rows in zip(wish.view.asks, tables, strict=True)
    ]


def _request_left_out(wish: PageQuery) -> figures.FigureTable | figures.PendingTable:
    if wish.view.of_runs:
        return _request_table(wish, LEFT_OUT_TABLE)
    return figures.FigureTable(LEFT_OUT_TABLE.table, (), [])


def _build_file(wish: PageQuery, table: str, by: Sequence[str]) -> TableFile:
    named = [run.number for run in wish.runs]
    narrowed = [name for name in (*by, *wish.view.columns) if name in list_columns(table, by)]
    only = [(name, str(wish.query[name])) for name in narrowed if wish.query.get(name)]
    query = [*((RUN_PARAMETER, number) for number in named), (BY_PARAMETER, ",".join(by)), *only]
    command = ["results", table, "--project", wish.project.slug]
    command += ["--run", *map(str, named)] if RUN_PARAMETER in wish.query else []
    command += ["--by", ",".join(by)]
    command += ["--only", *("=".join(one) for one in only)] if only else []
    return TableFile(table, ",".join(by), urlencode(query, safe=","), shlex.join(command))


def _request_table(wish: PageQuery, ask: TableQuery) -> figures.FigureTable | figures.PendingTable:
    fields = wish.fields(ask)
    try:
        return figures.fetch_or_enqueue(
            figures.build_request(wish.project, ask.table, wish.runs, fields)
        )
    except undetected.UnknownField as error:
        raise Http404(str(error)) from error


def _build_filter(wish: PageQuery, field: str, tables: Sequence[Rows]) -> ChoiceGroup:
    grouping, said = Grouping(field, field), wish.query.get(field, "")
    given = (row.get(field) for rows in tables for row in rows)
    held = {figures.format_value(value) for value in given if value not in (None, "")}
    values = sorted(held | ({said} if said else set()), key=grouping.place_of)
    named = wish.view.named or _no_title
    options = [
        Choice(value, named(wish, field, value) or grouping.title_of(value), value == said)
        for value in values
    ]
    title = wish.view.titles.get(field) or field.replace("_", " ").capitalize()
    return ChoiceGroup(field, title, options)


def _no_title(wish: PageQuery, field: str, value: str) -> str:
    return ""
