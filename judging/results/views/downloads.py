"""Downloads of tables of figures: all rows and columns of a table, or the table of a page as it is
shown."""

import io
from collections.abc import Sequence

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.log import log_response
from django.views.decorators.http import require_GET

from annotation.projects import access
from formats.typeset import PrintedCell, PrintedLine, PrintedTable, write_latex_table
from formats.writers import FIGURE_FORMATS, write_figures
from judging import tasks
from judging.results import figure_help, figures, tables
from judging.results.cells import GridLine
from judging.results.counted import UnknownField
from judging.results.page_parts import NAME_ALONE, NAMED_PARAMETER, PageQuery, Rows
from judging.results.views import pages

NOTHING_YET, TRY_LATER = 409, 503


@require_GET
@login_required
def download_table(request: HttpRequest, slug: str, table: str, form: str) -> HttpResponse:
    """A table of figures as the command prints it: fractions of 1, unrounded. With `named=name`,
    without the numbers of runs if all have names. While a worker computes it, 503."""
    member = access.member_for(request, slug, right="results")
    if table not in tables.RESULT_TABLES or form not in FIGURE_FORMATS:
        raise Http404
    try:
        made = figures.request_table(member.project, table, request.GET)
    except (figures.UnknownRun, UnknownField) as error:
        raise Http404(str(error)) from error
    if isinstance(made, figures.PendingTable):
        tasks.notify_of_figure(made)
        return respond_pending(request)
    if request.GET.get(NAMED_PARAMETER) == NAME_ALONE:
        made = figures.drop_run_numbers(made)
    stream = io.StringIO(newline="")
    write_figures(form, table, made.rows, made.columns, stream)
    response = HttpResponse(stream.getvalue(), content_type=FIGURE_FORMATS[form].content_type)
    response["Content-Disposition"] = (
        f'attachment; filename="{slug}-{table}.{FIGURE_FORMATS[form].ending}"'
    )
    return response


@require_GET
@login_required
def download_page_table(request: HttpRequest, slug: str, page: str) -> HttpResponse:
    """The table that the URL of a page shows, for LaTeX: the same lines, columns, order and small
    print."""
    member = access.member_for(request, slug, right="results")
    wish = pages.parse_query(member, page, request.GET)
    found = pages.request_ready_tables(wish)
    if found is None:
        return respond_pending(request)
    table = print_table(wish, found[:-1], found[-1])
    if not any(table.blocks):
        return respond_text("There are no figures for the chosen runs yet.", NOTHING_YET)
    stream = io.StringIO(newline="")
    write_latex_table(table, stream)
    form = FIGURE_FORMATS["latex"]
    response = HttpResponse(stream.getvalue(), content_type=form.content_type)
    response["Content-Disposition"] = (
        f'attachment; filename="{slug}-{page}-{wish.view.slug}.{form.ending}"'
    )
    return response


def print_table(
    wish: PageQuery, tables: Sequence[Rows], left_out: Rows | None = None
) -> PrintedTable:
    """The table of a page as it is shown. The caption names the filters; the note has the page's
    words on the figures and, if intervals are shown, how these are made."""
    shown = pages.build_content(wish, tables)
    only = [
        f"{one.title}: {option.title}"
        for one in pages.list_filters(wish, tables)
        for option in one.options
        if option.chosen
    ]
    word_groups = wish.categories.word_groups
    note = [wish.categories_warning, pages.describe_regrouped(wish, left_out or []), shown.words]
    if wish.intervals and shown.grid.has_intervals:
        made = [figure_help.load_figures()[name].interval for name in wish.view.figures]
        note += dict.fromkeys(one.how for one in made if one)
    return PrintedTable(
        caption=f"{'; '.join([word_groups(shown.grid.title), *only])}.",
        label=f"tab:{wish.project.slug}-{wish.slug}-{wish.view.slug}",
        heads=[
            PrintedCell(one.title, [one.note] if one.note else []) for one in shown.grid.columns
        ],
        numeric=[one.is_number for one in shown.grid.columns],
        blocks=[
            [_print_line(line, intervals=wish.intervals) for line in block.lines]
            for block in shown.grid.blocks
        ],
        note=word_groups(" ".join(filter(None, note))),
    )


def _print_line(line: GridLine, *, intervals: bool) -> PrintedLine:
    first, *rest = line.cells
    cells = [
        PrintedCell(first.text, [first.note] if first.note else []),
        *(PrintedCell(one.text, one.small_print(intervals=intervals)) for one in rest),
    ]
    return PrintedLine(cells, is_total=line.kind == "group")


def respond_pending(request: HttpRequest) -> HttpResponse:
    """A response 503 while figures are computed, logged as info, since Django would log it as an
    error."""
    words = "The figures are being computed. This page tries again by itself."
    response = respond_text(words, TRY_LATER)
    log_response(words, response=response, request=request, level="info")
    return response


def respond_text(words: str, status: int) -> HttpResponse:
    """A sentence instead of a file."""
    headers = {"Retry-After": "2", "Refresh": "2"} if status == TRY_LATER else {}
    return HttpResponse(
        words, status=status, content_type="text/plain; charset=utf-8", headers=headers
    )
