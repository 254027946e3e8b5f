from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [('annotation', '0013_end_sessions')]

    operations = [
        migrations.AddField(
            model_name='label',
            name='missing',
            field=models.JSONField(
                blank=True,
                db_default={},
                default=dict,
                help_text=(
                    'Answers that were given and are off their scale, by field: cause and value.'
                ),
            ),
        ),
    ]
