"""Downloads of the charts of result pages, and charts of given runs."""

import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from importlib import metadata
from threading import BoundedSemaphore

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_GET

from annotation.models import Membership, Project, Role
from annotation.projects import access
from charts import files
from judging.models import Run
from judging.results import cache
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
from judging.strategies import compute_digest

# Each conversion takes about 200 MB; further ones wait for at most this many seconds.
_CONVERSIONS = BoundedSemaphore(2)
WAIT_SECONDS = 10.0


@require_GET
@login_required
def download_chart(request: HttpRequest, slug: str, page: str, picture: str) -> HttpResponse:
    """Return the chart that the URL of a page shows, as a file.

    A separate process renders the chart while the user waits. This takes a second or two;
    `files.render` sets the limit. The file is kept for whoever downloads the same chart again.
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
    name = f"{slug}-{page}-{wish.view.slug}"
    try:
        made = _render_or_fetch(member.project, drawing, picture)
    except files.ConversionFailed as error:
        return downloads.respond_text(str(error), downloads.TRY_LATER)
    if made is None:
        return downloads.respond_text(
            "Too many charts are being drawn. Try again in a moment.", downloads.TRY_LATER
        )
    response = HttpResponse(made, content_type=files.TYPES[picture])
    response["Content-Disposition"] = f'attachment; filename="{name}.{picture}"'
    return response


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


def _render_or_fetch(project: Project, drawing: ChartSpec, form: str) -> bytes | None:
    """The file of a chart, rendered unless exactly this chart was rendered before; None if too many
    are being rendered. Raises `ConversionFailed`.

    A specification has all that a file shows, so its digest tells whether the file is the same.
    """
    if form == "json":
        return files.render(drawing.spec, form)
    paper = files.with_print_style(drawing.spec)
    state = compute_digest([paper, form, metadata.version("vl-convert-python")])
    key = cache.CacheKey(project, cache.CHART_FILE, (), (state,))
    if found := cache.find(key):
        return b64decode(cache.load_rows(found)[0]["file"])
    if not _CONVERSIONS.acquire(timeout=WAIT_SECONDS):
        return None
    begun = time.perf_counter()
    try:
        made = files.render(drawing.spec, form)
    finally:
        _CONVERSIONS.release()
    rows = [{"file": b64encode(made).decode()}]
    cache.store(key, state, rows, time.perf_counter() - begun)
    return made
