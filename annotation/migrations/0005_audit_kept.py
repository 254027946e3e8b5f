import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

SAID = "Events are only ever added: the audit cannot be changed."
ON_POSTGRESQL = (
    f"""CREATE FUNCTION annotation_event_kept() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION '{SAID}' USING ERRCODE = 'restrict_violation'; END $$""",
    """CREATE TRIGGER annotation_event_kept BEFORE UPDATE OR DELETE ON annotation_event
    FOR EACH ROW EXECUTE FUNCTION annotation_event_kept()""",
)
ON_SQLITE = tuple(
    f"""CREATE TRIGGER annotation_event_kept_{what.lower()} BEFORE {what} ON annotation_event
    BEGIN SELECT RAISE(ABORT, '{SAID}'); END"""
    for what in ("UPDATE", "DELETE")
)
OFF_POSTGRESQL = (
    "DROP TRIGGER annotation_event_kept ON annotation_event",
    "DROP FUNCTION annotation_event_kept()",
)
OFF_SQLITE = (
    "DROP TRIGGER annotation_event_kept_update",
    "DROP TRIGGER annotation_event_kept_delete",
)


def keep(apps, schema_editor):
    """Let the database refuse to change or take away what is on record.

    On SQLite a later migration that alters a column makes the table anew, without its triggers,
    and has to do this again.
    """
    on_postgresql = schema_editor.connection.vendor == "postgresql"
    for statement in ON_POSTGRESQL if on_postgresql else ON_SQLITE:
        schema_editor.execute(statement)


def let_go(apps, schema_editor):
    on_postgresql = schema_editor.connection.vendor == "postgresql"
    for statement in OFF_POSTGRESQL if on_postgresql else OFF_SQLITE:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("annotation", "0004_invitations")]

    operations = [
        migrations.AddField(
            model_name="event",
            name="account",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(fields=["project", "kind", "-created_at"], name="event_of_kind"),
        ),
        migrations.RunPython(keep, let_go),
    ]
