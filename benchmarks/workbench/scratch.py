"""A temporary database for one measurement, dropped at the end, and Django set up to use it."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
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
def redis() -> Iterator[str]:
    """Start a private Redis on a free port, and set REDIS_URL in the environment to its address."""
    program = shutil.which("redis-server")
    if program is None:
        raise RuntimeError("redis-server is not here. Install it, or measure sqlite alone.")
    port = free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            os.environ["REDIS_URL"] = f"redis://127.0.0.1:{port}/0"
            yield os.environ["REDIS_URL"]
        finally:
            os.environ.pop("REDIS_URL", None)
            process.terminate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def database(kind: str, *, with_redis: bool = False) -> Iterator[None]:
    """Create a database with empty tables. The environment contains its address, also for servers
    started later.

    The Redis in the environment, such as one from `redis`, is used only if asked for. PostgreSQL is
    expected at TEST_POSTGRES_URL, as in the tests. A process that is terminated cleans up too.
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
            # A benchmark sends requests faster than people do, and must not be stopped by the rate
            # limit.
            API_PER_MINUTE="1000000000",
            DJANGO_SETTINGS_MODULE="config.settings",
        )
        for name in ("SITE_URL", "ALLOWED_HOSTS", "DEBUG"):
            os.environ.pop(name, None)
        if not with_redis:
            os.environ.pop("REDIS_URL", None)
        django.setup()
        from django.core.management import call_command
        from django.db import connection

        call_command("migrate", interactive=False, verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
        try:
            yield
        finally:
            connection.close()


def lacking_postgresql() -> str:
    """Return the reason why PostgreSQL cannot be measured; "" if it can be reached."""
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
