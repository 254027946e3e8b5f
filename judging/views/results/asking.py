"""From an address to what it asks for, and to the figures that answer it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import Http404, QueryDict

from annotation.leads.grouping import Grouping
from annotation.models import Membership
from judging.models import Run
from judging.results import figures, reports, run_marks
from judging.results.tables import columns
from judging.views.results.kinds import BY, RUN, VIEW, Ask, Asked, Choice, Choices, Rows
from judging.views.results.registry import PAGES

# What no figure of the chosen runs counts, below every table.
LEFT_OUT = Ask("left_out", "")


@dataclass(frozen=True)
class File:
    """A table of a view: the query that gives its rows as a file, and the command that prints
    them."""

    table: str
    by: str
    query: str
    command: str


def asked(member: Membership, slug: str, query: QueryDict) -> Asked:
    """What an address asks for. Raises Http404 for a page, view or run that is not there."""
    page = PAGES.get(slug)
    if page is None:
        raise Http404
    views = {view.slug: view for view in page.views}
    view = views.get(query.get(VIEW, page.views[0].slug))
    if view is None:
        raise Http404
    every = run_marks.marked_runs(member.project)
    return Asked(member, slug, page, view, chosen(every, query), query, every)


def chosen(every: Sequence[Run], query: QueryDict) -> list[Run]:
    """Those of a project's runs that the address asks for. Raises Http404."""
    try:
        return figures.among(every, query)
    except figures.UnknownRun as error:
        raise Http404(str(error)) from error


def answers(wish: Asked) -> list[figures.Made | figures.Making]:
    """Each table of a view and what they leave out, or how far a worker is. Raises Http404."""
    return [*(_answer(wish, ask) for ask in wish.view.asks), _left_out(wish)]


def waited(wish: Asked) -> list[Rows]:
    """The rows of the same, however long they take; nothing is stored. Raises Http404."""
    found = []
    for ask in (*wish.view.asks, LEFT_OUT):
        try:
            asked = figures.asked(wish.project, ask.table, wish.runs, wish.fields(ask))
            found.append(asked.rows())
        except reports.UnknownField as error:
            raise Http404(str(error)) from error
    return found


def files(wish: Asked) -> list[File]:
    """Each table of a view, with what gives the same rows as a file."""
    return [_file(wish, ask.table, wish.fields(ask)) for ask in wish.view.asks]


def narrowing(wish: Asked, tables: Sequence[Rows]) -> list[Choices]:
    """What the tables can be narrowed down by: each field with the values that it has there, if it
    has several or the address asks for one."""
    fields = dict.fromkeys(field for ask in wish.view.asks for field in wish.narrowing(ask))
    found = [_values(wish, field, tables) for field in fields]
    return [one for one in found if len(one.options) > 1 or any(o.chosen for o in one.options)]


def narrowed(wish: Asked, tables: Sequence[Rows]) -> list[Rows]:
    """The rows that have what the address says of the fields of their table."""
    return [
        [row for row in rows if figures.fits(row, wish.narrowing(ask), wish.query)]
        for ask, rows in zip(wish.view.asks, tables, strict=True)
    ]


def _left_out(wish: Asked) -> figures.Made | figures.Making:
    if wish.view.of_runs:
        return _answer(wish, LEFT_OUT)
    return figures.Made(LEFT_OUT.table, (), [])


def _file(wish: Asked, table: str, by: Sequence[str]) -> File:
    named = [run.number for run in wish.runs]
    narrowed = [name for name in (*by, *wish.view.columns) if name in columns(table, by)]
    only = [(name, str(wish.query[name])) for name in narrowed if wish.query.get(name)]
    query = [*((RUN, number) for number in named), (BY, ",".join(by)), *only]
    command = ["results", table, "--project", wish.project.slug]
    command += ["--run", *map(str, named)] if RUN in wish.query else []
    command += ["--by", ",".join(by)]
    command += ["--only", *("=".join(one) for one in only)] if only else []
    return File(table, ",".join(by), urlencode(query, safe=","), shlex.join(command))


def _answer(wish: Asked, ask: Ask) -> figures.Made | figures.Making:
    fields = wish.fields(ask)
    try:
        return figures.answer(figures.asked(wish.project, ask.table, wish.runs, fields))
    except reports.UnknownField as error:
        raise Http404(str(error)) from error


def _values(wish: Asked, field: str, tables: Sequence[Rows]) -> Choices:
    grouping, said = Grouping(field, field), wish.query.get(field, "")
    given = (row.get(field) for rows in tables for row in rows)
    held = {figures.word(value) for value in given if value not in (None, "")}
    values = sorted(held | ({said} if said else set()), key=grouping.place_of)
    named = wish.view.named or _as_it_is
    options = [
        Choice(value, named(wish, field, value) or grouping.title_of(value), value == said)
        for value in values
    ]
    title = wish.view.titles.get(field) or field.replace("_", " ").capitalize()
    return Choices(field, title, options)


def _as_it_is(wish: Asked, field: str, value: str) -> str:
    return ""
