"""What a long import writes goes to its place in large parts, and outside of transactions."""

from typing import Any

import pytest
from django.db import connection

from annotation import importing, tasktypes
from annotation.db import bulk
from annotation.importing import items
from formats.rows import Row
from tests.builders import TEXTS, make_project

TASK = tasktypes.parse_definition(tasktypes.load_definitions()["perturbation-vetting"])
GOOD = {"category": "entity", **TEXTS}


@pytest.mark.django_db(transaction=True)
def test_sqlite_copies_its_log_between_transactions_and_as_usual_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(items, "BATCH", 2)
    monkeypatch.setattr(bulk.WriteAheadLog, "BYTES", 1)
    project, did = make_project("p"), []

    def watched(execute: Any, statement: str, *rest: Any) -> Any:
        if statement.startswith("PRAGMA wal"):
            did.append((statement[:21], connection.in_atomic_block))
        return execute(statement, *rest)

    with connection.execute_wrapper(watched):
        drafts = importing.parse_items(
            [Row("f", n, GOOD | {"key": f"k{n}"}) for n in range(4)], TASK
        )
        importing.store_items(project, drafts)
    if connection.vendor == "postgresql":
        assert did == []
        return
    assert [name for name, _ in did].count("PRAGMA wal_checkpoint") == 3
    assert {inside for _, inside in did} == {False}
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_autocheckpoint")
        assert cursor.fetchone() == (1000,)
