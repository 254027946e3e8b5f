import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


SAID = "A snapshot that is made stays as it is."
MADE = """EXISTS (
    SELECT 1 FROM annotation_snapshot s WHERE s.id = {row}.snapshot_id AND s.made_at IS NOT NULL
)"""
# By table and what is done to a row of it: when that is refused.
REFUSED = {
    ("annotation_snapshot", "UPDATE"): "OLD.made_at IS NOT NULL",
    ("annotation_snapshot", "DELETE"): "OLD.made_at IS NOT NULL",
    ("annotation_frozen", "UPDATE"): "TRUE",
    ("annotation_frozen", "DELETE"): "TRUE",
    ("annotation_frozenin", "INSERT"): MADE.format(row="NEW"),
    ("annotation_frozenin", "UPDATE"): "TRUE",
    ("annotation_frozenin", "DELETE"): MADE.format(row="OLD"),
}


def keep(apps, schema_editor):
    """Let the database refuse to change what a snapshot holds.

    On SQLite a later migration that alters a column makes the table anew, without its triggers,
    and has to do this again.
    """
    on_postgresql = schema_editor.connection.vendor == "postgresql"
    for (table, what), when in REFUSED.items():
        name = f"{table}_kept_{what.lower()}"
        if on_postgresql:
            row = "OLD" if what == "DELETE" else "NEW"
            schema_editor.execute(
                f"""CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF {when} THEN RAISE EXCEPTION '{SAID}' USING ERRCODE = 'restrict_violation';
                END IF; RETURN {row}; END $$"""
            )
            schema_editor.execute(
                f"CREATE TRIGGER {name} BEFORE {what} ON {table}"
                f" FOR EACH ROW EXECUTE FUNCTION {name}()"
            )
        else:
            schema_editor.execute(
                f"CREATE TRIGGER {name} BEFORE {what} ON {table} WHEN {when}"
                f" BEGIN SELECT RAISE(ABORT, '{SAID}'); END"
            )


def let_go(apps, schema_editor):
    on_postgresql = schema_editor.connection.vendor == "postgresql"
    for table, what in REFUSED:
        name = f"{table}_kept_{what.lower()}"
        if on_postgresql:
            schema_editor.execute(f"DROP TRIGGER {name} ON {table}")
            schema_editor.execute(f"DROP FUNCTION {name}()")
        else:
            schema_editor.execute(f"DROP TRIGGER {name}")


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0005_audit_kept"),
    ]

    operations = [
        migrations.CreateModel(
            name="Frozen",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("value", models.CharField(blank=True, max_length=40)),
                ("facts", models.JSONField()),
                ("digest", models.CharField(max_length=64)),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="frozen",
                        to="annotation.item",
                    ),
                ),
                (
                    "revision",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="annotation.revision",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Snapshot",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("name", models.CharField(max_length=80)),
                ("note", models.TextField(blank=True)),
                ("digest", models.CharField(blank=True, max_length=64)),
                ("items", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("made_at", models.DateTimeField(blank=True, null=True)),
                (
                    "job",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="annotation.job",
                    ),
                ),
                (
                    "member",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="annotation.membership",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="snapshots",
                        to="annotation.project",
                    ),
                ),
            ],
            options={
                "ordering": ["project_id", "-number"],
            },
        ),
        migrations.CreateModel(
            name="FrozenIn",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "frozen",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="annotation.frozen",
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="annotation.item",
                    ),
                ),
                (
                    "snapshot",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="frozen",
                        to="annotation.snapshot",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="frozen",
            constraint=models.UniqueConstraint(fields=("item", "digest"), name="frozen_once"),
        ),
        migrations.AddConstraint(
            model_name="snapshot",
            constraint=models.UniqueConstraint(
                fields=("project", "number"), name="snapshot_number"
            ),
        ),
        migrations.AddConstraint(
            model_name="snapshot",
            constraint=models.UniqueConstraint(fields=("project", "name"), name="snapshot_name"),
        ),
        migrations.AddConstraint(
            model_name="frozenin",
            constraint=models.UniqueConstraint(
                fields=("snapshot", "item"), name="frozen_in_snapshot"
            ),
        ),
        migrations.RunPython(keep, let_go),
    ]
