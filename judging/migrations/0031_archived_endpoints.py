from django.core.validators import RegexValidator
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0030_index_of_unlabelled_outcomes")]

    operations = [
        migrations.AddField("endpoint", "archived_at", models.DateTimeField(blank=True, null=True)),
        # The column stays as it is; only names with dots are valid now.
        migrations.AlterField(
            "endpoint",
            "name",
            models.CharField(
                max_length=80,
                unique=True,
                validators=[
                    RegexValidator(
                        r"\A[-a-zA-Z0-9_]+(\.[-a-zA-Z0-9_]+)*\Z",
                        "Use letters, digits, hyphens, underscores, and dots between them, for "
                        "example gpt-4.1.",
                    )
                ],
            ),
        ),
    ]
