"""Clearer help texts.

No column changes, so the state alone is told.
"""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0017_hotkey_slugs'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='draft',
                    name='revision',
                    field=models.PositiveIntegerField(help_text='The revision that the screen showed.'),
                ),
                migrations.AlterField(
                    model_name='item',
                    name='cluster',
                    field=models.CharField(help_text='Digest of the source question; items with the same digest are not independent.', max_length=64),
                ),
                migrations.AlterField(
                    model_name='label',
                    name='evaluator_seen',
                    field=models.BooleanField(default=False, help_text="Whether an evaluator's reply to the item was already stored."),
                ),
                migrations.AlterField(
                    model_name='label',
                    name='informed',
                    field=models.BooleanField(default=False, help_text='Whether the member could already see another label or the resolution.'),
                ),
                migrations.AlterField(
                    model_name='label',
                    name='missing',
                    field=models.JSONField(blank=True, db_default={}, default=dict, help_text='Answers outside their scale, by field: cause and original value.'),
                ),
                migrations.AlterField(
                    model_name='membership',
                    name='labelled',
                    field=models.PositiveIntegerField(default=0, help_text='Number of current labels at stage label; updated when the row is locked anyway.'),
                ),
                migrations.AlterField(
                    model_name='project',
                    name='guidelines_field',
                    field=models.CharField(blank=True, help_text='The item field that selects the guidelines.', max_length=80),
                ),
                migrations.AlterField(
                    model_name='project',
                    name='sealed',
                    field=models.BooleanField(db_default=False, default=False, help_text='The texts were imported encrypted and can only be exported encrypted.'),
                ),
                migrations.AlterField(
                    model_name='slot',
                    name='priority',
                    field=models.SmallIntegerField(default=0, help_text='Lower values come first.'),
                ),
                migrations.AlterField(
                    model_name='slot',
                    name='returned',
                    field=models.BooleanField(default=False, help_text='Offered first, because it was released or is urgent.'),
                ),
            ],
        ),
    ]
