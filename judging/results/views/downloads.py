"""Downloads of tables of figures."""

import io

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from annotation.projects import access
from formats.writers import write_figures
from judging.results import figures, tables, undetected

CONTENT_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "tsv": "text/tab-separated-values; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "latex": "text/x-tex; charset=utf-8",
    "markdown": "text/markdown; charset=utf-8",
}
SUFFIXES = {"latex": "tex", "markdown": "md"}


@require_GET
@login_required
def download_table(request: HttpRequest, slug: str, table: str, form: str) -> HttpResponse:
    """A table of figures as the command prints it: fractions of 1, unrounded."""
    member = access.member_for(request, slug, right="results")
    if table not in tables.RESULT_TABLES or form not in CONTENT_TYPES:
        raise Http404
    try:
        made = figures.compute_table(member.project, table, request.GET)
    except (figures.UnknownRun, undetected.UnknownField) as error:
        raise Http404(str(error)) from error
    stream = io.StringIO(newline="")
    write_figures(form, table, made.rows, made.columns, stream)
    response = HttpResponse(stream.getvalue(), content_type=CONTENT_TYPES[form])
    response["Content-Disposition"] = (
        f'attachment; filename="{slug}-{table}.{SUFFIXES.get(form, form)}"'
    )
    return response
