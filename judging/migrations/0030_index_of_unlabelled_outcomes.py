from django.db import migrations, models

from annotation.db.migration_operations import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("judging", "0029_calls_of_supplements")]

    operations = [
        AddIndexOnline(
            "outcome",
            models.Index(
                fields=["run"], condition=models.Q(truth="unlabelled"), name="outcome_unlabelled"
            ),
        ),
    ]
