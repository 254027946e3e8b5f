"""Keep responses out of the caches of proxies, and out of those of browsers that stay open after
sign-out.

The label screen's own script keeps some pages for outages (docs/security.md, What a browser keeps).
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control


def no_store_middleware(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[..., HttpResponse]:
    """Middleware that forbids caching. It skips responses that set their own caching, as style
    sheets and scripts do."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if "Cache-Control" not in response:
            patch_cache_control(response, private=True, no_store=True)
        return response

    return middleware
