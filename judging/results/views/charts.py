"""Downloads of the charts of result pages, and charts of given runs."""

from collections.abc import Iterator, Sequence
from threading import BoundedSemaphore

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_GET

from annotation.models import Membership, Project, Role
from annotation.projects import access
from charts import files
from judging.models import Run
from judging.results.page_parts import (
    RUN_PARAMETER,
    VIEW_PARAMETER,
    ChartSpec,
    PageQuery,
    Rows,
)
from judging.results.tables import PAGES
from judging.results.views import downloads
from judging.results.views import pages as views_query

# Each conversion takes about 200 MB; further ones wait for at most this many seconds.
_CONVERSIONS = BoundedSemaphore(2)
WAIT_SECONDS = 10.0


@require_GET
@login_required
def download_chart(request: HttpRequest, slug: str, page: str, picture: str) -> HttpResponse:
    """Return the chart that the URL of a page shows, as a file.

    A separate process renders the chart while the user waits. This takes a second or two;
    `files.render` sets the limit.
    """
    member = access.member_for(request, slug, right="results")
    if picture not in files.TYPES:
        raise Http404
    wish = views_query.parse_query(member, page, request.GET)
    answers = views_query.request_ready_tables(wish)
    if answers is None:
        return downloads.respond_pending(request)
    drawing = draw_view(wish, answers)
    if drawing is None:
        return downloads.respond_text(
            "There is nothing to draw for the chosen runs yet.", downloads.NOTHING_YET
        )
    return _file(drawing, f"{slug}-{page}-{wish.view.slug}", picture)


def draw_view(wish: PageQuery, answers: Sequence[Rows]) -> ChartSpec | None:
    """The chart of a view; `answers` are the rows of its tables and then those of `left_out`."""
    tables = views_query.filter_tables(wish, answers[:-1])
    return wish.view.build(wish, tables).drawing


def draw_all(project: Project, runs: Sequence[Run]) -> Iterator[tuple[str, ChartSpec]]:
    """Draw the charts of all views of all pages for these runs, with the names of page and view.
    Views with nothing to draw are left out."""
    for slug, page in PAGES.items():
        for view in page.views:
            numbers = "&".join(f"{RUN_PARAMETER}={run.number}" for run in runs)
            found = draw_query(project, slug, QueryDict(f"{VIEW_PARAMETER}={view.slug}&{numbers}"))
            if found:
                yield f"{slug}-{view.slug}", found


def draw_query(project: Project, page: str, query: QueryDict) -> ChartSpec | None:
    """Draw the chart for the URL of a page, however long its figures take.

    Raises Http404 for an unknown page, view, run or field, and for a parameter that the view does
    not use: a page may ignore parts of an old URL, but a printed figure must not.
    """
    reader = Membership(project=project, role=Role.RESEARCHER)
    wish = views_query.parse_query(reader, page, query)
    if unknown := sorted(set(query) - {RUN_PARAMETER, VIEW_PARAMETER, *wish.heeded}):
        raise Http404(
            f"This view has no parameter {', '.join(unknown)}. Use {', '.join(wish.heeded)}."
        )
    return draw_view(wish, views_query.compute_tables(wish))


def _file(drawing: ChartSpec, name: str, form: str) -> HttpResponse:
    if not _CONVERSIONS.acquire(timeout=WAIT_SECONDS):
        return downloads.respond_text(
            "Too many charts are being drawn. Try again in a moment.", downloads.TRY_LATER
        )
    try:
        made = files.render(drawing.spec, form)
    except files.ConversionFailed as error:
        return downloads.respond_text(str(error), downloads.TRY_LATER)
    finally:
        _CONVERSIONS.release()
    response = HttpResponse(made, content_type=files.TYPES[form])
    response["Content-Disposition"] = f'attachment; filename="{name}.{form}"'
    return response
