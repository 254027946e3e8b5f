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
from operation.findings import Finding, Problem, declare_error, declare_warning, report_ok

# A worker finishes a slice, or finds nothing to do, far more often than once in this time.
STUCK_AFTER = timedelta(minutes=5)

NO_DATABASE = declare_error(
    "{database} does not answer or refuses the connection.",
    means="No page opens, and the API answers 503. Nothing is lost: the label screen keeps labels "
    "until they can be sent, and workers go on once the database is back.",
    remedy="Check that it is running, and check host, port, name, user and password in "
    "DATABASE_URL.",
)
NOT_MIGRATED = declare_error(
    "{number} migrations are not applied, starting with {first}.",
    means="The program is newer than the tables. Pages that need the new columns fail.",
    remedy="Run `python manage.py migrate`.",
)
NO_BROKER = declare_error(
    "Redis does not answer or refuses the connection.",
    means="Pages work. Calls to evaluators wait, since their limits are counted in Redis, and "
    "workers begin new work some seconds later.",
    remedy="Check that it is running, and check host, port, password and number in REDIS_URL.",
)
BROKER_REFUSES = declare_error(
    "Redis answers, but refuses to store anything.",
    means="Pages work, and count failed sign-ins in each process by itself. Calls to evaluators "
    "wait, since their limits are counted in Redis.",
    remedy="Free memory or disk space for Redis, or allow the user in REDIS_URL to write. It says: "
    "{reason}",
)
NO_WORKER = declare_error(
    "No worker is running.",
    means="People can label. Imports, exports, runs and figures wait, and go on by themselves once "
    "there is a worker.",
    remedy="Start one with `celery --app config worker`. Without REDIS_URL, the server runs the "
    "worker: `python manage.py serve`.",
)
WORKER_HANGS = declare_error(
    "{workers} alive, but without progress for {minutes} minutes: work hangs, or the worker cannot "
    "look for work.",
    means="The same as without a worker.",
    remedy="See the worker's log, then restart it; it resumes unfinished work.",
)
SLICES_FAIL = declare_warning(
    "{workers} alive; {number} slices failed, more than succeeded.",
    means="Runs get on slowly or not at all. The cause is most often an evaluator or a network "
    "that is away.",
    remedy="See the worker's log. Failed slices are tried again.",
)


def check_database() -> Finding:
    """Check that the database answers a query. The finding says how long the answer took."""
    begun = time.monotonic()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except OperationalError:
        return NO_DATABASE.found(database=connection.display_name)
    spent = (time.monotonic() - begun) * 1000
    return report_ok(f"{connection.display_name} answers in {spent:.0f} ms.")


def check_migrations() -> Finding:
    """Check that all migrations of this program are applied. Newer migrations are accepted: during
    a rolling update, old processes keep running."""
    applied = set(MigrationRecorder(connection).applied_migrations())
    if former := former_databases.find_missing(applied):
        return former_databases.explain_missing(former)
    missing = sorted(_known_migrations() - applied)
    if not missing:
        return report_ok("All migrations are applied.")
    return NOT_MIGRATED.found(number=len(missing), first=".".join(missing[0]))


@cache
def _known_migrations() -> frozenset[tuple[str, str]]:
    """Return the migrations of this program, whose files do not change while it runs. A squashed
    migration counts as the migrations that it replaces. Only files on disk count."""
    return frozenset(MigrationLoader(None).graph.nodes)


def check_broker() -> Finding:
    """Check that Redis answers and stores. If no Redis is configured, there is nothing to check."""
    if not settings.REDIS_URL:
        return report_ok("No broker is needed: the server process runs the worker.")
    try:
        with connect() as asked:
            asked.set(f"{settings.REDIS_PREFIX}:readiness", 1, ex=60)
    except redis.ResponseError as error:
        return BROKER_REFUSES.found(reason=error)
    except redis.RedisError:
        return NO_BROKER.found()
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
        return NO_WORKER.found()
    ago = min(now - (one.progressed_at or one.started_at) for one in alive)
    many = "1 worker is" if len(alive) == 1 else f"{len(alive)} workers are"
    if ago > STUCK_AFTER:
        return WORKER_HANGS.found(workers=many, minutes=f"{ago.total_seconds() / 60:.0f}")
    failed = sum(one.failures for one in alive)
    if failed > sum(one.slices for one in alive):
        return SLICES_FAIL.found(workers=many, number=failed)
    return report_ok(f"{many} alive; last progress {max(0.0, ago.total_seconds()):.0f} s ago.")


CHECKS: dict[str, Callable[[], Finding]] = {
    "database": check_database,
    "migrations": check_migrations,
    "broker": check_broker,
    "worker": check_workers,
}
# What each check can find.
PROBLEMS: dict[str, tuple[Problem, ...]] = {
    "database": (NO_DATABASE,),
    "migrations": (former_databases.LACKS_MIGRATIONS, NOT_MIGRATED),
    "broker": (NO_BROKER, BROKER_REFUSES),
    "worker": (NO_WORKER, WORKER_HANGS, SLICES_FAIL),
}
