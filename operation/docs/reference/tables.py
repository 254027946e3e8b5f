"""The page of the tables of results, as `judging/results/tables/` declares them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from django.conf import settings

from judging.results.columns import COMMON_COLUMNS, ENDINGS, Column, Table
from judging.results.figure_help import load_figures
from judging.results.page_parts import ResultPage
from judging.results.tables import PAGES, RESULT_TABLES
from operation.docs.pages import make_anchor
from operation.docs.reference import markdown
from operation.docs.reference.markdown import code, codes, plain

_COMMON = "#columns-that-many-tables-have"
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
        "rates and differences of rates are fractions of 1, unrounded. A page shows the columns "
        "with a title. A table that is grouped also has a column for each field that it is "
        "grouped by. [Figures](figures.md) says how the figures are computed.",
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
    names = table.list_file_columns([])
    shown = [one for one in table.columns if one.title]
    attached = _attach(shown, names)
    yield markdown.table(
        ("column", "title", "meaning", "shown as", "further columns of the figure"),
        (
            (
                code(one.name),
                _title(one),
                table.explain(one.name),
                one.shown_as,
                codes(attached[one.name]),
            )
            for one in shown
        ),
    )
    told = {*attached, *(name for several in attached.values() for name in several)}
    rest = [name for name in names if name not in told]
    unsaid = [name for name in rest if name not in table.meanings]
    parts = {name: _find_parts(name, unsaid) for name in rest if name in table.meanings}
    told = {name for several in parts.values() for name in several}
    common = [name for name in unsaid if name not in told]
    if shown and parts:
        yield "Only in files and the API:"
    yield markdown.table(
        ("column", "meaning", "further columns of the figure"),
        ((code(name), table.explain(name), codes(of)) for name, of in parts.items()),
    )
    if common:
        where = "Only in files and the API" if shown and not parts else "And"
        yield f"{where}, as in [many tables]({_COMMON}): {codes(common)}."


def _title(column: Column) -> str:
    # The currency is that of the site.
    unit = "currency" if column.unit == settings.CURRENCY else column.unit
    return plain(f"{column.title} ({unit})" if unit else column.title)


def _attach(shown: Sequence[Column], names: Sequence[str]) -> dict[str, list[str]]:
    """The names of the columns that belong to the figure of each column: those that it says itself,
    and those with its name in front that no other one takes."""
    said = {one.name: _interval_columns(one) for one in shown if hasattr(one, "prefix")}
    taken = {name for several in said.values() for name in several}
    for one in shown:
        usual = [f"{one.name}_{ending}" for ending in (*ENDINGS, "p")]
        own = [name for name in usual if name not in taken]
        said[one.name] = [*said.get(one.name, []), *own]
    return {name: [one for one in several if one in names] for name, several in said.items()}


def _interval_columns(column: Column) -> list[str]:
    ends = [getattr(column, end, end) for end in ENDINGS[:2]]
    return [f"{getattr(column, 'prefix', '')}{end}" for end in (*ends, ENDINGS[2])]


def _find_parts(name: str, names: Sequence[str]) -> list[str]:
    """The columns of the interval of a figure that is in files alone, or of its rate."""
    start = name.removesuffix("_rate")
    return [f"{start}_{ending}" for ending in ENDINGS if f"{start}_{ending}" in names]
