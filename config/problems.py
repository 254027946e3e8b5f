"""How what no view answers is told: to programs as a problem, to people as a page."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views import defaults

from annotation.api.answering import PROBLEM, problem

ERROR = "Something went wrong here, which is not your fault. It is in the log."


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not _by_program(request):
        return defaults.page_not_found(request, exception)
    return _told(404, "There is nothing at this address.")


def error(request: HttpRequest) -> HttpResponse:
    return _told(500, ERROR) if _by_program(request) else defaults.server_error(request)


def _by_program(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def _told(status: int, detail: str) -> HttpResponse:
    return JsonResponse(problem(status, detail), status=status, content_type=PROBLEM)
