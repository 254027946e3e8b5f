"""The page of the tables of results, as `judging/results/tables/` declares them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from django.conf import settings

from judging.results.columns import COMMON_COLUMNS, ENDINGS, FIELDS, Column, Table
from judging.results.figure_help import load_figures
from judging.results.page_parts import ResultPage
from judging.results.tables import PAGES, RESULT_TABLES
from operation.docs.pages import make_anchor
from operation.docs.reference import markdown
from operation.docs.reference.markdown import code, codes, plain

_OTHERS = (
    "These are files, and answers of the API and of the command. Leads see some of them on pages "
    "of the project, such as *Progress and pace* and *Category board*."
)


def write_page() -> str:
    """The page as Markdown."""
    placed = [name for page in PAGES.values() for name in list_tables(page)]
    rest = [name for name in RESULT_TABLES if name not in placed]
    return markdown.page(
        "Tables of results",
        "The tables of figures with their columns, by the result page that shows them. `manage.py "
        "results NAME --project SLUG` prints a table, and the API and files have the same columns: "
        "rates are fractions of 1, unrounded. A page shows the columns with a title. [Figures]"
        "(figures.md) says how the figures are computed.",
        "## Columns that many tables have",
        markdown.table(
            ("column", "meaning"), ((code(name), said) for name, said in COMMON_COLUMNS.items())
        ),
        *(part for page in PAGES.values() for part in _page(page, placed)),
        "## On no result page",
        _OTHERS,
        *(part for name in rest for part in _table(RESULT_TABLES[name], "")),
    )


def list_tables(page: ResultPage) -> list[str]:
    """The names of the tables that the page shows or offers as files, in order."""
    asked = [one for view in page.views for one in view.asks]
    names = [table.name for one in asked for table in (one.table, one.file) if table]
    return [name for name in dict.fromkeys(names) if name in RESULT_TABLES]


def _page(page: ResultPage, placed: list[str]) -> Iterator[str]:
    yield f"## {page.title}"
    yield page.question
    named = {one: load_figures()[one].title for view in page.views for one in view.figures}
    links = (f"[{title}](figures.md#{make_anchor(title)})" for title in named.values())
    if named:
        yield f"Figures: {', '.join(links)}"
    for name in list_tables(page):
        places = [other.title for other in PAGES.values() if name in list_tables(other)]
        if places[0] == page.title:
            yield from _table(RESULT_TABLES[name], _views(name))
        else:
            yield f"The table [{name}](#{make_anchor(name)}) is above."


def _views(name: str) -> str:
    """The pages that show a table, with their views."""
    found: dict[str, dict[str, None]] = {}
    for page in PAGES.values():
        for view in page.views:
            if name in list_tables(replace(page, views=(view,))):
                found.setdefault(page.title, {})[f"*{view.title}*"] = None
    return "; ".join(f"{page} ({', '.join(views)})" for page, views in found.items())


def _table(table: Table, views: str) -> Iterator[str]:
    yield f"### {code(table.name)}"
    yield plain(table.about)
    grouped = plain(table.group_by.words) if table.group_by else ""
    yield markdown.facts([("Shown by", views), ("Grouped by", grouped)])
    yield from _columns(table)


def _columns(table: Table) -> Iterator[str]:
    names = table.list_file_columns([FIELDS.name])
    shown = [one for one in table.columns if one.title]
    attached = {one.name: _with_endings(one, names) for one in shown}
    yield markdown.table(
        ("column", "title", "shown as", "further columns of the figure"),
        ((code(one.name), _title(one), one.shown_as, codes(attached[one.name])) for one in shown),
    )
    told = {*attached, *(name for several in attached.values() for name in several)}
    rest = [code(name) if name else "the fields of the group" for name in names if name not in told]
    if rest:
        yield f"{'Only in files and the API' if shown else 'Columns'}: {', '.join(rest)}."


def _title(column: Column) -> str:
    # The currency is that of the site.
    unit = "currency" if column.unit == settings.CURRENCY else column.unit
    return plain(f"{column.title} ({unit})" if unit else column.title)


def _with_endings(column: Column, names: Sequence[str]) -> list[str]:
    """The names of the columns that belong to the figure of a column."""
    start = getattr(column, "prefix", f"{column.name}_")
    wanted = [f"{start}{ending}" for ending in ENDINGS] + [f"{column.name}_p"]
    return [name for name in wanted if name in names]
