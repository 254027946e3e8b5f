"""The clock for leases.

Several workers must agree on the time, so with a database server they use the server's clock. Then
a worker with a wrong or jumping clock neither takes another worker's lease nor loses its own lease.
With SQLite, there is only one clock.
"""

from datetime import datetime

from django.db import connection
from django.utils import timezone


def now() -> datetime:
    """The current time, aware, in UTC; on PostgreSQL it takes one round trip."""
    if connection.vendor != "postgresql":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        [moment] = cursor.fetchone()
    read: datetime = moment
    return read
