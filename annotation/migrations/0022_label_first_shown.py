"""A label of a task with a pair of texts names the text that its author saw as A."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotation", "0021_text_format_found")]

    operations = [
        migrations.AddField(
            model_name="label",
            name="first_shown",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text=(
                    "The text of a pair that the member saw as A; empty if no order was drawn."
                ),
                max_length=40,
            ),
        ),
    ]
