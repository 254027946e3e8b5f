from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("judging", "0006_progress_indexes"),
    ]

    operations = [
        migrations.AddField(
            model_name="strategyversion",
            name="retired_at",
            field=models.DateTimeField(
                blank=True,
                help_text="No longer offered; the same for all versions.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="strategyversion",
            name="deleted_at",
            field=models.DateTimeField(
                blank=True,
                help_text="Put away; the same for all versions, which no run pins.",
                null=True,
            ),
        ),
    ]
