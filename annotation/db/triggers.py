"""Sets of triggers that are installed after each migration.

Migrations run without them, since SQLite recreates tables during migrations, which drops or breaks
triggers. The name of each trigger contains a digest of its code, so that a new version of the code
replaces the installed one.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection


@dataclass(frozen=True)
class Trigger:
    """A trigger after a write. `event` is INSERT, UPDATE or DELETE, or UPDATE OF with columns;
    `does` is what follows the table in CREATE TRIGGER."""

    table: str
    event: str
    does: str


@dataclass(frozen=True)
class TriggerSet:
    """Triggers whose names begin with `prefix`, for the current database.

    `functions` are the statements that create what the triggers need, if it is not there. `needs`
    are the tables that must exist. `installed` is called after the triggers were installed anew.
    """

    prefix: str
    triggers: Callable[[], Iterable[Trigger]]
    functions: Callable[[], Iterable[str]]
    needs: frozenset[str]
    installed: Callable[[], None]

    def install_after_migration(self, **kwargs: Any) -> None:
        """Install the triggers, unless a table is still missing; a receiver of `post_migrate`."""
        if self.needs <= set(connection.introspection.table_names()):
            self.install()

    def drop_before_migration(self, plan: Any, **kwargs: Any) -> None:
        """Drop the triggers if a migration will follow; a receiver of `pre_migrate`."""
        if plan:
            self.drop()

    def install(self) -> None:
        """Install the current triggers. Triggers that are already installed stay unchanged."""
        wanted = dict(self._statements())
        if set(wanted) == set(self._load_installed()):
            return
        self.drop()
        with connection.cursor() as cursor:
            for statement in (*self.functions(), *wanted.values()):
                cursor.execute(statement)
        self.installed()

    def list_triggers(self) -> dict[str, str]:
        """The names of the triggers that must be installed, each with its table."""
        return {name: trigger.table for name, trigger in self._named()}

    def drop(self) -> None:
        """Drop all triggers, so that tables can be recreated."""
        with connection.cursor() as cursor:
            for name, table in self._load_installed().items():
                of = f" ON {table}" if connection.vendor == "postgresql" else ""
                cursor.execute(f"DROP TRIGGER IF EXISTS {name}{of}")

    def _load_installed(self) -> dict[str, str]:
        """Load the installed triggers, each with its table."""
        found = """
            SELECT t.tgname, c.relname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
            WHERE starts_with(t.tgname, %s) AND pg_table_is_visible(c.oid)
        """
        words = [self.prefix]
        if connection.vendor == "sqlite":
            found = (
                "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'"
                " AND SUBSTR(name, 1, LENGTH(%s)) = %s"
            )
            words = [self.prefix, self.prefix]
        with connection.cursor() as cursor:
            cursor.execute(found, words)
            return dict(cursor.fetchall())

    def _named(self) -> Iterator[tuple[str, Trigger]]:
        called = "".join(self.functions())
        for trigger in self.triggers():
            written = hashlib.sha256((trigger.does + called).encode()).hexdigest()[:8]
            event = trigger.event.split()[0].lower()
            yield f"{self.prefix}{trigger.table}_{event}_{written}", trigger

    def _statements(self) -> Iterator[tuple[str, str]]:
        for name, one in self._named():
            yield name, f"CREATE TRIGGER {name} AFTER {one.event} ON {one.table} {one.does}"
