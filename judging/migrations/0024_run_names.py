from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Lower


class Migration(migrations.Migration):
    dependencies = [("judging", "0023_fill_run_taxonomy")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="name",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="A short name, unique among the runs of the project that are not "
                "archived.",
                max_length=60,
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="tags",
            field=models.JSONField(
                blank=True,
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="Short words by which runs are filtered and chosen.",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="note",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="A text for readers of the run's page.",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                "project",
                Lower("name"),
                condition=Q(archived_at=None) & ~Q(name=""),
                name="run_name_once",
            ),
        ),
    ]
