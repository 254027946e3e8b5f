"""Many rows of one shape in one statement, where building objects and SQL for each is the cost.

PostgreSQL reads them all out of one JSON text, or by COPY where none can be there already;
SQLite runs one prepared statement for each.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from math import isfinite
from typing import Any

import msgspec
from django.db import connection
from django.db.models import JSONField, Model
from psycopg.types.json import Jsonb

from annotation.db import sql

Columns = Mapping[str, str]
Named = Mapping[str, Any]

# The standard library's takes twelve times as long of long texts.
_FAST = msgspec.json.Encoder(enc_hook=str)
# The sequence is looked for once, not at each number.
NEXT_IDS_SQL = """
SELECT array_agg(nextval(sequence)) FROM generate_series(1, %s), (
    SELECT pg_get_serial_sequence(%s, 'id')::regclass AS sequence OFFSET 0
) AS of_table
"""


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
        _run(
            f"{into} SELECT {_select_list(columns)} FROM {_json_table(columns)} {end}",
            columns,
            rows,
        )
    else:
        _run(f"{into} VALUES ({', '.join(['%s'] * len(columns))}) {end}", columns, rows)


def reserve_ids(model: type[Model], count: int) -> Sequence[int]:
    """As many ids for new rows of a table, ascending; for `copy`, in the same transaction."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(NEXT_IDS_SQL, [count, table])
            return sorted(cursor.fetchone()[0] or [])
        cursor.execute("SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = %s", [table])
        last: int = cursor.fetchone()[0]
    return range(last + 1, last + 1 + count)


def copy(model: type[Model], rows: Sequence[Named]) -> None:
    """Store rows that are new, in a transaction; each names the same columns.

    What they do not name is as in a row of the model that is made now. A value is as the database
    takes it, JSON as its text or as the UTF-8 of that.
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
            use_lz4(cursor)
            types = [_type(field) for field in fields]
            jsons = [place for place, kind in enumerate(types) if kind == "jsonb"]
            with connection.wrap_database_errors, _start_copy(cursor, table, columns) as copying:
                copying.set_types(types)
                for row in values:
                    for place in jsons:
                        row[place] = _to_jsonb(row[place])
                    copying.write_row(row)
        else:
            places = ", ".join(map(_placeholder, fields))
            cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", values)


def update(table: str, columns: Columns, rows: Sequence[tuple[Any, ...]]) -> None:
    """Set columns of rows that are there; the last value of each is its `id`, which `columns`
    does not name."""
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
    """Let PostgreSQL count tables that have just grown by much.

    It does so by itself once a minute at best, and until then reads all of a table for a few rows.
    Not inside a transaction: the counts would stay if the rows did not, and plans be made by them.
    """
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {', '.join(map(_quoted, tables))}")


def commit_asynchronously() -> None:
    """Let PostgreSQL put this transaction on the disk when it comes to it, as SQLite does anyway.

    For rows that are made again if a crash takes them. The next transaction that does not say so
    puts this one there too.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit TO off")


def prefer_indexes() -> None:
    """Let PostgreSQL find rows of this transaction by their index, as what is in memory is found.

    It takes that for four times as slow as reading on, and for a few hundred keys reads ten
    thousand items, at every batch of an import.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL random_page_cost TO 1.1")


def use_lz4(cursor: Any) -> None:
    """Let PostgreSQL compress the texts of this transaction by lz4, where it was built with it.

    Of texts of some kilobytes its usual compression is half of what COPY costs.
    """
    if _has_lz4():
        cursor.execute("SET LOCAL default_toast_compression TO lz4")


class WriteAheadLog:
    """What SQLite has written to its log and not yet copied to its place.

    It does that by itself at every fourth megabyte, in whose transaction it happens to be. A long
    import takes half as long again by that, so this is done between its transactions, and of more
    at a time, which is still within some seconds: less than what a crash of the machine takes of
    a quiet day, in which four megabytes are hours.
    """

    BYTES = 32_000_000

    def __init__(self) -> None:
        self._is_kept = connection.vendor == "sqlite" and not connection.in_atomic_block
        self._size = 0

    def grown(self, size: int) -> None:
        """After a transaction that wrote so much."""
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
    # Asked once a process: making the list of all settings takes longer than copying many a row.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 'lz4' = ANY(enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
        )
        told = cursor.fetchone()
    return bool(told and told[0])


def _start_copy(cursor: Any, table: str, columns: str) -> Any:
    # As text, both sides would look at each byte of a text for what must be escaped.
    return cursor.copy(f"COPY {table} ({columns}) FROM STDIN (FORMAT BINARY)")


def _field(model: type[Model], column: str) -> Any:
    return next(field for field in model._meta.local_concrete_fields if field.column == column)


def _type(field: Any) -> str:
    """The type of a column without its length; of a key, which makes itself, that of its number."""
    kind: str = field.rel_db_type(connection) if field.primary_key else field.db_type(connection)
    return kind.partition("(")[0]


def _to_jsonb(json: Any) -> Jsonb:
    return json if isinstance(json, Jsonb) else Jsonb(json, lambda text: text)


def _placeholder(field: Any) -> str:
    # SQLite keeps bytes apart from text; of this it makes text without a look at them.
    return "CAST(%s AS text)" if isinstance(field, JSONField) else "%s"


def _default_columns(model: type[Model], named: Sequence[str]) -> dict[str, Any]:
    """The columns beside those that are named, as a new row has them."""
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
    # JSON has no other numbers, and would say null, which SQLite makes of some of them too.
    for place, (name, kind) in enumerate(columns.items()):
        if kind == "float8" and not all(row[place] is None or isfinite(row[place]) for row in rows):
            raise ValueError(f"{name}: a number that is not finite cannot be stored")


def _as_json(columns: Columns, rows: Sequence[tuple[Any, ...]]) -> str:
    named = [dict(zip(columns, row, strict=True)) for row in rows]
    return _FAST.encode(named).decode()


def _json_table(columns: Columns) -> str:
    # What JSON takes for an object would be one more JSON text inside.
    types = (f"{_quoted(n)} {'text' if t == 'jsonb' else t}" for n, t in columns.items())
    return f"json_to_recordset(%s::json) AS given({', '.join(types)})"


def _select_list(columns: Columns) -> str:
    return ", ".join(_column_expression(name, kind) for name, kind in columns.items())


def _column_expression(name: str, kind: str) -> str:
    return f"given.{_quoted(name)}{'::jsonb' if kind == 'jsonb' else ''}"


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)
