"""Rate limit of the API per person, shared by all processes."""

import time
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.cache import cache
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

if TYPE_CHECKING:  # rest_framework.views imports this module
    from rest_framework.views import APIView

WINDOW_SECONDS = 60


class PerMinute(BaseThrottle):
    """Limits the calls per clock minute over all tokens and sessions of an account.

    Counts are in the default cache, which is Redis if configured. If a count is lost, calls pass:
    the limit is meant to slow down runaway programs, not to lock people out.
    """

    def allow_request(self, request: Request, view: "APIView") -> bool:
        """Whether the call is allowed; this also counts the call. Signed-out calls always pass."""
        most: int = settings.API_PER_MINUTE
        account = request.user.pk if request.user else None
        if account is None:
            return True
        key = f"calls:{account}:{int(time.time()) // WINDOW_SECONDS}"
        if cache.add(key, 1, 2 * WINDOW_SECONDS):
            return True
        try:
            return cache.incr(key) <= most
        except ValueError:
            return True

    def wait(self) -> float:
        """Seconds until the current clock minute ends, for the header `Retry-After`."""
        return WINDOW_SECONDS - time.time() % WINDOW_SECONDS
