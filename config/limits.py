"""Rate limit of the API per person, shared by all processes."""

import time
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.cache import cache
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

if TYPE_CHECKING:  # it looks this module up while it is being read
    from rest_framework.views import APIView

WINDOW_SECONDS = 60


class PerMinute(BaseThrottle):
    """So many calls in each minute of the clock, of all tokens and sessions of an account.

    Counted in the default cache, which is Redis where there is one. A count that is lost lets
    calls through: a limit is to slow down a program that went wild, not to lock people out.
    """

    def allow_request(self, request: Request, view: "APIView") -> bool:
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
        return WINDOW_SECONDS - time.time() % WINDOW_SECONDS
