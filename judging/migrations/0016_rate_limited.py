"""The cause `rate-limited` is called `rate_limited`, in the manner of all others."""

from typing import Any

from django.db import migrations

BEFORE, NOW = "rate-limited", "rate_limited"
CAUSES = ("Request", "Reading", "Outcome")
# JSON that may name a cause, as a value or as a key.
JSON = (("Request", "tried"), ("Outcome", "values"), ("Tally", "counts"), ("StoredFigure", "rows"))


def rename(apps: Any, editor: Any) -> None:
    _replace(apps, editor, BEFORE, NOW)


def rename_back(apps: Any, editor: Any) -> None:
    _replace(apps, editor, NOW, BEFORE)


def _replace(apps: Any, editor: Any, old: str, new: str) -> None:
    for name in CAUSES:
        apps.get_model("judging", name).objects.filter(cause=old).update(cause=new)
    for name, column in JSON:
        table = apps.get_model("judging", name)._meta
        _replace_in_text(editor, table, column, f'"{old}"', f'"{new}"')
    views = apps.get_model("judging", "SavedView")._meta
    _replace_in_text(editor, views, "query", f"cause={old}", f"cause={new}")


def _replace_in_text(editor: Any, table: Any, column: str, old: str, new: str) -> None:
    """In one statement. JSON names a cause between quotes; in a longer string there is no quote
    before or behind it, or one with a backslash."""
    quoted = f'"{column}"'
    text, written = quoted, f"replace({quoted}, %s, %s)"
    is_jsonb = table.get_field(column).get_internal_type() == "JSONField"
    if is_jsonb and editor.connection.vendor == "postgresql":
        text, written = f"{quoted}::text", f"replace({quoted}::text, %s, %s)::jsonb"
    editor.execute(
        f"UPDATE {table.db_table} SET {quoted} = {written} WHERE {text} LIKE %s ESCAPE '!'",
        [old, new, f"%{old.replace('_', '!_')}%"],
    )


class Migration(migrations.Migration):
    dependencies = [("judging", "0015_older_runs_over_a_part")]

    operations = [migrations.RunPython(rename, rename_back)]
