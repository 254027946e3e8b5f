"""Runs know whether they are over a part of the items that they could have been over."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0013_costs_in_full")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="is_part",
            field=models.BooleanField(
                default=False,
                db_default=False,
                help_text="Over a part of the items that it could have been over when it began.",
            ),
        ),
    ]
