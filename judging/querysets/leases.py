"""When what was taken for some time is free again, and who lives that may take it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import Q

# No lease is given for so long: one that lasts longer was given by a clock that was ahead, and
# whoever lives renews what is his by the clock as it is now.
MAX_LEASE = timedelta(minutes=1)


def lease_expired(until: str, now: datetime) -> Q:
    """Whether a lease that ends at the time in this column has run out."""
    return Q(**{f"{until}__lte": now}) | Q(**{f"{until}__gt": now + MAX_LEASE})


class WorkerQuerySet(models.QuerySet[Any]):
    def alive(self, now: datetime) -> WorkerQuerySet:
        """Those that said lately that they live."""
        return self.filter(alive_until__gt=now)
