"""Help texts in plain English.

No column changes, so the state alone is told.
"""

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0016_help_texts'),
        ('judging', '0017_provider_titles'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='call',
                    name='fed_by',
                    field=models.ForeignKey(blank=True, help_text='The reading of an earlier reply that this call shows.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='judging.reading'),
                ),
                migrations.AlterField(
                    model_name='endpoint',
                    name='key_variable',
                    field=models.CharField(blank=True, help_text='The environment variable with the API key; its name ends in _API_KEY.', max_length=80, validators=[django.core.validators.RegexValidator('^[A-Z][A-Z0-9_]*_API_KEY\\Z')]),
                ),
                migrations.AlterField(
                    model_name='endpoint',
                    name='per_minute',
                    field=models.PositiveIntegerField(blank=True, help_text='Calls per minute.', null=True),
                ),
                migrations.AlterField(
                    model_name='endpoint',
                    name='price_in',
                    field=models.DecimalField(blank=True, decimal_places=6, help_text='Price of a million input tokens.', max_digits=12, null=True, validators=[django.core.validators.MinValueValidator(0)]),
                ),
                migrations.AlterField(
                    model_name='endpoint',
                    name='price_out',
                    field=models.DecimalField(blank=True, decimal_places=6, help_text='Price of a million output tokens.', max_digits=12, null=True, validators=[django.core.validators.MinValueValidator(0)]),
                ),
                migrations.AlterField(
                    model_name='endpoint',
                    name='remaining',
                    field=models.JSONField(blank=True, default=dict, help_text="What is left according to the provider's headers, and when they said so."),
                ),
                migrations.AlterField(
                    model_name='endpoint',
                    name='template',
                    field=models.TextField(blank=True, help_text="For completions: the model's template, with {{system}} and {{prompt}}."),
                ),
                migrations.AlterField(
                    model_name='endpoint',
                    name='timeout',
                    field=models.PositiveSmallIntegerField(default=120, help_text='Time limit for one call, in seconds.', validators=[django.core.validators.MinValueValidator(1)]),
                ),
                migrations.AlterField(
                    model_name='endpoint',
                    name='tokens_per_minute',
                    field=models.PositiveIntegerField(blank=True, help_text='Input and output tokens per minute.', null=True),
                ),
                migrations.AlterField(
                    model_name='outcome',
                    name='main',
                    field=models.BooleanField(default=True, help_text="Used for headline figures: the axis of the item's ability."),
                ),
                migrations.AlterField(
                    model_name='outcome',
                    name='share',
                    field=models.FloatField(help_text='Share of the parsed repeats that detected the error, 0 to 1.', null=True),
                ),
                migrations.AlterField(
                    model_name='outcome',
                    name='truth',
                    field=models.CharField(blank=True, help_text='The final label of the item when the run pinned it.', max_length=40),
                ),
                migrations.AlterField(
                    model_name='reply',
                    name='model',
                    field=models.CharField(blank=True, help_text='The model named by the provider.', max_length=200),
                ),
                migrations.AlterField(
                    model_name='request',
                    name='message',
                    field=models.TextField(blank=True, help_text="The provider's error message."),
                ),
                migrations.AlterField(
                    model_name='request',
                    name='place',
                    field=models.BigIntegerField(help_text='Random position, so that a part is a fair sample.'),
                ),
                migrations.AlterField(
                    model_name='request',
                    name='tried',
                    field=models.JSONField(default=dict, help_text='Failed attempts by cause; each cause has its own limit.'),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='digest',
                    field=models.CharField(help_text='Digest of everything the run pins.', max_length=64),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='few_shot',
                    field=models.JSONField(default=list, help_text='Items shown as examples: pairs of key and digest of the revision.'),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='generates',
                    field=models.BooleanField(db_default=False, default=False, help_text='Generates texts of items and judges none.'),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='is_part',
                    field=models.BooleanField(db_default=False, default=False, help_text='Over part of the items that were available at its start.'),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='occasion',
                    field=models.CharField(blank=True, help_text='Why it asks answered requests again: a canary.', max_length=40),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='pinned',
                    field=models.JSONField(help_text='The endpoint at the start: provider, address, parameters.'),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='reason',
                    field=models.TextField(blank=True, help_text='Why it is paused.'),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='samples',
                    field=models.PositiveSmallIntegerField(default=1, help_text='Samples per call: repeats, or votes if the run combines them.'),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='sources',
                    field=models.ManyToManyField(blank=True, help_text='The runs that it combines, repeats, or whose explanations it checks.', related_name='derived', to='judging.run'),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='while_labelling',
                    field=models.BooleanField(default=False, help_text='Started, as a lead allowed, while its items were being labelled.'),
                ),
                migrations.AlterField(
                    model_name='savedview',
                    name='shared',
                    field=models.BooleanField(default=False, help_text="Whether all who can see the project's results can see it."),
                ),
                migrations.AlterField(
                    model_name='storedfigure',
                    name='asked',
                    field=models.JSONField(help_text='The ids of the runs, and the fields to group by.'),
                ),
                migrations.AlterField(
                    model_name='storedfigure',
                    name='step',
                    field=models.CharField(blank=True, help_text='The current step, in words.', max_length=80),
                ),
                migrations.AlterField(
                    model_name='strategyversion',
                    name='deleted_at',
                    field=models.DateTimeField(blank=True, help_text='Deleted; the same for all versions. No run uses them.', null=True),
                ),
                migrations.AlterField(
                    model_name='strategyversion',
                    name='project',
                    field=models.ForeignKey(blank=True, help_text='The project it belongs to; empty for a shipped strategy.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='strategies', to='annotation.project'),
                ),
                migrations.AlterField(
                    model_name='strategyversion',
                    name='source',
                    field=models.TextField(blank=True, help_text='The TOML source; runs use the definition.'),
                ),
                migrations.AlterField(
                    model_name='worker',
                    name='failures',
                    field=models.PositiveBigIntegerField(default=0, help_text='Failed slices.'),
                ),
                migrations.AlterField(
                    model_name='worker',
                    name='looked_at',
                    field=models.DateTimeField(help_text='When it last looked for due work.', null=True),
                ),
                migrations.AlterField(
                    model_name='worker',
                    name='progressed_at',
                    field=models.DateTimeField(help_text='When it last finished a slice, or found nothing to do.', null=True),
                ),
                migrations.AlterField(
                    model_name='worker',
                    name='slices',
                    field=models.PositiveBigIntegerField(default=0, help_text='Finished slices.'),
                ),
            ]
        ),
    ]
