"""From an address to what it asks for, and to the figures that answer it."""

from collections.abc import Sequence
from urllib.parse import urlencode

from django.http import Http404, QueryDict

from annotation.leads.grouping import Grouping
from annotation.models import Membership, Project
from judging.models import Run
from judging.results import figures, reports
from judging.views.results.kinds import BY, RUN, VIEW, Ask, Asked, Choice, Choices, Rows
from judging.views.results.registry import PAGES

# What no figure of the chosen runs counts, below every table.
LEFT_OUT = Ask("left_out", "")


def asked(member: Membership, slug: str, query: QueryDict) -> Asked:
    """What an address asks for. Raises Http404 for a page, view or run that is not there."""
    page = PAGES.get(slug)
    if page is None:
        raise Http404
    views = {view.slug: view for view in page.views}
    view = views.get(query.get(VIEW, page.views[0].slug))
    if view is None:
        raise Http404
    return Asked(member, slug, page, view, chosen(member.project, query), query)


def chosen(project: Project, query: QueryDict) -> list[Run]:
    try:
        return figures.chosen(project, query)
    except figures.UnknownRun as error:
        raise Http404(str(error)) from error


def answers(wish: Asked) -> list[figures.Made | figures.Making]:
    """Each table of a view and what they leave out, or how far a worker is. Raises Http404."""
    return [_answer(wish, ask) for ask in (*wish.view.asks, LEFT_OUT)]


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


def files(wish: Asked) -> list[tuple[Ask, str]]:
    """Each table of a view, and the query that gives the same rows as a file."""
    found = []
    for ask in wish.view.asks:
        by = ",".join(wish.fields(ask))
        query = urlencode({RUN: [run.number for run in wish.runs], BY: by}, doseq=True, safe=",")
        found.append((Ask(ask.table, by), query))
    return found


def narrowing(wish: Asked, tables: Sequence[Rows]) -> list[Choices]:
    """What the tables can be narrowed down by: each field with the values that it has there."""
    fields = dict.fromkeys(field for ask in wish.view.asks for field in wish.fields(ask))
    return [_values(wish, field, tables) for field in fields]


def narrowed(wish: Asked, tables: Sequence[Rows]) -> list[Rows]:
    """The rows that have what the address says of the fields of their table."""
    return [
        [row for row in rows if _fits(row, wish.fields(ask), wish.query)]
        for ask, rows in zip(wish.view.asks, tables, strict=True)
    ]


def _answer(wish: Asked, ask: Ask) -> figures.Made | figures.Making:
    fields = wish.fields(ask)
    try:
        return figures.answer(figures.asked(wish.project, ask.table, wish.runs, fields))
    except reports.UnknownField as error:
        raise Http404(str(error)) from error


def _fits(row: dict[str, object], fields: Sequence[str], query: QueryDict) -> bool:
    return all(query.get(field, "") in ("", row[field]) for field in fields if field in row)


def _values(wish: Asked, field: str, tables: Sequence[Rows]) -> Choices:
    grouping, said = Grouping(field, field), wish.query.get(field, "")
    held = {str(row[field]) for rows in tables for row in rows if row.get(field)}
    values = sorted(held | ({said} if said else set()), key=grouping.place_of)
    options = [Choice(value, grouping.title_of(value), value == said) for value in values]
    return Choices(field, field.replace("_", " ").capitalize(), options)
