"""Error responses outside views: problem documents for API clients, pages for people."""

import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import render
from django.template.loader import render_to_string

from annotation.api.responses import PROBLEM_CONTENT_TYPE, build_problem
from annotation.tasktypes.field_schema import RESERVED

ERROR_MESSAGE = (
    "Something went wrong on the server. This is not your fault. The error is in the log."
)
DATABASE_AWAY_MESSAGE = (
    "The database is not available at the moment. Your saved work is safe. Try again in a few "
    "seconds."
)
# Seconds until the database may be available again.
RETRY_AFTER_SECONDS = 5
# Form fields that contain nothing typed by the user; they are not shown again.
OWN_FIELDS = RESERVED - {"comment", "note", "text"} | {"seen", "shown", "base", "next"}
OWN_FIELDS |= {"verdict-of", "verdict-confirm"}
BUTTON_NAMES = {"action", "save-anyway", "end", "look", "preview", "withdraw"}
CODE_FIELD, PASSWORD_FIELD = "code", "password"


class SignedOutMiddleware:
    """Middleware that asks signed-out users to sign in first, and shows them what they had typed.

    It runs before Django's CSRF check, which would call the form outdated: when a session ends, its
    CSRF token often ends too. GET requests for pages are passed on to their views.

    The label screen names the account that it was opened with in the header `Account`. If somebody
    else has signed in since, in another tab of the same browser, that account is signed out: its
    page must not show their items, or keep their drafts and labels under its name.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], *_: Any
    ) -> HttpResponse | None:
        """Answer a signed-out request for a view that needs a sign-in: 401 for a fragment or for a
        form that was filled in, a redirect for any other POST. Return None to pass the request on
        to the view."""
        # `login_required` and the admin set this attribute on views that need a sign-in.
        if not hasattr(view, "login_url") or _is_signed_in(request):
            return None
        page = _referring_page(request) or request.get_full_path()
        sign_in = redirect_to_login(page, view.login_url)
        if _is_fragment(request) or (request.method == "POST" and _typed_values(request)):
            return _render_refused(request, "401.html", 401, sign_in=sign_in.url)
        return sign_in if request.method == "POST" else None


def _is_signed_in(request: HttpRequest) -> bool:
    """True if the sender is signed in, with the account that the page was opened with."""
    opened = request.headers.get("Account") or str(request.user.pk)
    return request.user.is_authenticated and opened == str(request.user.pk)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Return the response to a form whose CSRF token is missing or belongs to another session."""
    return _render_refused(request, "403_csrf.html", 403)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the page or, for the API, a problem in JSON. Django calls it for `Http404`."""
    if not _is_api_request(request):
        return _render_barred(request, "404.html", 404)
    return _problem_response(404, "This page does not exist.")


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the page that says why the person may not do this. Django calls it for
    `PermissionDenied`."""
    return _render_barred(request, "403.html", 403, exception=str(exception))


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 503 if the database is not available, otherwise 500; for the API in JSON. The page
    needs no database. Django calls this function for an unhandled exception."""
    # Called while the exception is being handled, wherever the exception was raised.
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return _render_database_away(request)
    if _is_api_request(request):
        return _problem_response(500, ERROR_MESSAGE)
    return _render_static(request, "500.html", 500)


def _render_database_away(request: HttpRequest) -> HttpResponse:
    answer = (
        _problem_response(503, DATABASE_AWAY_MESSAGE)
        if _is_api_request(request)
        else _render_static(request, "503.html", 503)
    )
    answer["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return answer


def _render_static(request: HttpRequest, template: str, status: int) -> HttpResponse:
    """Render a page that needs no database; for an htmx request, only the reason."""
    part = "#why" if _is_fragment(request) else ""
    return _retarget(HttpResponse(render_to_string(template + part), status=status), request)


def _retarget(response: HttpResponse, request: HttpRequest) -> HttpResponse:
    """For an htmx request, show the response in the place for errors that every page has."""
    if _is_fragment(request):
        response["HX-Retarget"], response["HX-Reswap"] = "#refused", "innerMorph"
    return response


def _render_refused(request: HttpRequest, template: str, status: int, **said: str) -> HttpResponse:
    """Render a page with the reason and the values that the user typed. An htmx request gets only
    the reason, for the place for errors on its page, since the user still sees the values there."""
    if not _is_fragment(request):
        return render(request, template, {**said, "typed": _typed_values(request)}, status=status)
    return _retarget(render(request, f"{template}#why", said, status=status), request)


def _render_barred(request: HttpRequest, template: str, status: int, **said: str) -> HttpResponse:
    """Render a page that does not exist, or not for this person any more, with what was typed."""
    if request.method == "POST":
        return _render_refused(request, template, status, **said)
    return render(request, template, said, status=status)


def _typed_values(request: HttpRequest) -> list[tuple[str, str]]:
    """Return the values that one of our forms sent, by field name; nothing from other sites, and
    nothing that cannot be read."""
    if not _referring_page(request):
        return []
    try:
        sent = request.POST
    except (SuspiciousOperation, BadRequest, MultiPartParserError, OSError):
        return []
    return [
        (name.replace("_", " "), value)
        for name, values in sent.lists()
        for value in values
        if value.strip()
        and name not in OWN_FIELDS | BUTTON_NAMES | {CODE_FIELD}
        and PASSWORD_FIELD not in name
    ]


def _referring_page(request: HttpRequest) -> str:
    """Return the page of this site that the request came from; "" if it came from another site."""
    page = urlsplit(request.headers.get("Referer", ""))
    if page.netloc != request.get_host():
        return ""
    return page._replace(scheme="", netloc="", fragment="").geturl()


def _is_fragment(request: HttpRequest) -> bool:
    return "HX-Request" in request.headers


def _is_api_request(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def _problem_response(status: int, detail: str) -> HttpResponse:
    return JsonResponse(
        build_problem(status, detail), status=status, content_type=PROBLEM_CONTENT_TYPE
    )
