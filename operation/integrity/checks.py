"""Checks of the stored data: what must hold in every installation, at any time, also while people
work.

A check reads the database and yields a breach for each row that breaks its rule. All checks of one
`run_checks` see the same moment. Rows are read as a stream, so memory does not grow with the data.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, connection, transaction

from annotation.db import snapshot_reads

# The columns that name a breach, and the values that contradict each other.
Breach = dict[str, Any]

# Rows of some kilobytes each that are fetched at once.
FETCH_SIZE = 200
# For each check, this many breaches are named; all are counted.
NAMED_BREACHES = 20
# The names of an item `i` and its project `p`, as columns of a statement.
ITEM_NAMES = "p.slug AS project, i.key AS item"
# Checks at a time on PostgreSQL: each is served by one process.
PROCESSES = 2
# Enough to group a million rows in memory.
WORK_MEM = "64MB"


@dataclass(frozen=True)
class Check:
    """A rule about the stored data. `meaning` says what a breach means and what to do about it."""

    name: str
    rule: str
    meaning: str
    find: Callable[[], Iterator[Breach]]


@dataclass(frozen=True)
class CheckResult:
    """The number of breaches of a check, and the first of them."""

    check: Check
    count: int
    breaches: tuple[Breach, ...]
    seconds: float


def run_checks(checks: Iterable[Check], *, named: int = NAMED_BREACHES) -> Iterator[CheckResult]:
    """Run the checks on one state of the database, and yield their results in order. Nothing is
    written or locked. PostgreSQL runs `PROCESSES` checks at a time."""
    shared = connection.vendor == "postgresql" and not connection.in_atomic_block
    with snapshot_reads.consistent_reads():
        if not shared:
            _prepare_large_reads()
            yield from (_run_check(check, named) for check in checks)
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_export_snapshot()")
            [snapshot] = cursor.fetchone()
        with ThreadPoolExecutor(PROCESSES) as pool:
            yield from pool.map(lambda check: _run_apart(check, named, snapshot), checks)


def _run_apart(check: Check, named: int, snapshot: str) -> CheckResult:
    """Run a check over a connection of its own, on the exported state."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SET TRANSACTION SNAPSHOT %s", [snapshot])
            _prepare_large_reads()
            return _run_check(check, named)
    finally:
        connection.close()


def _run_check(check: Check, named: int) -> CheckResult:
    begun = time.perf_counter()
    count, breaches = 0, []
    for breach in _find_breaches(check):
        count += 1
        if count <= named:
            breaches.append(breach)
    return CheckResult(check, count, tuple(breaches), time.perf_counter() - begun)


def _find_breaches(check: Check) -> Iterator[Breach]:
    """Yield the breaches of a check; it ends with the first value that it cannot read. If the error
    left the transaction, it would keep the stream of rows open, for whose end the rollback waits.
    """
    try:
        yield from check.find()
    except DatabaseError:
        raise
    except Exception as error:
        yield {"problem": f"a value cannot be read ({type(error).__name__}: {error})"}


def build_sql_check(name: str, rule: str, meaning: str, statement: str) -> Check:
    """Build a check from a statement that selects the rows that break the rule."""
    return Check(name, rule, meaning, lambda: stream_rows(statement))


def stream_rows(statement: str, parameters: Iterable[Any] = ()) -> Iterator[dict[str, Any]]:
    """Yield the rows of a statement as dicts by column name. Values have the database's form, so
    JSON should be selected as text. Until the last row, the connection takes no other statement."""
    if connection.vendor == "postgresql":
        yield from _copy_rows(statement, list(parameters))
        return
    with connection.cursor() as cursor:
        cursor.execute(statement, list(parameters))
        names = [column[0] for column in cursor.description]
        while rows := cursor.fetchmany(FETCH_SIZE):
            for row in rows:
                yield dict(zip(names, row, strict=True))


def _copy_rows(statement: str, parameters: list[Any]) -> Iterator[dict[str, Any]]:
    """By COPY, the server goes on while the client works, and may use several processes; a cursor
    has neither, and is planned for its first rows."""
    from psycopg import ClientCursor

    with connection.cursor() as cursor:
        here: Any = cursor.cursor
        text = ClientCursor(here.connection).mogrify(statement, parameters)
        here.execute(f"SELECT * FROM ({text}) AS checked LIMIT 0")
        columns = [(column.name, column.type_code) for column in here.description]
        names = [name for name, _ in columns]
        with here.copy(f"COPY ({text}) TO STDOUT (FORMAT BINARY)") as copying:
            copying.set_types([kind for _, kind in columns])
            for row in copying.rows():
                yield dict(zip(names, row, strict=True))


def select_text(column: str) -> str:
    """Return the SQL that selects a JSON column as text."""
    return f"{column}::text" if connection.vendor == "postgresql" else column


def _prepare_large_reads() -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # Compiling the statements would take longer than running most of them.
            cursor.execute("SET LOCAL jit TO off")
            cursor.execute(f"SET LOCAL work_mem TO '{WORK_MEM}'")
            # The planner underestimates the rows of grouped subqueries, and would then run one of
            # them again for each row of the other.
            cursor.execute("SET LOCAL enable_nestloop TO off")
