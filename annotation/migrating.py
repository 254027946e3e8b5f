"""Operations of migrations for tables that are large and in use while they run."""

from typing import Any

from django.db import migrations


class AddIndexOnline(migrations.AddIndex):
    """`AddIndex` that lets people go on writing: PostgreSQL builds it concurrently.

    Its migration says `atomic = False`, holds nothing else, and can be run again after one that
    was broken off, of which PostgreSQL keeps an invalid index; that is dropped first.
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
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
        model = from_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        on_postgresql = schema_editor.connection.vendor == "postgresql"
        more = {"concurrently": True} if on_postgresql else {}
        schema_editor.remove_index(model, self.index, **more)


class DropKeyIndexOnline(migrations.AlterField):
    """Takes the index from a foreign key that another index serves as well: `field` says
    `db_index=False`. Where `AlterField` makes the foreign key anew, and SQLite the whole table,
    nothing else is touched.

    Its migration says `atomic = False` and holds nothing else, and can be run again.
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        online = "CONCURRENTLY " if schema_editor.connection.vendor == "postgresql" else ""
        for name in self._indexes(model, schema_editor):
            place = schema_editor.quote_name(name)
            schema_editor.execute(f"DROP INDEX {online}IF EXISTS {place}")

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        on_postgresql = schema_editor.connection.vendor == "postgresql"
        more = {"concurrently": True} if on_postgresql else {}
        fields = [model._meta.get_field(self.name)]
        schema_editor.execute(schema_editor._create_index_sql(model, fields=fields, **more))

    def _indexes(self, model: Any, schema_editor: Any) -> list[str]:
        """The names of what Django made for the key; those that the model names stay."""
        column = model._meta.get_field(self.name).column
        with schema_editor.connection.cursor() as cursor:
            found = schema_editor.connection.introspection.get_constraints(
                cursor, model._meta.db_table
            )
        named = {one.name for one in (*model._meta.indexes, *model._meta.constraints)}
        return [
            name
            for name, one in found.items()
            if one["index"]
            and not one["unique"]
            and one["columns"] == [column]
            and name not in named
        ]
