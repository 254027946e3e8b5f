"""Databases of one measurement, dropped or removed in the end, and Django on top of them."""

import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import django
import psycopg
from psycopg import sql

POSTGRESQL = "postgresql://127.0.0.1:5432/postgres"
KINDS = ("postgresql", "sqlite")


@contextmanager
def database(kind: str) -> Iterator[None]:
    """An empty database with its tables; the environment names it, also for servers started then.

    PostgreSQL is looked for at TEST_POSTGRES_URL, as the tests do. A process that is told to end
    leaves nothing behind.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with (
        tempfile.TemporaryDirectory(prefix="blindspot-bench-") as folder,
        _on_postgresql() if kind == "postgresql" else _on_sqlite(Path(folder)) as address,
    ):
        os.environ.update(
            DATABASE_URL=address,
            VAR_DIR=folder,
            SECRET_KEY=secrets.token_urlsafe(50),
            DJANGO_SETTINGS_MODULE="config.settings",
        )
        for name in ("SITE_URL", "ALLOWED_HOSTS", "DEBUG", "REDIS_URL"):
            os.environ.pop(name, None)
        django.setup()
        from django.core.management import call_command
        from django.db import connection

        call_command("migrate", interactive=False, verbosity=0)
        try:
            yield
        finally:
            connection.close()


def lacking_postgresql() -> str:
    """Why nothing can be measured on PostgreSQL; empty if it answers."""
    server = os.environ.get("TEST_POSTGRES_URL", POSTGRESQL)
    try:
        psycopg.connect(server, connect_timeout=2).close()
    except psycopg.OperationalError as error:
        return f"PostgreSQL is not measured: it does not answer at {server} ({error})."
    return ""


@contextmanager
def _on_sqlite(folder: Path) -> Iterator[str]:
    yield f"sqlite:///{folder / 'bench.sqlite3'}"


@contextmanager
def _on_postgresql() -> Iterator[str]:
    server = os.environ.get("TEST_POSTGRES_URL", POSTGRESQL)
    name = f"blindspot_bench_{os.getpid()}"
    with psycopg.connect(server, autocommit=True, connect_timeout=2) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield f"{server.rpartition('/')[0]}/{name}"
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
            connection.execute(drop.format(sql.Identifier(name)))
