"""Databases from before version 0.2.0, whose migrations are one for each app now.

A database that has all migrations of that time has the tables of 0.2.0. One that lacks some cannot
be brought there by this program, which no longer has them.
"""

from collections.abc import Collection
from functools import cache

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from operation.findings import Finding, declare_error

LACKS_MIGRATIONS = declare_error(
    "This database is from before version 0.2.0 and lacks {number} of the migrations of that time, "
    "from {first} on.",
    means="This version cannot bring these tables up to date. They stay as they are.",
    remedy="Check out the last commit before version 0.2.0, as docs/operation.md says, run `python "
    "manage.py migrate` there, then come back to this version.",
)


def find_missing(applied: Collection[tuple[str, str]]) -> list[str]:
    """Return the migrations of before 0.2.0 that a database with these migrations lacks, the first
    one first. Empty if it has all of them, or was made by 0.2.0 or later."""
    have = set(applied)
    return [
        ".".join(one)
        for initial, replaced in list_replaced().items()
        if initial not in have and have.intersection(replaced)
        for one in replaced
        if one not in have
    ]


def load_missing() -> list[str]:
    """Return what `find_missing` finds for the current database."""
    return find_missing(MigrationRecorder(connection).applied_migrations())


def explain_missing(missing: list[str]) -> Finding:
    """Say what such a database lacks, and what to do."""
    return LACKS_MIGRATIONS.found(number=len(missing), first=missing[0])


@cache
def list_replaced() -> dict[tuple[str, str], list[tuple[str, str]]]:
    """The first migration of each app, with the migrations that it replaces, in their order."""
    found = MigrationLoader(None).replacements
    return {key: list(migration.replaces) for key, migration in found.items()}
