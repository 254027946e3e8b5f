"""A diff can be pinned: it is shown as long as there are answers to its single changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotation", "0018_clearer_help_texts")]

    operations = [
        migrations.AddField(
            model_name="diff",
            name="pinned",
            field=models.BooleanField(default=False, db_default=False),
        ),
    ]
