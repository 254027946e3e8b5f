"""When what was taken for some time is free again."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

# No lease is given for so long: one that lasts longer was given by a clock that was ahead, and
# whoever lives renews what is his by the clock as it is now.
TOO_LONG = timedelta(minutes=1)


def over(until: str, now: datetime) -> Q:
    """Whether a lease that ends at the time in this column has run out."""
    return Q(**{f"{until}__lte": now}) | Q(**{f"{until}__gt": now + TOO_LONG})
