"""Writes many similar rows in one statement, for cases in which objects and SQL for each row would
be too slow.

PostgreSQL reads all rows from one JSON text, or uses COPY if none of the rows can exist already;
SQLite runs one prepared statement for each row.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from math import isfinite
from typing import Any

import msgspec
from django.db import connection
from django.db.models import JSONField, Model

from annotation.db import sql

Columns = Mapping[str, str]
Named = Mapping[str, Any]

# For long texts, the standard library's encoder takes twelve times as long.
_FAST = msgspec.json.Encoder(enc_hook=str)
# This looks up the sequence once instead of once for each number.
NEXT_IDS_SQL = """
SELECT array_agg(nextval(sequence)) FROM generate_series(1, %s), (
    SELECT pg_get_serial_sequence(%s, 'id')::regclass AS sequence OFFSET 0
) AS of_table
"""


def insert(table: str, columns: Columns, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows whose values are in the order of `columns`, which maps names to types. A row that
    conflicts with an existing row is skipped.

    Values have the database's form: JSON as text, times from `adapt_datetimefield_value`.
    """
    _run(_insert_sql(connection.vendor, table, tuple(columns.items())), columns, rows)


@cache
def _insert_sql(vendor: str, table: str, typed: tuple[tuple[str, str], ...]) -> str:
    columns = dict(typed)
    into = f"INSERT INTO {_quoted(table)} ({', '.join(map(_quoted, columns))})"
    if vendor == "postgresql":
        values = f"SELECT {_select_list(columns)} FROM {_json_table(columns)}"
    else:
        values = f"VALUES ({', '.join(['%s'] * len(columns))})"
    return f"{into} {values} ON CONFLICT DO NOTHING"


def insert_missing(model: type[Model], rows: Sequence[Named]) -> None:
    """Insert new rows of a model, without those that conflict with an existing row; all rows have
    the same columns.

    All other columns get the defaults of the model. Values have the database's form, as in
    `insert`.
    """
    if not rows:
        return
    names = tuple(rows[0])
    rest = _default_columns(model, names)
    into = (
        f"INSERT INTO {_quoted(model._meta.db_table)} ({', '.join(map(_quoted, [*names, *rest]))})"
    )
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            given = {name: _type(_field(model, name)) for name in names}
            values = [_select_list(given), *(f"%s::{_type(_field(model, name))}" for name in rest)]
            cursor.execute(
                f"{into} SELECT {', '.join(values)} FROM {_json_table(given)}"
                " ON CONFLICT DO NOTHING",
                [*rest.values(), _FAST.encode(rows).decode()],
            )
        else:
            places = ", ".join(["%s"] * (len(names) + len(rest)))
            cursor.executemany(
                f"{into} VALUES ({places}) ON CONFLICT DO NOTHING",
                [[*map(row.__getitem__, names), *rest.values()] for row in rows],
            )


