"""Give each request an id, a log line and a count."""

import logging
import re
import secrets
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from operation import logs, metrics

log = logging.getLogger("request")
ID_HEADER = "X-Request-ID"
# The form of an id that is accepted from a proxy. Anything else could be text, or a forged log
# line.
ID_PATTERN = re.compile(r"[A-Za-z0-9-]{8,64}")
# Parts of a URL that say where the user is, but not what the user reads.
LOGGED_PARTS = ("slug", "number")


def request_middleware(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[..., HttpResponse]:
    """Outermost middleware, so that refused requests are logged too. The request id is taken from
    the proxy if it sends one, and is returned in a response header."""

    def middleware(request: HttpRequest) -> HttpResponse:
        begun = time.perf_counter()
        given = request.headers.get(ID_HEADER, "")
        name = given if ID_PATTERN.fullmatch(given) else secrets.token_hex(8)
        with logs.log_context(request_id=name):
            response = get_response(request)
            response[ID_HEADER] = name
            seconds = time.perf_counter() - begun
            route, match = logs.request_route(request), request.resolver_match
            metrics.count_request(request.method or "", route, response.status_code, seconds)
            facts = {"status": response.status_code, "seconds": round(seconds, 4)}
            if match:
                facts |= {part: match.kwargs[part] for part in LOGGED_PARTS if part in match.kwargs}
            if account := getattr(getattr(request, "_cached_user", None), "pk", None):
                facts["account"] = account
            log.info("%s %s", request.method, route, extra={"facts": facts})
        return response

    return middleware
