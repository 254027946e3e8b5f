from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0027_reply_bytes_sent")]

    operations = [
        # Without a check, which would read all rows.
        migrations.AddField(
            "call",
            "supplement",
            models.SmallIntegerField(
                db_default=0,
                default=0,
                help_text="0 for the run's own calls; otherwise the number of its supplement.",
            ),
        ),
    ]
