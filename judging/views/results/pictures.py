"""The charts of the result pages as files, and the pages' charts of some runs."""

from collections.abc import Iterator, Sequence
from threading import BoundedSemaphore

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.utils.log import log_response
from django.views.decorators.http import require_GET

from annotation import access
from annotation.models import Membership, Project, Role
from charts import files
from judging import tasks
from judging.models import Run
from judging.results import figures
from judging.views.results import asking
from judging.views.results.kinds import RUN, VIEW, Asked, Drawing, Rows
from judging.views.results.registry import PAGES

# Each takes some 200 MB while it is made; who comes too many waits for this many seconds.
_PLACES = BoundedSemaphore(2)
PATIENCE = 10.0
NOTHING, LATER = 409, 503


@require_GET
@login_required
def download(request: HttpRequest, slug: str, page: str, picture: str) -> HttpResponse:
    """The chart of a page as its address shows it, as a file.

    It is made while one waits, by a process of its own: a second or two, and never more than the
    seconds that `files.write` gives it.
    """
    member = access.member_for(request, slug, right="results")
    if picture not in files.TYPES:
        raise Http404
    wish = asking.asked(member, page, request.GET)
    answers = asking.answers(wish)
    making = [one for one in answers if isinstance(one, figures.Making)]
    for one in making:
        tasks.ring_for(one)
    if making:
        return _soon(request, "The figures are being made. Try again in a moment.")
    drawing = drawn(wish, [one.rows for one in answers if isinstance(one, figures.Made)])
    if drawing is None:
        return _told("The chosen runs have nothing to draw yet.", NOTHING)
    return _file(drawing, f"{slug}-{page}-{wish.view.slug}", picture)


def drawn(wish: Asked, answers: Sequence[Rows]) -> Drawing | None:
    """The chart of a view; `answers` are the rows of its tables and of what they leave out."""
    tables = asking.narrowed(wish, answers[:-1])
    return wish.view.show(wish, tables).drawing


def every(project: Project, runs: Sequence[Run]) -> Iterator[tuple[str, Drawing]]:
    """The chart of every view of every page for these runs, as far as there is something to draw;
    with the name of page and view."""
    for slug, page in PAGES.items():
        for view in page.views:
            numbers = "&".join(f"{RUN}={run.number}" for run in runs)
            found = of_query(project, slug, QueryDict(f"{VIEW}={view.slug}&{numbers}"))
            if found:
                yield f"{slug}-{view.slug}", found


def of_query(project: Project, page: str, query: QueryDict) -> Drawing | None:
    """The chart that the address of a page shows, however long its figures take.

    Raises Http404 for a page, view, run or field that is not there, and for a name that the view
    does not heed: a page may show what it knows of an old address, a figure on paper may not.
    """
    reader = Membership(project=project, role=Role.RESEARCHER)
    wish = asking.asked(reader, page, query)
    if unknown := sorted(set(query) - {RUN, VIEW, *wish.heeded}):
        raise Http404(
            f"This view does not know {', '.join(unknown)}. It knows {', '.join(wish.heeded)}."
        )
    return drawn(wish, asking.waited(wish))


def _file(drawing: Drawing, name: str, form: str) -> HttpResponse:
    if not _PLACES.acquire(timeout=PATIENCE):
        return _told("Others are taking charts. Try again in a moment.", LATER)
    try:
        made = files.write(drawing.spec, form)
    except files.NotMade as error:
        return _told(str(error), LATER)
    finally:
        _PLACES.release()
    response = HttpResponse(made, content_type=files.TYPES[form])
    response["Content-Disposition"] = f'attachment; filename="{name}.{form}"'
    return response


def _soon(request: HttpRequest, words: str) -> HttpResponse:
    """What nobody did wrong: Django would put each 503 into the log as an error."""
    response = _told(words, LATER)
    log_response(words, response=response, request=request, level="info")
    return response


def _told(words: str, status: int) -> HttpResponse:
    headers = {"Retry-After": "2"} if status == LATER else {}
    return HttpResponse(
        words, status=status, content_type="text/plain; charset=utf-8", headers=headers
    )
