from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0030_index_of_unlabelled_outcomes")]

    operations = [
        migrations.AddField(
            "endpoint", "archived_at", models.DateTimeField(blank=True, null=True)
        ),
    ]
