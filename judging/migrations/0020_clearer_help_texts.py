"""Clearer help texts.

No column changes, so the state alone is told.
"""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('judging', '0019_any_provider'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='endpoint',
                    name='remaining',
                    field=models.JSONField(blank=True, default=dict, help_text="Remaining limits from the provider's headers, with the time of the headers."),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='generates',
                    field=models.BooleanField(db_default=False, default=False, help_text='Whether it generates texts of items instead of judging items.'),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='is_part',
                    field=models.BooleanField(db_default=False, default=False, help_text='Whether it uses only part of the items that were available at its start.'),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='occasion',
                    field=models.CharField(blank=True, help_text='Why it sends answered requests again: a canary.', max_length=40),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='while_labelling',
                    field=models.BooleanField(default=False, help_text='Whether it was started while its items were being labelled, as a lead allowed.'),
                ),
            ],
        ),
    ]
