"""What was cancelled is no failure, which a doctor would ask about."""

from typing import Any

from django.db import migrations, models


def tell_apart(apps: Any, schema_editor: Any) -> None:
    job = apps.get_model("annotation", "Job")
    job.objects.filter(state="failed", message__startswith="Cancelled by ").update(
        state="cancelled"
    )


def take_together(apps: Any, schema_editor: Any) -> None:
    apps.get_model("annotation", "Job").objects.filter(state="cancelled").update(state="failed")


class Migration(migrations.Migration):
    dependencies = [("annotation", "0009_sealed")]

    operations = [
        # Which words a state may be is no part of the column.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="job",
                    name="state",
                    field=models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("finished", "Finished"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                )
            ]
        ),
        migrations.RunPython(tell_apart, take_together),
    ]
