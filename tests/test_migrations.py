"""Migrations of large tables let people go on: old processes work beside new tables, and no
statement holds a lock for as long as it takes to go through a table (docs/operation.md).
"""

import importlib
from collections.abc import Iterator

import pytest
from django.db import connection, migrations, models
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.migration import Migration
from django.db.migrations.operations.base import Operation

from annotation.db.migration_operations import (
    AddIndexOnline,
    DropKeyIndexesOnline,
    WidenUniqueOnline,
)

OURS = {"annotation", "judging"}
# Tables that grow with items, labels or calls: millions of rows in a year.
LARGE = {
    *("item", "revision", "diff", "slot", "label", "resolution", "event", "comment", "mark"),
    *("call", "outcome", "request", "reply", "reading"),
}
# They make the tables of 0.2.0, the first version.
BEFORE = {("annotation", "0001_initial_0_2_0"), ("judging", "0001_initial_0_2_0")}
ONLINE = (AddIndexOnline, DropKeyIndexesOnline, WidenUniqueOnline)
HELD = {
    migrations.AddIndex: "holds up writers while it builds; use AddIndexOnline",
    migrations.AddConstraint: "goes through the table under a lock; add it NOT VALID by RunSQL and"
    " validate it in the next migration",
    migrations.AlterField: "may write the table anew; add a column, fill it by a command, then"
    " read it",
    migrations.RemoveField: "ends old processes that still name it; take it out of the model by"
    " SeparateDatabaseAndState, and drop it in the next version",
    migrations.RenameField: "ends old processes; add a column instead",
    migrations.RenameModel: "ends old processes; set db_table instead",
    migrations.DeleteModel: "ends old processes; drop it in the next version",
    migrations.AlterUniqueTogether: "goes through the table under a lock",
}


def problems(migration: Migration) -> Iterator[str]:
    """What in a migration would hold people up, with what to do instead."""
    online = [one for one in migration.operations if isinstance(one, ONLINE)]
    touched = [one for one in migration.operations if _table(one) in LARGE]
    if online and (migration.atomic or len(online) < len(migration.operations)):
        yield "what is done online wants a migration of its own with atomic = False"
    if touched and any(isinstance(one, migrations.RunPython) for one in migration.operations):
        yield "RunPython keeps the locks of other operations; give it a migration of its own"
    for one in touched:
        if type(one) in HELD:
            yield f"{type(one).__name__} on {_table(one)} {HELD[type(one)]}"
        if isinstance(one, migrations.AddField) and not _old_processes_can_insert(one.field):
            yield f"AddField {one.name} on {_table(one)} wants null=True or db_default"


def _table(operation: Operation) -> str:
    name = getattr(operation, "model_name", "") or getattr(operation, "name", "")
    return str(name).lower() if not isinstance(operation, migrations.CreateModel) else ""


def _old_processes_can_insert(field: models.Field) -> bool:
    return field.null or field.has_db_default() or field.many_to_many


def ours() -> list[tuple[str, str]]:
    return sorted(key for key in MigrationLoader(None).graph.nodes if key[0] in OURS)


@pytest.mark.parametrize("key", ours(), ids=".".join)
def test_a_migration_lets_people_go_on(key: tuple[str, str]) -> None:
    app, name = key
    if key in BEFORE:
        return
    made = importlib.import_module(f"{app}.migrations.{name}").Migration(name, app)
    assert list(problems(made)) == []


def made(*operations: Operation, atomic: bool = True) -> Migration:
    kind = type("Migration", (Migration,), {"operations": list(operations), "atomic": atomic})
    return kind("0099_new", "judging")


INDEX = models.Index(fields=["cause"], name="cause_of_call")


@pytest.mark.parametrize(
    "operation",
    [
        migrations.AddIndex("call", INDEX),
        migrations.AddConstraint("Label", models.UniqueConstraint(fields=["item"], name="one")),
        migrations.AddField("item", "note", models.TextField()),
        migrations.AddField("item", "note", models.TextField(default="")),
        migrations.AlterField("reply", "text", models.CharField(max_length=9)),
        migrations.RemoveField("reply", "text"),
        migrations.RenameField("slot", "number", "place"),
        migrations.RenameModel("Outcome", "Result"),
        migrations.DeleteModel("Outcome"),
    ],
)
def test_what_would_hold_people_up_is_told(operation: Operation) -> None:
    assert len(list(problems(made(operation)))) == 1


@pytest.mark.parametrize(
    "operation",
    [
        migrations.AddField("item", "note", models.TextField(null=True)),
        migrations.AddField("item", "note", models.TextField(db_default="")),
        migrations.AddIndex("savedview", INDEX),
        migrations.CreateModel("Call", [("id", models.BigAutoField(primary_key=True))]),
    ],
)
def test_what_holds_nobody_up_is_let_through(operation: Operation) -> None:
    assert list(problems(made(operation))) == []


@pytest.mark.parametrize(
    "online",
    [
        AddIndexOnline("call", INDEX),
        DropKeyIndexesOnline([("call", "run")]),
    ],
)
def test_what_is_done_online_is_a_migration_of_its_own(online: Operation) -> None:
    assert list(problems(made(online, atomic=False))) == []
    assert list(problems(made(online))) != []
    field = migrations.AddField("call", "note", models.TextField(null=True))
    assert list(problems(made(online, field, atomic=False))) != []


@pytest.mark.django_db(transaction=True)
def test_an_index_that_was_broken_off_is_built_anew_and_can_be_dropped() -> None:
    state = MigrationExecutor(connection).loader.project_state()
    operation = AddIndexOnline("savedview", models.Index(fields=["name"], name="view_by_name"))
    after = state.clone()
    operation.state_forwards("judging", after)
    for _ in range(2 if connection.vendor == "postgresql" else 1):
        with connection.schema_editor(atomic=False) as editor:
            operation.database_forwards("judging", editor, state, after)
    assert "view_by_name" in indexes()
    with connection.schema_editor(atomic=False) as editor:
        operation.database_backwards("judging", editor, after, state)
    assert "view_by_name" not in indexes()


@pytest.mark.django_db(transaction=True)
def test_the_index_of_a_key_is_dropped_and_made_again_and_nothing_else_is() -> None:
    state = MigrationExecutor(connection).loader.project_state()
    operation = DropKeyIndexesOnline([("savedview", "member")])
    after, before = state.clone(), indexes()
    operation.state_forwards("judging", after)
    for _ in range(2):
        with connection.schema_editor(atomic=False) as editor:
            operation.database_forwards("judging", editor, state, after)
    (dropped,) = before - indexes()
    assert "member_id" in dropped
    assert indexes() < before
    with connection.schema_editor(atomic=False) as editor:
        operation.database_backwards("judging", editor, after, state)
    assert indexes() == before


def indexes() -> set[str]:
    with connection.cursor() as cursor:
        return set(connection.introspection.get_constraints(cursor, "judging_savedview"))
