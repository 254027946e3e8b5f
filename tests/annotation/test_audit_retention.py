"""The audit is only ever added to: the database itself refuses anything else."""

import pytest
from django.db import IntegrityError, connection, transaction

from annotation.models import Event
from tests.builders import make_account, make_project

pytestmark = pytest.mark.django_db
CHANGES = (
    "UPDATE annotation_event SET kind = 'nothing'",
    "UPDATE annotation_event SET data = '{}' WHERE kind = 'settings'",
    "DELETE FROM annotation_event",
)


@pytest.mark.parametrize("statement", CHANGES)
def test_the_database_refuses_to_change_what_is_on_record(statement: str) -> None:
    Event.record("settings", "a", project_id=make_project().pk, member_id=None, old={}, new={})
    with (
        pytest.raises(IntegrityError, match="only ever added"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
    assert Event.objects.get(kind="settings").data == {"old": {}, "new": {}}


def test_an_event_of_the_site_keeps_the_account_that_it_names() -> None:
    account = make_account("ada")
    Event.of_site("token", "bs_12345", account.pk, new={"token": "made"})
    with pytest.raises(IntegrityError):
        account.delete()
    assert Event.objects.get(kind="token").account == account


def test_kinds_are_found_by_project_and_of_the_site() -> None:
    here, there = make_project(), make_project()
    for kind in ("run started", "label", "label", "settings"):
        Event.record(kind, "a", project_id=here.pk, member_id=None)
    Event.of_site("endpoint", "one", None)
    assert Event.objects.kinds(here) == ["label", "run started", "settings"]
    assert Event.objects.kinds(there) == []
    assert Event.objects.kinds(None) == ["endpoint"]
