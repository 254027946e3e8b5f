"""Read what a request sends before anybody asks who sent it."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError


class EarlyBodyMiddleware:
    """Middleware that reads the body first.

    A server such as gunicorn passes a request on while its body still comes, and whoever sends it
    decides how long that takes. A view that asks for the sender's rights and then reads the body
    would act by rights that the sender no longer has.

    Which files are kept depends on the sender. So a form with files is read once its view is known,
    and then the sender is asked for again.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not _has_files(request):
            try:
                # The view refuses what is too large, and reads none of it.
                with suppress(RequestDataTooBig):
                    _ = request.body
            except UnreadablePostError:  # the sender is gone
                return HttpResponse(status=400)
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], *_more: Any
    ) -> HttpResponse | None:
        """Read a form with files. Views of the API read theirs themselves."""
        if not _has_files(request) or getattr(view, "csrf_exempt", False):
            return None
        try:
            _ = request.POST
        except UnreadablePostError:
            return HttpResponse(status=400)
        vars(request).pop("_cached_user", None)
        request.session = type(request.session)(request.session.session_key)
        AuthenticationMiddleware(self.get_response).process_request(request)
        return None


def _has_files(request: HttpRequest) -> bool:
    # Django reads files from this kind alone.
    return request.content_type == "multipart/form-data"
