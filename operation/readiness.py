"""Readiness checks: database, tables, broker, workers."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache

import redis
from django.conf import settings
from django.db import OperationalError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from annotation.db import clock
from judging.models import Worker
from operation import former_databases
from operation.broker import connect
from operation.findings import Finding, report_error, report_ok, report_warning

# A worker finishes a slice, or finds nothing to do, far more often than once in this time.
STUCK_AFTER = timedelta(minutes=5)
START_HELP = (
    "Start one with `celery --app config worker`. Without REDIS_URL, the server runs the worker: "
    "`python manage.py serve`."
)


def check_database() -> Finding:
    """Check that the database answers a query. The finding says how long the answer took."""
    begun = time.monotonic()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except OperationalError:
        return report_error(
            f"{connection.display_name} does not answer or refuses the connection.",
            "Check that it is running, and check host, port, name, user and password in "
            "DATABASE_URL.",
        )
    spent = (time.monotonic() - begun) * 1000
    return report_ok(f"{connection.display_name} answers in {spent:.0f} ms.")


def check_migrations() -> Finding:
    """Check that all migrations of this program are applied. Newer migrations are accepted: during
    a rolling update, old processes keep running."""
    applied = set(MigrationRecorder(connection).applied_migrations())
    if former := former_databases.find_missing(applied):
        return report_error(former_databases.explain_missing(former), former_databases.REMEDY)
    missing = sorted(_known_migrations() - applied)
    if not missing:
        return report_ok("All migrations are applied.")
    first = ".".join(missing[0])
    return report_error(
        f"{len(missing)} migrations are not applied, starting with {first}.",
        "Run `python manage.py migrate`.",
    )


@cache
def _known_migrations() -> frozenset[tuple[str, str]]:
    """Return the migrations of this program, whose files do not change while it runs. A squashed
    migration counts as the migrations that it replaces. Only files on disk count."""
    return frozenset(MigrationLoader(None).graph.nodes)


def check_broker() -> Finding:
    """Check that Redis answers. If no Redis is configured, there is nothing to check."""
    if not settings.REDIS_URL:
        return report_ok("No broker is needed: the server process runs the worker.")
    try:
        with connect() as asked:
            asked.ping()
    except redis.RedisError:
        return report_error(
            "Redis does not answer or refuses the connection.",
            "Check that it is running, and check host, port, password and number in REDIS_URL.",
        )
    return report_ok("Redis answers.")


def check_workers() -> Finding:
    """Check that a worker has recently finished a slice or found nothing to do."""
    now = clock.now()
    return _judge_workers(list(Worker.objects.alive(now)), now)


def check_workers_on(host: str) -> Finding:
    """Check the workers of one machine or container in the same way as `check_workers`."""
    now = clock.now()
    return _judge_workers(list(Worker.objects.alive(now).filter(host=host)), now)


def _judge_workers(alive: list[Worker], now: datetime) -> Finding:
    if not alive:
        return report_error("No worker is running.", START_HELP)
    ago = min(now - (one.progressed_at or one.started_at) for one in alive)
    many = "1 worker is alive" if len(alive) == 1 else f"{len(alive)} workers are alive"
    if ago > STUCK_AFTER:
        return report_error(
            f"{many}, but without progress for {_minutes(ago)}: work hangs, or the worker cannot "
            "look for work.",
            "See the worker's log, then restart it; it resumes unfinished work.",
        )
    failed = sum(one.failures for one in alive)
    if failed > sum(one.slices for one in alive):
        says = f"{many}; {failed} slices failed, more than succeeded."
        return report_warning(says, "See the worker's log. Failed slices are tried again.")
    return report_ok(f"{many}; last progress {max(0.0, ago.total_seconds()):.0f} s ago.")


def _minutes(ago: timedelta) -> str:
    return f"{ago.total_seconds() / 60:.0f} minutes"


CHECKS: dict[str, Callable[[], Finding]] = {
    "database": check_database,
    "migrations": check_migrations,
    "broker": check_broker,
    "worker": check_workers,
}
