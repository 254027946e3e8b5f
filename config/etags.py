"""ETags of API responses; an unchanged response is not sent again."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response, patch_cache_control

from annotation.api.responses import make_etag

TAGGED_METHODS = {"GET", "HEAD", "PUT", "PATCH"}


def etag_middleware(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[..., HttpResponse]:
    """Middleware that adds an ETag to 200 responses of the API. A GET or HEAD request that sends
    the same ETag is answered with 304. Streamed responses get no ETag."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if not request.path.startswith("/api/") or request.method not in TAGGED_METHODS:
            return response
        if response.status_code != 200 or response.streaming:
            return response
        tag = response["ETag"] = response.get("ETag") or make_etag(response.content)
        patch_cache_control(response, private=True, no_cache=True)
        if request.method in {"PUT", "PATCH"}:
            return response
        return get_conditional_response(request, etag=tag, response=response) or response

    return middleware
