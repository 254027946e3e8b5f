"""Statements run as text, and what goes into them and comes out of them."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from annotation.db import prepared_statements


def fetch_rows(statement: str, words: Any) -> list[tuple[Any, ...]]:
    with prepared_statements.prepared_cursor() as cursor:
        cursor.execute(statement, words)
        return cursor.fetchall()


def execute_change(statement: str, words: Any) -> int:
    """How many rows the statement changed."""
    with prepared_statements.prepared_cursor() as cursor:
        cursor.execute(statement, words)
        return cursor.rowcount


def to_database_time(time: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(time)


def parse_time(value: Any) -> datetime | None:
    """A time as the database gives it to a statement of which it knows no model."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.replace(tzinfo=UTC) if value and value.tzinfo is None else value


def quote_names(stages: Iterable[str]) -> str:
    return ", ".join(f"'{stage}'" for stage in stages)


def lock_clause(*, passing: bool) -> str:
    """Lock the slots that are found, passing over those that somebody else has locked or not."""
    if not connection.features.has_select_for_update:
        return ""
    return "FOR NO KEY UPDATE OF s" + (" SKIP LOCKED" if passing else "")
