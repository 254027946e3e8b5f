"""Dump the database to one file and restore it, with the tools of each database.

For SQLite, a copy is written while other processes may write to the database. For PostgreSQL, its
own programs dump a consistent snapshot. Both include everything: tables, indexes, triggers, and the
list of applied migrations.
"""

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

from django.db import connection, transaction

# Drop everything, so that no tables of another version remain next to the restored tables.
RESET_SCHEMA_SQL = b"DROP SCHEMA public CASCADE; CREATE SCHEMA public;\n"


class BackupError(Exception):
    """A database cannot be dumped or restored. The message says why and what to do."""


class _GaveUp(Exception):
    """A program stopped reading. The error output of the program says why."""


def dump_database(to: Path, emptied: Collection[str] = ()) -> dict[str, int]:
    """Write a consistent snapshot of the database; tables in `emptied` get no rows. Return the
    number of rows written for each table."""
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        # A page-by-page copy would still contain the bytes of deleted rows. A copy by VACUUM does
        # not.
        connection.connection.execute("VACUUM INTO ?", [str(to)])
        with closing(sqlite3.connect(to)) as copy:
            copy.execute("PRAGMA journal_mode=DELETE")
            copy.execute("PRAGMA secure_delete=ON")
            for table in set(list_tables()).intersection(emptied):
                copy.execute(f'DELETE FROM "{table}"')
            copy.commit()
            return {table: _count(copy, table) for table in list_tables()}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        [snapshot] = cursor.fetchone()
        options = ["--format=custom", "--no-owner", "--no-privileges", "--schema=public"]
        options += [f"--exclude-table-data=public.{table}" for table in emptied]
        _run("pg_dump", *options, f"--snapshot={snapshot}", f"--file={to}")
        return {table: 0 if table in emptied else _count(cursor, table) for table in list_tables()}


DIFFERS = "The tables of this backup are not those that it lists. Restore another backup."
# Run in the transaction of the restore, which fails by it.
_CHECK_ROWS_SQL = """
DO $differs$ BEGIN IF '{}'::jsonb <> (
  SELECT coalesce(jsonb_object_agg(tablename, (xpath('/row/n/text()', query_to_xml(
    format('SELECT count(*) AS n FROM public.%I', tablename), false, true, '')))[1]::text::bigint),
    '{{}}')
  FROM pg_tables WHERE schemaname = 'public') THEN RAISE EXCEPTION '{}'; END IF; END $differs$;
"""


def load_dump(source: Path, tables: Mapping[str, int]) -> None:
    """Replace the whole database with a dump, which must have these tables with so many rows each,
    or change nothing."""
    if connection.vendor == "sqlite":
        with closing(sqlite3.connect(source)) as copy:
            if not _check_integrity(copy):
                raise BackupError("The database in this backup is damaged.")
            found = copy.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'sqlite_sequence'"
            )
            if {table: _count(copy, table) for (table,) in found.fetchall()} != tables:
                raise BackupError(DIFFERS)
            connection.ensure_connection()
            copy.backup(connection.connection)
        return
    connection.close()
    # Not psql's `--single-transaction`: at the end of its input it would commit, also if that ends
    # because this process was killed.
    with _start_program("psql", "--quiet", "--set=ON_ERROR_STOP=1") as told:
        _write(told, b"BEGIN;\n" + RESET_SCHEMA_SQL)
        options = ["--no-owner", "--no-privileges", "--schema=public", "--file=-", str(source)]
        with _start_program("pg_restore", *options, reading=True) as script:
            for part in iter(lambda: script.read(1 << 20), b""):
                _write(told, part)
        said = json.dumps(dict(tables)).replace("'", "''")
        _write(told, _CHECK_ROWS_SQL.format(said, DIFFERS).encode() + b"COMMIT;\n")


def _check_integrity(copy: sqlite3.Connection) -> bool:
    try:
        found: tuple[str] = copy.execute("PRAGMA quick_check").fetchone()
    except sqlite3.DatabaseError:
        return False
    return found == ("ok",)


def list_tables() -> list[str]:
    """Return the sorted names of the tables in the database; views are left out."""
    with connection.cursor() as cursor:
        return sorted(connection.introspection.table_names(cursor))


def count_other_connections() -> int:
    """Return the number of other connections to the database; 0 for SQLite, which does not know
    it."""
    if connection.vendor != "postgresql":
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        [others] = cursor.fetchone()
    return int(others)


def _count(cursor: Any, table: str) -> int:
    found = cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")
    [count] = (found or cursor).fetchone()
    return int(count)


def _run(program: str, *options: str) -> None:
    with _start_program(program, *options):
        pass


@contextmanager
def _start_program(program: str, *options: str, reading: bool = False) -> Iterator[IO[bytes]]:
    """Run a PostgreSQL program on this database. Yields its stdin, or its stdout if `reading`.

    Raises BackupError with the program's error message if it fails. Passwords are passed in the
    environment of the program, which other users of the machine cannot see.
    """
    path = shutil.which(program)
    if path is None:
        raise BackupError(
            f"{program} is not installed. Install PostgreSQL's client programs in the server's "
            "version or newer (`apt install postgresql-client`)."
        )
    process = subprocess.Popen(
        [path, *options],
        stdin=None if reading else subprocess.PIPE,
        stdout=subprocess.PIPE if reading else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | _connection_variables(),
    )
    pipe = process.stdout if reading else process.stdin
    assert pipe
    assert process.stderr
    try:
        yield pipe
    except BaseException as error:
        process.kill()
        if reading or not isinstance(error, _GaveUp):
            raise
    finally:
        with closing(process.stderr):
            _close(pipe)
            said = process.stderr.read().decode(errors="replace").strip()
            process.wait()
    if process.returncode:
        raise BackupError(f"{program} failed: {_last_line(said)}")


def _write(pipe: IO[bytes], part: bytes) -> None:
    try:
        pipe.write(part)
    except BrokenPipeError:
        raise _GaveUp from None


def _close(pipe: IO[bytes]) -> None:
    try:
        pipe.close()
    except BrokenPipeError:
        return


def _last_line(said: str) -> str:
    lines = [line for line in said.splitlines() if "ERROR" in line or "error" in line]
    return (lines or said.splitlines() or ["it printed nothing."])[0][:500]


def _connection_variables() -> dict[str, str]:
    given = connection.settings_dict
    named = {
        "PGHOST": given["HOST"],
        "PGPORT": given["PORT"],
        "PGUSER": given["USER"],
        "PGPASSWORD": given["PASSWORD"],
        "PGDATABASE": given["NAME"],
        "PGSSLMODE": given["OPTIONS"].get("sslmode", ""),
        "PGSSLROOTCERT": given["OPTIONS"].get("sslrootcert", ""),
    }
    return {name: str(value) for name, value in named.items() if value}
