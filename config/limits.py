"""The rate limit of the API for each person, shared by all processes."""

import time
from typing import TYPE_CHECKING

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from annotation.db.cache import count_in_window

if TYPE_CHECKING:  # rest_framework.views imports this module
    from rest_framework.views import APIView

WINDOW_SECONDS = 60


class PerMinute(BaseThrottle):
    """Limits the calls per clock minute, over all tokens and sessions of an account.

    The counts are in the default cache, which is Redis if configured. If a count is lost, calls are
    allowed: the limit should slow down runaway programs, not lock people out.
    """

    def allow_request(self, request: Request, view: "APIView") -> bool:
        """True if the call is allowed. The call is also counted. Signed-out calls are always
        allowed."""
        most: int = settings.API_PER_MINUTE
        account = request.user.pk if request.user else None
        if account is None:
            return True
        return count_in_window(f"calls:{account}", WINDOW_SECONDS) <= most

    def wait(self) -> float:
        """Return the seconds until the current clock minute ends, for the header `Retry-After`."""
        return WINDOW_SECONDS - time.time() % WINDOW_SECONDS
