"""The time that leases go by.

Several workers have to agree on it, so where there is a database server it is the server's: a
worker whose own clock is wrong, or jumps, neither takes what another holds nor gives up its own.
Where one process does the asking its own clock serves, and `leasing` knows what it holds itself.
"""

from datetime import datetime

from django.db import connection
from django.utils import timezone


def now() -> datetime:
    """Aware, UTC; on PostgreSQL one round trip."""
    if connection.vendor != "postgresql":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        [moment] = cursor.fetchone()
    read: datetime = moment
    return read
