"""Counts rows by one or several keys, and defines expressions to count by."""

from typing import Any

from django.db import models
from django.db.models import Count, Func


def count_by(rows: models.QuerySet[Any], field: str) -> dict[Any, int]:
    """Count rows by the value of a field, in one query; values without rows are left out."""
    return dict(rows.order_by().values_list(field).annotate(Count("pk")))


class Day(Func):
    """The day of a time in UTC, such as 2026-01-31."""

    output_field = models.CharField()
    template = "TO_CHAR(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD')"

    def as_sqlite(self, compiler: Any, connection: Any, **values: Any) -> Any:
        # Django's function would call Python for each row. Times are stored in UTC as text that
        # begins with the day.
        return self.as_sql(compiler, connection, template="SUBSTR(%(expressions)s, 1, 10)")


class Tenths(Func):
    """Seconds as a whole number of tenths, so that times can be counted. Programs send times of any
    length; one of over three years counts as so much, since an integer holds no more."""

    output_field = models.IntegerField()
    template = (
        "CASE WHEN %(expressions)s > 100000000 THEN 1000000000"
        " ELSE CAST(ROUND(CAST(%(expressions)s AS numeric) * 10) AS integer) END"
    )


def count_by_keys(rows: models.QuerySet[Any], **keys: Any) -> list[dict[str, Any]]:
    """Count rows by several keys, which are expressions. Each result is a dict of the keys and the
    count `n`."""
    return list(rows.order_by().values(**keys).annotate(n=Count("pk")))
