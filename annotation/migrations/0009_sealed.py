from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotation", "0008_repeatable")]
    operations = [
        migrations.AddField(
            model_name="project",
            name="sealed",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Its texts came encrypted, and leave it in encrypted files alone.",
            ),
        ),
    ]
