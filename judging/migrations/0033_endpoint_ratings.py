from django.db import migrations, models

from judging.evaluators.ratings import check_ratings


class Migration(migrations.Migration):
    dependencies = [("judging", "0031_archived_endpoints")]

    operations = [
        migrations.AddField(
            "endpoint",
            "ratings",
            models.JSONField(blank=True, default=list, validators=[check_ratings]),
        ),
    ]
