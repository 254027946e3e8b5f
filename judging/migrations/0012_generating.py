"""Runs that make texts of items, and judge none."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0011_workers")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="generates",
            field=models.BooleanField(
                default=False,
                db_default=False,
                help_text="Makes texts of items, and judges none.",
            ),
        ),
        # Which words a result may be is no part of the column.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="outcome",
                    name="result",
                    field=models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("detected", "Detected"),
                            ("undetected", "Undetected"),
                            ("scored", "Scored"),
                            ("made", "Made"),
                            ("missing", "Missing"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
            ]
        ),
    ]
