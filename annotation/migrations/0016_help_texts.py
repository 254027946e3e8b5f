"""Help texts and titles of reasons in plain English.

No column changes, so the state alone is told.
"""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0015_stages'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='account',
                    name='keys',
                    field=models.JSONField(blank=True, default=dict, help_text='Changed keys of the label screen.'),
                ),
                migrations.AlterField(
                    model_name='cursor',
                    name='nothing_until',
                    field=models.DateTimeField(help_text='Nothing was found; do not search again before this time.', null=True),
                ),
                migrations.AlterField(
                    model_name='draft',
                    name='revision',
                    field=models.PositiveIntegerField(help_text='The revision shown on the screen.'),
                ),
                migrations.AlterField(
                    model_name='guidelinesversion',
                    name='note',
                    field=models.TextField(blank=True, help_text='What changed, in one sentence.'),
                ),
                migrations.AlterField(
                    model_name='guidelinesversion',
                    name='text',
                    field=models.TextField(help_text='Markdown, for all items.'),
                ),
                migrations.AlterField(
                    model_name='guidelinesversion',
                    name='variants',
                    field=models.JSONField(blank=True, default=dict, help_text="Markdown for each value of the project's guidelines field."),
                ),
                migrations.AlterField(
                    model_name='invitation',
                    name='ended_at',
                    field=models.DateTimeField(blank=True, help_text='When it was used or withdrawn.', null=True),
                ),
                migrations.AlterField(
                    model_name='invitation',
                    name='member',
                    field=models.ForeignKey(blank=True, help_text='The member who joined with it.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.membership'),
                ),
                migrations.AlterField(
                    model_name='item',
                    name='cluster',
                    field=models.CharField(help_text='Digest of the source question; items with the same one are not independent.', max_length=64),
                ),
                migrations.AlterField(
                    model_name='item',
                    name='position',
                    field=models.PositiveIntegerField(help_text='Position in the queue and in lists.'),
                ),
                migrations.AlterField(
                    model_name='item',
                    name='source_ability',
                    field=models.CharField(blank=True, help_text='Ability of the gold answer.', max_length=80),
                ),
                migrations.AlterField(
                    model_name='label',
                    name='evaluator_seen',
                    field=models.BooleanField(default=False, help_text="Whether an evaluator's reply to the item was stored before."),
                ),
                migrations.AlterField(
                    model_name='label',
                    name='informed',
                    field=models.BooleanField(default=False, help_text='Whether the member could see another label or the resolution before.'),
                ),
                migrations.AlterField(
                    model_name='label',
                    name='missing',
                    field=models.JSONField(blank=True, db_default={}, default=dict, help_text='Answers off their scale, by field: cause and original value.'),
                ),
                migrations.AlterField(
                    model_name='label',
                    name='seconds',
                    field=models.FloatField(blank=True, help_text='Seconds from showing the item to sending the label.', null=True),
                ),
                migrations.AlterField(
                    model_name='membership',
                    name='alias',
                    field=models.CharField(help_text='The name shown on screens and in exports.', max_length=80),
                ),
                migrations.AlterField(
                    model_name='membership',
                    name='guidelines_seen',
                    field=models.PositiveIntegerField(default=0, help_text='Number of the last guidelines version that the member has read.'),
                ),
                migrations.AlterField(
                    model_name='membership',
                    name='labelled',
                    field=models.PositiveIntegerField(default=0, help_text='Current labels at stage label; changed where the row is locked anyway.'),
                ),
                migrations.AlterField(
                    model_name='membership',
                    name='practised_at',
                    field=models.DateTimeField(blank=True, help_text='When the qualification was passed, or waived by a lead.', null=True),
                ),
                migrations.AlterField(
                    model_name='practiceround',
                    name='feedback',
                    field=models.TextField(blank=True, help_text='Feedback of a lead to the member.'),
                ),
                migrations.AlterField(
                    model_name='practiceround',
                    name='needed',
                    field=models.PositiveSmallIntegerField(help_text='Pass mark: right answers needed to pass.'),
                ),
                migrations.AlterField(
                    model_name='project',
                    name='claim_check',
                    field=models.BooleanField(default=False, help_text='Ask for each change whether the claim explains it.'),
                ),
                migrations.AlterField(
                    model_name='project',
                    name='disputed_overlap',
                    field=models.PositiveSmallIntegerField(default=0, help_text='Labels to collect if annotators disagree; 0: adjudicate at once.'),
                ),
                migrations.AlterField(
                    model_name='project',
                    name='expected_effect',
                    field=models.BooleanField(default=False, help_text='Ask how many points a good evaluator should take off.'),
                ),
                migrations.AlterField(
                    model_name='project',
                    name='guidelines_field',
                    field=models.CharField(blank=True, help_text='The field of the items that selects the guidelines.', max_length=80),
                ),
                migrations.AlterField(
                    model_name='project',
                    name='hold_minutes',
                    field=models.PositiveSmallIntegerField(default=30, help_text='Minutes that an opened item stays reserved.'),
                ),
                migrations.AlterField(
                    model_name='project',
                    name='overlap',
                    field=models.PositiveSmallIntegerField(default=1, help_text='Annotators per item.'),
                ),
                migrations.AlterField(
                    model_name='project',
                    name='practice_items',
                    field=models.PositiveSmallIntegerField(default=0, help_text='Items of a qualification round; 0: no qualification.'),
                ),
                migrations.AlterField(
                    model_name='project',
                    name='practice_pass',
                    field=models.PositiveSmallIntegerField(default=4, help_text='Pass mark: right answers needed to pass a round.'),
                ),
                migrations.AlterField(
                    model_name='project',
                    name='probe_every',
                    field=models.PositiveSmallIntegerField(default=0, help_text='About one item in this many is a control item; 0: none.'),
                ),
                migrations.AlterField(
                    model_name='project',
                    name='rules',
                    field=models.JSONField(blank=True, default=dict, help_text='Aggregation of the labels, by field.'),
                ),
                migrations.AlterField(
                    model_name='project',
                    name='sealed',
                    field=models.BooleanField(db_default=False, default=False, help_text='The texts were imported encrypted and are only exported encrypted.'),
                ),
                migrations.AlterField(
                    model_name='project',
                    name='share_overlap',
                    field=models.PositiveSmallIntegerField(default=2, help_text='Annotators per item of the double-annotated sample.'),
                ),
                migrations.AlterField(
                    model_name='project',
                    name='share_percent',
                    field=models.PositiveSmallIntegerField(default=0, help_text='Double-annotated sample: random share of the items, in percent.'),
                ),
                migrations.AlterField(
                    model_name='project',
                    name='verify',
                    field=models.BooleanField(default=False, help_text='Verification: a second person confirms or contests the first label.'),
                ),
                migrations.AlterField(
                    model_name='resolution',
                    name='reason',
                    field=models.CharField(blank=True, help_text='Why annotators disagreed.', max_length=40),
                ),
                migrations.AlterField(
                    model_name='resolution',
                    name='values',
                    field=models.JSONField(blank=True, default=dict, help_text='The resolved value of each field, by name.'),
                ),
                migrations.AlterField(
                    model_name='slot',
                    name='ahead',
                    field=models.BooleanField(default=False, help_text="Reserved as the member's next item."),
                ),
                migrations.AlterField(
                    model_name='slot',
                    name='reason',
                    field=models.CharField(blank=True, choices=[('share', 'Double-annotated sample'), ('disputed', 'Annotators disagree'), ('named', 'Reserved for a member'), ('expert', 'Needs an expert'), ('gold-error', 'The gold answer looks wrong'), ('contested', 'The label is contested'), ('requested', 'Requested by a lead')], max_length=20),
                ),
                migrations.AlterField(
                    model_name='slot',
                    name='returned',
                    field=models.BooleanField(default=False, help_text='Offered first: it was released, or it is urgent.'),
                ),
                migrations.AlterField(
                    model_name='tasktypeversion',
                    name='source',
                    field=models.TextField(blank=True, help_text='The TOML source.'),
                ),
            ]
        ),
    ]
