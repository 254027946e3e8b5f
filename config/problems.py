"""How what no view answers is told: to programs as a problem, to people as a page."""

import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.views import redirect_to_login
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views import defaults

from annotation.api.answering import PROBLEM, problem
from annotation.declared import RESERVED

ERROR = "Something went wrong here, which is not your fault. It is in the log."
AWAY = (
    "The database is not available at the moment. What was stored before is safe. Try again in some"
    " seconds."
)
# Seconds after which it may be there again.
WAIT = 5
# What forms send beside what people typed: it is of no use to them.
OWN_FIELDS = RESERVED - {"comment", "note", "text"} | {"seen", "shown", "base", "next"}
BUTTONS = {"action", "confirm", "end", "look", "preview", "withdraw"}
CODE, PASSWORD = "code", "password"


class SignedOut:
    """Middleware: tells who is not signed in to do so first, and shows them what they typed.

    It stands before Django's check of forms, which would say that the form is out of date: where
    the session is gone, its token often is as well. A page that is opened is left to its view.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], *_: Any
    ) -> HttpResponse | None:
        # `login_required` and the administration leave this mark on the views that they guard.
        if not hasattr(view, "login_url") or request.user.is_authenticated:
            return None
        page = _page_before(request) or request.get_full_path()
        sign_in = redirect_to_login(page, view.login_url)
        if _is_part(request) or (request.method == "POST" and _typed(request)):
            return _refused(request, "401.html", 401, sign_in=sign_in.url)
        return sign_in if request.method == "POST" else None


def out_of_date(request: HttpRequest, reason: str = "") -> HttpResponse:
    """For a form whose token is missing or of another session."""
    return _refused(request, "403_csrf.html", 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not _by_program(request):
        return defaults.page_not_found(request, exception)
    return _told(404, "There is nothing at this address.")


def error(request: HttpRequest) -> HttpResponse:
    # Called while what was raised is handled, wherever that was.
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return _database_away(request)
    if _by_program(request):
        return _told(500, ERROR)
    return _broken(request, "500.html", 500)


def _database_away(request: HttpRequest) -> HttpResponse:
    answer = _told(503, AWAY) if _by_program(request) else _broken(request, "503.html", 503)
    answer["Retry-After"] = str(WAIT)
    return answer


def _broken(request: HttpRequest, template: str, status: int) -> HttpResponse:
    """A page that asks the database nothing; for a script the reason alone."""
    part = "#why" if _is_part(request) else ""
    return _placed(HttpResponse(render_to_string(template + part), status=status), request)


def _placed(response: HttpResponse, request: HttpRequest) -> HttpResponse:
    """For a script, in the place that every page has for what went wrong."""
    if _is_part(request):
        response["HX-Retarget"], response["HX-Reswap"] = "#refused", "innerMorph"
    return response


def _refused(request: HttpRequest, template: str, status: int, **said: str) -> HttpResponse:
    """A page that says why, with what was typed; for a script, whose page still holds that, the
    reason alone, for the place that every page has for it."""
    if not _is_part(request):
        return render(request, template, {**said, "typed": _typed(request)}, status=status)
    return _placed(render(request, f"{template}#why", said, status=status), request)


def _typed(request: HttpRequest) -> list[tuple[str, str]]:
    """What a form of ours sent, by the names of its fields; nothing of what another site sends."""
    if not _page_before(request):
        return []
    return [
        (name.replace("_", " "), value)
        for name, values in request.POST.lists()
        for value in values
        if value.strip() and name not in OWN_FIELDS | BUTTONS | {CODE} and PASSWORD not in name
    ]


def _page_before(request: HttpRequest) -> str:
    """The page of ours that the request came from; empty if it came from elsewhere."""
    page = urlsplit(request.headers.get("Referer", ""))
    if page.netloc != request.get_host():
        return ""
    return page._replace(scheme="", netloc="", fragment="").geturl()


def _is_part(request: HttpRequest) -> bool:
    return "HX-Request" in request.headers


def _by_program(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def _told(status: int, detail: str) -> HttpResponse:
    return JsonResponse(problem(status, detail), status=status, content_type=PROBLEM)
