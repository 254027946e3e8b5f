from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0033_endpoint_ratings")]

    operations = [
        migrations.AddField(
            "outcome",
            "drawn",
            models.JSONField(
                null=True,
                blank=True,
                help_text="What a generator drew for the item: by draw, the options with their "
                "values.",
            ),
        ),
    ]
