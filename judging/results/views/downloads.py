"""Downloads of tables of figures."""

import io

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from annotation.projects import access
from formats.writers import FIGURE_FORMATS, write_figures
from judging.results import figures, tables
from judging.results.counted import UnknownField
from judging.results.page_parts import NAME_ALONE, NAMED_PARAMETER


@require_GET
@login_required
def download_table(request: HttpRequest, slug: str, table: str, form: str) -> HttpResponse:
    """A table of figures as the command prints it: fractions of 1, unrounded. With `named=name`,
    without the numbers of runs if all have names."""
    member = access.member_for(request, slug, right="results")
    if table not in tables.RESULT_TABLES or form not in FIGURE_FORMATS:
        raise Http404
    try:
        made = figures.compute_table(member.project, table, request.GET)
    except (figures.UnknownRun, UnknownField) as error:
        raise Http404(str(error)) from error
    if request.GET.get(NAMED_PARAMETER) == NAME_ALONE:
        made = figures.drop_run_numbers(made)
    stream = io.StringIO(newline="")
    write_figures(form, table, made.rows, made.columns, stream)
    response = HttpResponse(stream.getvalue(), content_type=FIGURE_FORMATS[form].content_type)
    response["Content-Disposition"] = (
        f'attachment; filename="{slug}-{table}.{FIGURE_FORMATS[form].ending}"'
    )
    return response
