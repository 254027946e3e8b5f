"""How what no view answers is told: to programs as a problem, to people as a page."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views import defaults

from annotation.api.answering import PROBLEM, problem

ERROR = "Something went wrong here, which is not your fault. It is in the log."
AWAY = (
    "The database is not available at the moment. What was stored before is safe. Try again in some"
    " seconds."
)
# Seconds after which it may be there again.
WAIT = 5


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not _by_program(request):
        return defaults.page_not_found(request, exception)
    return _told(404, "There is nothing at this address.")


def error(request: HttpRequest) -> HttpResponse:
    # Called while what was raised is handled, wherever that was.
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return _database_away(request)
    return _told(500, ERROR) if _by_program(request) else defaults.server_error(request)


def _database_away(request: HttpRequest) -> HttpResponse:
    if _by_program(request):
        answer = _told(503, AWAY)
    else:
        answer = HttpResponse(render_to_string("503.html"), status=503)
    answer["Retry-After"] = str(WAIT)
    return answer


def _by_program(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def _told(status: int, detail: str) -> HttpResponse:
    return JsonResponse(problem(status, detail), status=status, content_type=PROBLEM)
