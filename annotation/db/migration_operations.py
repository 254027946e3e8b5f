"""Migration operations for large tables that are in use during the migration."""

from collections.abc import Iterator
from typing import Any

from django.db import migrations, models, transaction
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class AddIndexOnline(migrations.AddIndex):
    """`AddIndex` that does not block writes: PostgreSQL builds the index concurrently.

    Its migration sets `atomic = False` and has no other operations. The operation can be run again
    after an interruption: it first drops the invalid index that PostgreSQL kept.
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Create the index; on PostgreSQL without blocking writes, after dropping the index of an
        interrupted attempt."""
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        if schema_editor.connection.vendor != "postgresql":
            schema_editor.add_index(model, self.index)
            return
        name = schema_editor.quote_name(self.index.name)
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        schema_editor.add_index(model, self.index, concurrently=True)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Drop the index; on PostgreSQL without blocking writes."""
        model = from_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        on_postgresql = schema_editor.connection.vendor == "postgresql"
        more = {"concurrently": True} if on_postgresql else {}
        schema_editor.remove_index(model, self.index, **more)


class WidenUniqueOnline(migrations.AddConstraint):
    """Replaces a unique constraint by `constraint`, which has more columns and a name of its own,
    without blocking writes: PostgreSQL builds the index concurrently.

    Its migration sets `atomic = False` and has no other operations. The operation can be run again
    after an interruption.
    """

    def __init__(
        self,
        model_name: str,
        constraint: models.UniqueConstraint,
        replaces: models.UniqueConstraint,
    ) -> None:
        super().__init__(model_name, constraint)
        self.widened, self.replaces = constraint, replaces

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        name, args, more = super().deconstruct()
        return name, [*args], {**more, "replaces": self.replaces}

    def describe(self) -> str:
        return f"Replace constraint {self.replaces.name} by {self.widened.name}"

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Replace the constraint in the state of the migration."""
        state.remove_constraint(app_label, self.model_name_lower, self.replaces.name)
        super().state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Replace the constraint; on PostgreSQL without blocking writes, after dropping the index
        of an interrupted attempt."""
        model = to_state.apps.get_model(app_label, self.model_name)
        self._replace(schema_editor, model, self.replaces, self.widened)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Restore the former constraint. Fails if rows differ only in the columns that it lacks."""
        model = from_state.apps.get_model(app_label, self.model_name)
        self._replace(schema_editor, model, self.widened, self.replaces)

    def _replace(
        self,
        schema_editor: Any,
        model: Any,
        old: models.UniqueConstraint,
        new: models.UniqueConstraint,
    ) -> None:
        connection = schema_editor.connection
        if not self.allow_migrate_model(connection.alias, model):
            return
        if connection.vendor != "postgresql":
            with transaction.atomic(using=connection.alias):
                schema_editor.remove_constraint(model, old)
                schema_editor.add_constraint(model, new)
            return
        quoted = schema_editor.quote_name
        table, added, dropped = quoted(model._meta.db_table), quoted(new.name), quoted(old.name)
        columns = ", ".join(quoted(model._meta.get_field(one).column) for one in new.fields)
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {added}")
        schema_editor.execute(f"CREATE UNIQUE INDEX CONCURRENTLY {added} ON {table} ({columns})")
        schema_editor.execute(
            f"ALTER TABLE {table} ADD CONSTRAINT {added} UNIQUE USING INDEX {added},"
            f" DROP CONSTRAINT {dropped}"
        )


class DropKeyIndexesOnline(Operation):
    """Drops indexes of foreign keys that other indexes replace. The keys are given as (model,
    field), and the fields have `db_index=False`.

    `AlterField` would recreate each foreign key (on SQLite the whole table). In a new database,
    this takes half a second per key. The migration sets `atomic = False`, has no other operations
    and can be run again.
    """

    def __init__(self, keys: list[tuple[str, str]]) -> None:
        self.keys = keys

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return type(self).__name__, [], {"keys": self.keys}

    def describe(self) -> str:
        named = ", ".join(f"{model}.{name}" for model, name in self.keys)
        return f"Drop the indexes of the keys {named}"

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Set `db_index` of the fields to False in the state of the migration."""
        for model, name in self.keys:
            fields = state.models[app_label, model].fields
            fields[name] = fields[name].clone()
            fields[name].db_index = False
        state.reload_models([(app_label, model) for model, _ in self.keys], delay=True)

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Drop every index of the columns; on PostgreSQL without blocking writes. It can be
        repeated."""
        online = "CONCURRENTLY " if schema_editor.connection.vendor == "postgresql" else ""
        for model, field in self._columns(app_label, schema_editor, to_state):
            for name in _key_indexes(schema_editor, model, field.column):
                place = schema_editor.quote_name(name)
                schema_editor.execute(f"DROP INDEX {online}IF EXISTS {place}")

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Create an index for each column that has none; on PostgreSQL without blocking writes."""
        on_postgresql = schema_editor.connection.vendor == "postgresql"
        more = {"concurrently": True} if on_postgresql else {}
        for model, field in self._columns(app_label, schema_editor, to_state):
            if not _key_indexes(schema_editor, model, field.column):
                statement = schema_editor._create_index_sql(model, fields=[field], **more)
                schema_editor.execute(statement)

    def _columns(self, app_label: str, schema_editor: Any, state: Any) -> Iterator[tuple[Any, Any]]:
        for name, field in self.keys:
            model = state.apps.get_model(app_label, name)
            if self.allow_migrate_model(schema_editor.connection.alias, model):
                yield model, model._meta.get_field(field)


def _key_indexes(schema_editor: Any, model: Any, column: str) -> list[str]:
    """Return the names of the indexes that Django created for a foreign key, but not of indexes
    that the model declares."""
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, model._meta.db_table)
    named = {one.name for one in (*model._meta.indexes, *model._meta.constraints)}
    return [
        name
        for name, one in found.items()
        if one["index"] and not one["unique"] and one["columns"] == [column] and name not in named
    ]
