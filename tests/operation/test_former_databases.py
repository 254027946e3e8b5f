"""Databases from before version 0.2.0 go on if they have all migrations of that time."""

from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from annotation.models import Item
from operation import former_databases, readiness
from operation.findings import Grade
from tests.builders import make_item, make_project

pytestmark = pytest.mark.django_db(transaction=True)
REPLACED = former_databases.list_replaced()


@pytest.fixture
def recorder() -> Iterator[MigrationRecorder]:
    """The list of applied migrations, which is that of a database from before. No test may leave it
    so, and nothing else empties its table."""
    found = MigrationRecorder(connection)
    before = dict(found.applied_migrations())
    for initial, replaced in REPLACED.items():
        found.record_unapplied(*initial)
        for one in set(replaced) - before.keys():
            found.record_applied(*one)
    yield found
    after = dict(found.applied_migrations())
    for one in after.keys() - before.keys():
        found.record_unapplied(*one)
    for one in before.keys() - after.keys():
        found.record_applied(*one)


def migrate() -> str:
    said = StringIO()
    call_command("migrate", stdout=said)
    return said.getvalue()


def test_a_database_with_all_migrations_of_before_goes_on_and_loses_nothing(
    recorder: MigrationRecorder,
) -> None:
    item = make_item(make_project())
    assert "No migrations to apply." in migrate()
    assert {*REPLACED} <= {*recorder.applied_migrations()}
    assert Item.objects.get() == item
    assert readiness.check_migrations().grade == Grade.FINE
    assert "No migrations to apply." in migrate()


@pytest.mark.parametrize("initial", REPLACED, ids=lambda one: one[0])
def test_a_database_that_lacks_one_is_refused_with_the_remedy(
    recorder: MigrationRecorder, initial: tuple[str, str]
) -> None:
    *_, last = REPLACED[initial]
    recorder.record_unapplied(*last)
    before = set(recorder.applied_migrations())
    with pytest.raises(CommandError, match=r"lacks 1 .* Check out the last commit before version"):
        migrate()
    assert set(recorder.applied_migrations()) == before
    found = readiness.check_migrations()
    assert found.grade == Grade.WRONG
    assert ".".join(last) in found.says
    assert found.remedy == former_databases.LACKS_MIGRATIONS.remedy


def test_a_new_database_lacks_nothing() -> None:
    assert former_databases.load_missing() == former_databases.find_missing([]) == []
