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
