"""Read what a request sends before anybody asks who sent it."""

from collections.abc import Callable
from contextlib import suppress

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError


def early_body_middleware(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[..., HttpResponse]:
    """Middleware that reads the body first, except that of an upload.

    A server such as gunicorn passes a request on while its body still comes, and whoever sends it
    decides how long that takes. A view that asks for the sender's rights and then reads the body
    would act by rights that the sender no longer has.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if not (request.content_type or "").startswith("multipart/"):
            try:
                # The view refuses what is too large, and reads none of it.
                with suppress(RequestDataTooBig):
                    _ = request.body
            except UnreadablePostError:  # the sender is gone
                return HttpResponse(status=400)
        return get_response(request)

    return middleware
