from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotation", "0006_snapshots")]
    operations = [
        # The value of the database is that of tokens that were there before: all of it, as ever.
        migrations.AddField(
            "apitoken",
            "scopes",
            models.CharField(db_default="read label run manage", editable=False, max_length=80),
        ),
        migrations.AddField(
            "apitoken", "expires_at", models.DateTimeField(editable=False, null=True)
        ),
    ]
