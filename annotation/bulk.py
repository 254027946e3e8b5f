"""Many rows of one shape in one statement, where building objects and SQL for each is the cost.

PostgreSQL reads them all out of one JSON text, SQLite runs one prepared statement for each.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

from annotation import prepared

Columns = Mapping[str, str]


def insert(table: str, columns: Columns, rows: Sequence[tuple[Any, ...]]) -> None:
    """Store rows, in the order of `columns`, which says the type of each; one that is there
    already stays.

    A value is as the database takes it: JSON as its text, a time as `adapt_datetimefield_value`
    gives it.
    """
    names = ", ".join(map(_quoted, columns))
    into = f"INSERT INTO {_quoted(table)} ({names})"
    end = "ON CONFLICT DO NOTHING"
    if connection.vendor == "postgresql":
        _run(f"{into} SELECT {_read(columns)} FROM {_given(columns)} {end}", columns, rows)
    else:
        _run(f"{into} VALUES ({', '.join(['%s'] * len(columns))}) {end}", columns, rows)


def update(table: str, columns: Columns, rows: Sequence[tuple[Any, ...]]) -> None:
    """Set columns of rows that are there; the last value of each is its `id`, which `columns`
    does not name."""
    place, names = _quoted(table), [_quoted(name) for name in columns]
    if connection.vendor == "postgresql":
        given = {**columns, "id": "bigint"}
        sets = ", ".join(f"{_quoted(name)} = {_value(name, columns[name])}" for name in columns)
        _run(
            f"UPDATE {place} SET {sets} FROM {_given(given)} WHERE {place}.id = given.id",
            given,
            rows,
        )
    else:
        sets = ", ".join(f"{name} = %s" for name in names)
        _run(f"UPDATE {place} SET {sets} WHERE id = %s", columns, rows)


def counted(*tables: str) -> None:
    """Let PostgreSQL count tables that have just grown by much.

    It does so by itself once a minute at best, and until then reads all of a table for a few rows.
    Not inside a transaction: the counts would stay if the rows did not, and plans be made by them.
    """
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {', '.join(map(_quoted, tables))}")


def _run(statement: str, columns: Columns, rows: Sequence[tuple[Any, ...]]) -> None:
    if not rows:
        return
    with prepared.planned() as cursor:
        if connection.vendor == "postgresql":
            named = [dict(zip(columns, row, strict=True)) for row in rows]
            cursor.execute(statement, [json.dumps(named, ensure_ascii=False, default=str)])
        else:
            cursor.executemany(statement, rows)


def _given(columns: Columns) -> str:
    # What JSON takes for an object would be one more JSON text inside.
    types = (f"{_quoted(n)} {'text' if t == 'jsonb' else t}" for n, t in columns.items())
    return f"json_to_recordset(%s::json) AS given({', '.join(types)})"


def _read(columns: Columns) -> str:
    return ", ".join(_value(name, kind) for name, kind in columns.items())


def _value(name: str, kind: str) -> str:
    return f"given.{_quoted(name)}{'::jsonb' if kind == 'jsonb' else ''}"


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)
