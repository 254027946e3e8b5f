"""Checks of what the database itself protects."""

from collections.abc import Iterator

from django.apps import apps
from django.db import connection
from django.db.models import ForeignKey

from annotation.items import search_index
from judging.results import change_counters
from operation.integrity.checks import Breach, Check, stream_rows

# What the database itself refuses, by table: changes of the audit log and of complete snapshots.
_REFUSED_CHANGES = {
    "annotation_event": ("UPDATE", "DELETE"),
    "annotation_snapshot": ("UPDATE", "DELETE"),
    "annotation_frozen": ("UPDATE", "DELETE"),
    "annotation_frozenin": ("INSERT", "UPDATE", "DELETE"),
}


def find_missing_triggers() -> Iterator[Breach]:
    """Yield the triggers that are not in the database or are disabled."""
    on_postgresql = connection.vendor == "postgresql"
    found = (
        "SELECT t.tgname AS name FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
        " WHERE t.tgenabled <> 'D' AND pg_table_is_visible(c.oid)"
        if on_postgresql
        else "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    )
    installed = {row["name"] for row in stream_rows(found)}
    required = {
        # On PostgreSQL, one trigger refuses both changes of an event.
        "annotation_event_kept"
        if table == "annotation_event" and on_postgresql
        else f"{table}_kept_{change.lower()}": table
        for table, changes in _REFUSED_CHANGES.items()
        for change in changes
    }
    required |= change_counters.TRIGGERS.list_triggers() | search_index.TRIGGERS.list_triggers()
    for name, table in sorted(required.items()):
        if name not in installed:
            yield {"table": table, "trigger": name}


def find_broken_references() -> Iterator[Breach]:
    """Yield the rows of a SQLite database that refer to rows that do not exist; on PostgreSQL,
    which checks each reference itself, the references that it does not check."""
    if connection.vendor == "sqlite":
        for row in stream_rows("PRAGMA foreign_key_check"):
            yield {"table": row["table"], "row": row["rowid"], "refers_to": row["parent"]}
        return
    checked = {
        (row["name"], row["columns"])
        for row in stream_rows(
            "SELECT c.conrelid::regclass::text AS name, a.attname::text AS columns"
            " FROM pg_constraint c JOIN pg_attribute a"
            " ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]"
            " WHERE c.contype = 'f' AND c.convalidated"
        )
    }
    for model in apps.get_models():
        for field in model._meta.local_concrete_fields:
            named = (model._meta.db_table, field.column)
            is_checked = named in checked or not getattr(field, "db_constraint", False)
            if isinstance(field, ForeignKey) and not is_checked:
                yield {"table": named[0], "column": named[1], "problem": "is not checked"}


CHECKS = (
    Check(
        "triggers",
        "The database refuses changes of the audit log and of snapshots, counts the changes that "
        "make figures outdated, and marks changed items for the search.",
        "The audit log could have been changed, figures can be outdated, or a search can miss "
        "items. Run `migrate`; if the trigger is still missing, restore a backup.",
        find_missing_triggers,
    ),
    Check(
        "references",
        "Every row refers to rows that exist, or PostgreSQL checks it.",
        "The database is damaged or was changed by hand. Restore a backup.",
        find_broken_references,
    ),
)