def reserve_ids(model: type[Model], count: int) -> Sequence[int]:
    """Reserve `count` ascending ids for new rows of a table; call `copy` in the same
    transaction."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(NEXT_IDS_SQL, [count, table])
            return sorted(cursor.fetchone()[0] or [])
        cursor.execute("SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = %s", [table])
        last: int = cursor.fetchone()[0]
    return range(last + 1, last + 1 + count)


def copy(model: type[Model], rows: Sequence[Named]) -> None:
    """Insert new rows inside a transaction; all rows have the same columns. For long texts, call
    `compress_fast` or `set_up_import` first.

    All other columns get the defaults of the model. Values have the database's form; JSON is given
    as text or as UTF-8 bytes.
    """
    if not rows:
        return
    names = tuple(rows[0])
    rest = _default_columns(model, names)
    values = [[*map(row.__getitem__, names), *rest.values()] for row in rows]
    fields = [_field(model, name) for name in (*names, *rest)]
    columns = ", ".join(_quoted(field.column) for field in fields)
    table = _quoted(model._meta.db_table)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # SQLite needs no client of PostgreSQL, a tenth of the start of a command.
            from psycopg.types.json import Jsonb

            types = [_type(field) for field in fields]
            jsons = [place for place, kind in enumerate(types) if kind == "jsonb"]
            with connection.wrap_database_errors, _start_copy(cursor, table, columns) as copying:
                copying.set_types(types)
                for row in values:
                    for place in jsons:
                        json = row[place]
                        row[place] = json if isinstance(json, Jsonb) else Jsonb(json, _as_it_is)
                    copying.write_row(row)
        else:
            places = ", ".join(map(_placeholder, fields))
            cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", values)


def update(table: str, columns: Columns, rows: Sequence[tuple[Any, ...]]) -> None:
    """Update columns of existing rows; the last value of each row is its `id`, which is not in
    `columns`."""
    place, names = _quoted(table), [_quoted(name) for name in columns]
    if connection.vendor == "postgresql":
        given = {**columns, "id": "bigint"}
        sets = ", ".join(
            f"{_quoted(name)} = {_column_expression(name, columns[name])}" for name in columns
        )
        _run(
            f"UPDATE {place} SET {sets} FROM {_json_table(given)} WHERE {place}.id = given.id",
            given,
            rows,
        )
    else:
        sets = ", ".join(f"{name} = %s" for name in names)
        _run(f"UPDATE {place} SET {sets} WHERE id = %s", columns, rows)


def analyze_tables(*tables: str) -> None:
    """Let PostgreSQL update the statistics of tables that have just grown a lot.

    PostgreSQL does so by itself at most once a minute; until then it may read a whole table to find
    a few rows. Does nothing inside a transaction: after a rollback, the new statistics would remain
    and lead to wrong plans.
    """
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {', '.join(map(_quoted, tables))}")


def set_up_import() -> None:
    """Let PostgreSQL import fast in this transaction.

    It writes the transaction to disk later, as SQLite does anyway: use this for rows that will be
    created again if a crash loses them. The next ordinary transaction also writes them to disk.

    It prefers indexes, as if all data were in memory. By default it assumes that a random read
    costs four times as much as a sequential read, and would read ten thousand items in every batch
    to find a few hundred keys.
    """
    _set_in_transaction(synchronous_commit="off", random_page_cost="1.1", **_fast_compression())


def compress_fast() -> None:
    """Let PostgreSQL compress the texts of this transaction with lz4, if it supports lz4.

    For texts of some kilobytes, the default compression takes half the time of COPY.
    """
    _set_in_transaction(**_fast_compression())


def _fast_compression() -> dict[str, str]:
    if connection.vendor != "postgresql" or not _has_lz4():
        return {}
    return {"default_toast_compression": "lz4"}


def _set_in_transaction(**settings: str) -> None:
    if connection.vendor == "postgresql" and settings:
        asked = ", ".join(["set_config(%s, %s, true)"] * len(settings))
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {asked}", [word for pair in settings.items() for word in pair])


class WriteAheadLog:
    """Checkpoints SQLite's write-ahead log between the transactions of a long import.

    By itself SQLite copies the log into the database after every four megabytes, inside whatever
    transaction is running, which makes a long import 50 % slower. So this class copies the log
    between transactions, after every `BYTES`. An import writes this amount in some seconds, so a
    crash of the machine loses less work than on a quiet day, when four megabytes are hours of work.
    """

    BYTES = 32_000_000

    def __init__(self) -> None:
        self._is_kept = connection.vendor == "sqlite" and not connection.in_atomic_block
        self._size = 0

    def grown(self, size: int) -> None:
        """Call this after each transaction, with the number of bytes written."""
        self._size += size
        if self._size >= self.BYTES:
            self._copy()

    def __enter__(self) -> "WriteAheadLog":
        self._run("PRAGMA wal_autocheckpoint = 0")
        return self

    def __exit__(self, *_: object) -> None:
        self._copy()
        self._run("PRAGMA wal_autocheckpoint = 1000")

    def _copy(self) -> None:
        self._run("PRAGMA wal_checkpoint(PASSIVE)")
        self._size = 0

    def _run(self, statement: str) -> None:
        if self._is_kept:
            with connection.cursor() as cursor:
                cursor.execute(statement)


@cache
def _has_lz4() -> bool:
    # Asked once per process: listing all settings takes longer than copying many rows.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 'lz4' = ANY(enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
        )
        told = cursor.fetchone()
    return bool(told and told[0])


def _start_copy(cursor: Any, table: str, columns: str) -> Any:
    # In the text format, client and server would check each byte of a text for escapes.
    return cursor.copy(f"COPY {table} ({columns}) FROM STDIN (FORMAT BINARY)")


def _field(model: type[Model], column: str) -> Any:
    return next(field for field in model._meta.local_concrete_fields if field.column == column)


def _type(field: Any) -> str:
    """Return the type of a column without its length; for a primary key, the type of a foreign key
    to it."""
    kind: str = field.rel_db_type(connection) if field.primary_key else field.db_type(connection)
    return kind.partition("(")[0]


def _as_it_is(json: Any) -> Any:
    return json


def _placeholder(field: Any) -> str:
    # SQLite distinguishes bytes from text; the cast makes text without checking the bytes.
    return "CAST(%s AS text)" if isinstance(field, JSONField) else "%s"


def _default_columns(model: type[Model], named: Sequence[str]) -> dict[str, Any]:
    """Return all columns that are not in `named`, with the values of a new row of the model."""
    made = model()
    fields = [field for field in model._meta.local_concrete_fields if not field.primary_key]
    return {
        str(field.column): field.get_db_prep_save(field.pre_save(made, add=True), connection)
        for field in fields
        if field.column not in named
    }


def _run(statement: str, columns: Columns, rows: Sequence[tuple[Any, ...]]) -> None:
    if not rows:
        return
    _check_finite(columns, rows)
    with sql.prepared_cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(statement, [_as_json(columns, rows)])
        else:
            cursor.executemany(statement, rows)


def _check_finite(columns: Columns, rows: Sequence[tuple[Any, ...]]) -> None:
    # JSON would write infinite numbers and NaN as null, and SQLite stores some of them as NULL.
    for place, (name, kind) in enumerate(columns.items()):
        if kind == "float8" and not all(row[place] is None or isfinite(row[place]) for row in rows):
            raise ValueError(f"{name}: a number that is not finite cannot be stored")


def _as_json(columns: Columns, rows: Sequence[tuple[Any, ...]]) -> str:
    named = [dict(zip(columns, row, strict=True)) for row in rows]
    return _FAST.encode(named).decode()


def _json_table(columns: Columns) -> str:
    # A JSON value arrives as a string inside the JSON text, so it is read as text here.
    types = (f"{_quoted(n)} {'text' if t == 'jsonb' else t}" for n, t in columns.items())
    return f"json_to_recordset(%s::json) AS given({', '.join(types)})"


def _select_list(columns: Columns) -> str:
    return ", ".join(_column_expression(name, kind) for name, kind in columns.items())


def _column_expression(name: str, kind: str) -> str:
    return f"given.{_quoted(name)}{'::jsonb' if kind == 'jsonb' else ''}"


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)
