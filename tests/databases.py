"""Databases of tests: migrated once, kept as a template, and copied for whoever needs one.

The template is named for everything that it is made of, so a changed migration makes another. A
SQLite template is a file in pytest's cache folder, a PostgreSQL one a database on its server.
"""

import fcntl
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".pytest_cache" / "d" / "databases"
# Our migrations and what is put there after them; those of other packages change with the lock.
MADE_OF = (
    "*/migrations/*.py",
    "annotation/db/migration_operations.py",
    "judging/results/change_counters.py",
    "requirements/runtime.txt",
    "tests/databases.py",
)
# What migrations write, and no test may be without.
KEPT_TABLES = {"django_migrations", "django_content_type", "auth_permission"}


@cache
def digest() -> str:
    """A few characters that change with anything that the tables are made of."""
    made_of = sorted({path for pattern in MADE_OF for path in ROOT.glob(pattern)})
    told = hashlib.sha256()
    for path in made_of:
        told.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return told.hexdigest()[:12]


def migrate(url: str) -> None:
    """Make all tables of an empty database, by the command that people use."""
    given = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
    with TemporaryDirectory(prefix="blindspot-") as folder:
        given |= {"DATABASE_URL": url, "VAR_DIR": folder, "SECRET_KEY": "k" * 50}
        command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(command, cwd=ROOT, env=given, check=True)


@contextmanager
def alone() -> Iterator[None]:
    """One process at a time, of all that begin at once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def sqlite_template() -> Path:
    template = CACHE / f"{digest()}.sqlite3"
    with alone():
        if not template.exists():
            part = template.with_suffix(".part")
            part.unlink(missing_ok=True)
            migrate(f"sqlite:///{part}")
            # Without a log beside it, so that one file is all.
            with closing(sqlite3.connect(part)) as made:
                made.execute("PRAGMA journal_mode=DELETE")
            for old in CACHE.glob("*.sqlite3"):
                old.unlink()
            part.rename(template)
    return template


def make_sqlite(path: Path) -> None:
    """A migrated database in a new file."""
    shutil.copyfile(sqlite_template(), path)


def postgresql_template(server: str) -> str:
    """The name of the template on this server, which is made if it is not there."""
    # Checkouts that share a server keep their templates apart.
    ours = f"blindspot_template_{hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]}_"
    name, part = ours + digest(), ours + "part"
    with psycopg.connect(server, autocommit=True) as connection:
        # Held until this connection ends; whoever comes second finds the template made.
        connection.execute("SELECT pg_advisory_lock(hashtext(%s))", [ours])
        there = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
        found = {row[0] for row in connection.execute(there, [ours]).fetchall()}
        if name not in found:
            for old in found:
                drop_postgresql(server, old)
            _run(connection, "CREATE DATABASE {}", part)
            migrate(named(server, part))
            _leave_unmeasured(named(server, part))
            _run(connection, "ALTER DATABASE {} RENAME TO {}", part, name)
    return name


def _leave_unmeasured(url: str) -> None:
    """Let no autovacuum come between: tables that it finds empty, since a test has not committed or
    has undone its rows, are then read as a whole for each foreign key that is checked."""
    with psycopg.connect(url, autocommit=True) as connection:
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        for (table,) in connection.execute(tables).fetchall():
            _run(connection, "ALTER TABLE {} SET (autovacuum_enabled = off)", table)


def make_postgresql(server: str, name: str, template: str = "template1") -> str:
    """The URL of a new database on this server: a copy of another one, or empty."""
    with psycopg.connect(server, autocommit=True) as connection:
        # One copy of a template at a time: PostgreSQL refuses it to others meanwhile.
        connection.execute("SELECT pg_advisory_lock(hashtext(%s))", [template])
        # A run that was killed may have left one of this name.
        _run(connection, "DROP DATABASE IF EXISTS {} WITH (FORCE)", name)
        _run(connection, "CREATE DATABASE {} TEMPLATE {}", name, template)
    return named(server, name)


def drop_postgresql(server: str, name: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        _run(connection, "DROP DATABASE IF EXISTS {} WITH (FORCE)", name)


def named(server: str, name: str) -> str:
    """The URL of the database of this name on the same server."""
    return urlsplit(server)._replace(path=f"/{name}").geturl()


def _run(connection: psycopg.Connection[Any], statement: str, *names: str) -> None:
    connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def use(connection: Any, name: str) -> None:
    """Let Django's connection be one to this database."""
    connection.close()
    connection.settings_dict["NAME"] = name


def emptier(connection: Any) -> Callable[[], None]:
    """What brings Django's database back to the template's rows after a test that committed some.

    Django's own flush would send `post_migrate`, which takes ten times as long.
    """
    if connection.vendor == "postgresql":
        return lambda: _delete_rows(connection)
    template = sqlite_template()

    def copy() -> None:
        # All pages of the template over those that are there, in one step for every connection.
        connection.ensure_connection()
        with closing(sqlite3.connect(template)) as source:
            source.backup(connection.connection)

    return copy


def _delete_rows(connection: Any) -> None:
    """Rows go from the tables that have any: to truncate all would make each file anew."""
    with connection.cursor() as cursor:
        tables = sorted({*connection.introspection.table_names(cursor)} - KEPT_TABLES)
        asked = (f"SELECT '{name}' WHERE EXISTS (SELECT FROM \"{name}\")" for name in tables)
        cursor.execute(" UNION ALL ".join(asked))
        full = [f'"{name}"' for (name,) in cursor.fetchall()]
        if not full:
            return
        # Triggers of ours refuse to let the audit go, and count what is deleted.
        steps = [f"ALTER TABLE {name} DISABLE TRIGGER USER" for name in full]
        steps += [f"DELETE FROM {name}" for name in full]
        steps += ["SET CONSTRAINTS ALL IMMEDIATE"]
        steps += [f"ALTER TABLE {name} ENABLE TRIGGER USER" for name in full]
        # With the one row that migrations leave (judging/results/change_counters.py).
        steps += ["INSERT INTO judging_touch (subject, n) VALUES ('all', 1)"]
        cursor.execute("BEGIN; " + "; ".join(steps) + "; COMMIT")
