"""The tables of version 0.2.0, with the triggers that keep events and snapshots as they are."""

import annotation.items.models
import django.contrib.auth.models
import django.contrib.auth.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


KEPT_EVENTS = "Events are only ever added: the audit cannot be changed."
KEPT_SNAPSHOTS = "A snapshot that is made stays as it is."
MADE = """EXISTS (
    SELECT 1 FROM annotation_snapshot s WHERE s.id = {row}.snapshot_id AND s.made_at IS NOT NULL
)"""
# By table and what is done to a row of it: when that is refused.
REFUSED = {
    ("annotation_snapshot", "UPDATE"): "OLD.made_at IS NOT NULL",
    ("annotation_snapshot", "DELETE"): "OLD.made_at IS NOT NULL",
    ("annotation_frozen", "UPDATE"): "TRUE",
    ("annotation_frozen", "DELETE"): "TRUE",
    ("annotation_frozenin", "INSERT"): MADE.format(row="NEW"),
    ("annotation_frozenin", "UPDATE"): "TRUE",
    ("annotation_frozenin", "DELETE"): MADE.format(row="OLD"),
}


def install_triggers(apps, schema_editor):
    """Let the database refuse to change events, and what a finished snapshot has.

    On SQLite a later migration that alters a column of these tables makes the table anew, without
    its triggers, and has to do this again.
    """
    on_postgresql = schema_editor.connection.vendor == "postgresql"
    statements = events_on_postgresql() if on_postgresql else events_on_sqlite()
    for (table, what), when in REFUSED.items():
        name = f"{table}_kept_{what.lower()}"
        statements += (
            snapshots_on_postgresql(name, table, what, when)
            if on_postgresql
            else snapshots_on_sqlite(name, table, what, when)
        )
    for statement in statements:
        schema_editor.execute(statement)


def events_on_postgresql():
    return [
        f"""CREATE FUNCTION annotation_event_kept() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION '{KEPT_EVENTS}' USING ERRCODE = 'restrict_violation'; END $$""",
        """CREATE TRIGGER annotation_event_kept BEFORE UPDATE OR DELETE ON annotation_event
    FOR EACH ROW EXECUTE FUNCTION annotation_event_kept()""",
    ]


def events_on_sqlite():
    return [
        f"""CREATE TRIGGER annotation_event_kept_{what.lower()} BEFORE {what} ON annotation_event
    BEGIN SELECT RAISE(ABORT, '{KEPT_EVENTS}'); END"""
        for what in ("UPDATE", "DELETE")
    ]


def snapshots_on_postgresql(name, table, what, when):
    row = "OLD" if what == "DELETE" else "NEW"
    return [
        f"""CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF {when} THEN RAISE EXCEPTION '{KEPT_SNAPSHOTS}' USING ERRCODE = 'restrict_violation';
                END IF; RETURN {row}; END $$""",
        f"CREATE TRIGGER {name} BEFORE {what} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()",
    ]


def snapshots_on_sqlite(name, table, what, when):
    return [
        f"CREATE TRIGGER {name} BEFORE {what} ON {table} WHEN {when}"
        f" BEGIN SELECT RAISE(ABORT, '{KEPT_SNAPSHOTS}'); END"
    ]


class Migration(migrations.Migration):

    initial = True
    # A database of before has all of them.
    replaces = [
        ("annotation", "0001_initial"),
        ("annotation", "0002_vetting_workbench"),
        ("annotation", "0003_count_labelled"),
        ("annotation", "0004_invitations"),
        ("annotation", "0005_audit_kept"),
        ("annotation", "0006_snapshots"),
        ("annotation", "0007_token_scopes"),
        ("annotation", "0008_repeatable"),
        ("annotation", "0009_sealed"),
        ("annotation", "0010_cancelled_jobs"),
        ("annotation", "0011_partial_key_indexes"),
        ("annotation", "0012_keys_without_indexes"),
        ("annotation", "0013_end_sessions"),
        ("annotation", "0014_missing_answers"),
        ("annotation", "0015_stages"),
        ("annotation", "0016_help_texts"),
        ("annotation", "0017_hotkey_slugs"),
        ("annotation", "0018_clearer_help_texts"),
        ("annotation", "0019_diff_pinned"),
        ("annotation", "0020_pin_former_diffs"),
        ("annotation", "0021_text_format_found"),
        ("annotation", "0022_label_first_shown"),
        ("annotation", "0023_taxonomy_versions"),
        ("annotation", "0024_shipped_taxonomy"),
        ("annotation", "0025_taxonomy_of_every_project"),
        ("annotation", "0026_creates_projects"),
        ("annotation", "0027_taxonomy_of_labels"),
        ("annotation", "0028_order_of_items"),
        ("annotation", "0029_begun_slots"),
        ("annotation", "0030_search_text"),
        ("annotation", "0031_bulk_changes_and_pilot"),
    ]

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.CreateModel(
            name='Project',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('name', models.CharField(max_length=200)),
                ('description', models.TextField(blank=True)),
                ('overlap', models.PositiveSmallIntegerField(default=1, help_text='Annotators per item.')),
                ('order', models.CharField(db_default='file', default='file', help_text='The order in which annotators get the items.', max_length=10)),
                ('order_field', models.CharField(blank=True, db_default='', default='', help_text='The item field that sorts the items.', max_length=80)),
                ('order_seed', models.PositiveIntegerField(db_default=0, default=0, help_text='The seed of the random order.')),
                ('begun_first', models.BooleanField(db_default=False, default=False, help_text='Items that somebody has labelled and that need more labels come first.')),
                ('pilot', models.JSONField(blank=True, db_default=models.Value([], models.JSONField()), default=list, help_text='The ids of the items of the pilot that is running; empty without a pilot.')),
                ('hold_minutes', models.PositiveSmallIntegerField(default=30, help_text='Minutes that an opened item stays reserved.')),
                ('share_percent', models.PositiveSmallIntegerField(default=0, help_text='Double-annotated sample: random share of the items, in percent.')),
                ('share_overlap', models.PositiveSmallIntegerField(default=2, help_text='Annotators per item of the double-annotated sample.')),
                ('disputed_overlap', models.PositiveSmallIntegerField(default=0, help_text='Labels to collect if annotators disagree; 0: adjudicate at once.')),
                ('rules', models.JSONField(blank=True, default=dict, help_text='Aggregation of the labels, by field.')),
                ('verify', models.BooleanField(default=False, help_text='Verification: a second person confirms or contests the first label.')),
                ('verify_blind', models.BooleanField(db_default=False, default=False, help_text='Who verifies answers without seeing the label; an equal answer confirms it.')),
                ('blind_first', models.BooleanField(default=False, help_text='Items are first shown without diff, claim and rationale.')),
                ('claim_check', models.BooleanField(default=False, help_text='Ask for each change whether the claim explains it.')),
                ('expected_effect', models.BooleanField(default=False, help_text='Ask how many points a good evaluator should take off.')),
                ('practice_items', models.PositiveSmallIntegerField(default=0, help_text='Items of a qualification round; 0: no qualification.')),
                ('practice_pass', models.PositiveSmallIntegerField(default=4, help_text='Pass mark: right answers needed to pass a round.')),
                ('probe_every', models.PositiveSmallIntegerField(default=0, help_text='About one item in this many is a control item; 0: none.')),
                ('text_format', models.CharField(choices=[('found', 'as each item needs: plain, Markdown or formulas'), ('plain', 'plain text'), ('markdown', 'Markdown'), ('math', 'Markdown with LaTeX')], default='found', max_length=10)),
                ('guidelines_field', models.CharField(blank=True, help_text='The item field that selects the guidelines.', max_length=80)),
                ('sealed', models.BooleanField(db_default=False, default=False, help_text='The texts were imported encrypted and can only be exported encrypted.')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('archived_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='Account',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('username', models.CharField(error_messages={'unique': 'A user with that username already exists.'}, help_text='Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.', max_length=150, unique=True, validators=[django.contrib.auth.validators.UnicodeUsernameValidator()], verbose_name='username')),
                ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                ('keys', models.JSONField(blank=True, default=dict, help_text='Changed keys of the label screen.')),
                ('creates_projects', models.BooleanField(default=False, help_text='May create projects without leading one yet.')),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
            ],
            options={
                'verbose_name': 'user',
                'verbose_name_plural': 'users',
                'abstract': False,
            },
            managers=[
                ('objects', django.contrib.auth.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80)),
                ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('prefix', models.CharField(editable=False, max_length=12)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('last_used_at', models.DateTimeField(editable=False, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('scopes', models.CharField(db_default='read label run manage', editable=False, max_length=80)),
                ('expires_at', models.DateTimeField(editable=False, null=True)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at'],
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('alias', models.CharField(help_text='The name shown on screens and in exports.', max_length=80)),
                ('role', models.CharField(choices=[('annotator', 'Annotator'), ('adjudicator', 'Adjudicator'), ('researcher', 'Researcher'), ('lead', 'Lead')], max_length=20)),
                ('group', models.CharField(blank=True, db_default='', default='', help_text='A name for people who belong together, such as a course.', max_length=40)),
                ('active', models.BooleanField(default=True)),
                ('labelled', models.PositiveIntegerField(default=0, help_text='Number of current labels at stage label; updated when the row is locked anyway.')),
                ('practised_at', models.DateTimeField(blank=True, help_text='When the qualification was passed, or waived by a lead.', null=True)),
                ('guidelines_seen', models.PositiveIntegerField(default=0, help_text='Number of the last guidelines version that the member has read.')),
                ('mentions_seen_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('account', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='members', to='annotation.project')),
            ],
            options={
                'ordering': ['project_id', 'alias'],
            },
        ),
        migrations.CreateModel(
            name='GuidelinesVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('text', models.TextField(help_text='Markdown, for all items.')),
                ('variants', models.JSONField(blank=True, default=dict, help_text="Markdown for each value of the project's guidelines field.")),
                ('note', models.TextField(blank=True, help_text='What changed, in one sentence.')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('author', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='annotation.membership')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='guidelines', to='annotation.project')),
            ],
            options={
                'ordering': ['project_id', 'number'],
            },
        ),
        migrations.CreateModel(
            name='Job',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=40)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('running', 'Running'), ('finished', 'Finished'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='waiting', max_length=10)),
                ('done', models.PositiveIntegerField(default=0)),
                ('total', models.PositiveIntegerField(blank=True, null=True)),
                ('message', models.TextField(blank=True)),
                ('result', models.JSONField(blank=True, default=dict)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('member', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='annotation.membership')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='jobs', to='annotation.project')),
            ],
            options={
                'ordering': ['-created_at'],
            },
        ),
        migrations.CreateModel(
            name='Item',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=200)),
                ('position', models.PositiveIntegerField(help_text='Position in the queue and in lists.')),
                ('category', models.CharField(max_length=80)),
                ('ability', models.CharField(max_length=80)),
                ('source_ability', models.CharField(blank=True, help_text='Ability of the gold answer.', max_length=80)),
                ('cluster', models.CharField(help_text='Digest of the source question; items with the same digest are not independent.', max_length=64)),
                ('origin', models.CharField(blank=True, max_length=40)),
                ('dose', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('purpose', models.CharField(default='test', max_length=20)),
                ('fields', models.JSONField(blank=True, default=dict)),
                ('flags', models.JSONField(blank=True, default=list)),
                ('revision_number', models.PositiveIntegerField(default=1)),
                ('first_reply_at', models.DateTimeField(blank=True, null=True)),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('duplicate_of', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='duplicates', to='annotation.item')),
                ('parent', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='children', to='annotation.item')),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='items', to='annotation.project')),
            ],
            options={
                'ordering': ['project_id', 'position'],
            },
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('alias', models.CharField(max_length=80)),
                ('role', models.CharField(choices=[('annotator', 'Annotator'), ('adjudicator', 'Adjudicator'), ('researcher', 'Researcher'), ('lead', 'Lead')], max_length=20)),
                ('group', models.CharField(blank=True, db_default='', default='', max_length=40)),
                ('email', models.EmailField(blank=True, max_length=254)),
                ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(blank=True, help_text='When it was used or withdrawn.', null=True)),
                ('made_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.membership')),
                ('member', models.ForeignKey(blank=True, help_text='The member who joined with it.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.membership')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='invitations', to='annotation.project')),
            ],
            options={
                'ordering': ['-created_at', '-pk'],
            },
        ),
        migrations.CreateModel(
            name='Event',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=40)),
                ('subject', models.CharField(max_length=200)),
                ('data', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('account', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('member', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='events', to='annotation.membership')),
                ('project', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='events', to='annotation.project')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='BulkChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('action', models.CharField(max_length=20)),
                ('value', models.CharField(blank=True, max_length=80)),
                ('before', models.JSONField(default=dict)),
                ('count', models.PositiveIntegerField(default=0)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('undone_at', models.DateTimeField(blank=True, null=True)),
                ('member', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.membership')),
                ('undone_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.membership')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='bulk_changes', to='annotation.project')),
            ],
            options={
                'ordering': ['project_id', '-number'],
            },
        ),
        migrations.CreateModel(
            name='Repeatable',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=64)),
                ('asked', models.CharField(max_length=64)),
                ('status', models.PositiveSmallIntegerField(null=True)),
                ('body', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['account_id', 'created_at'],
            },
        ),
        migrations.CreateModel(
            name='Revision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('texts', models.JSONField()),
                ('digest', models.CharField(max_length=64)),
                ('note', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('author', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, to='annotation.membership')),
                ('item', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='revisions', to='annotation.item')),
            ],
            options={
                'ordering': ['item_id', 'number'],
            },
        ),
        migrations.CreateModel(
            name='Frozen',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('value', models.CharField(blank=True, max_length=40)),
                ('facts', models.JSONField()),
                ('digest', models.CharField(max_length=64)),
                ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='frozen', to='annotation.item')),
                ('revision', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.revision')),
            ],
        ),
        migrations.CreateModel(
            name='Diff',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('algorithm', models.CharField(max_length=20)),
                ('segments', models.JSONField()),
                ('edit_size', models.FloatField()),
                ('place', models.FloatField(null=True)),
                ('pinned', models.BooleanField(db_default=False, default=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('revision', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='diffs', to='annotation.revision')),
            ],
        ),
        migrations.CreateModel(
            name='Slot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('stage', models.CharField(choices=[('blind', 'Blind'), ('label', 'Label'), ('verify', 'Verify'), ('qualification', 'Qualification'), ('control', 'Control'), ('baseline', 'Baseline'), ('adjudicate', 'Adjudicate')], default='label', max_length=20)),
                ('number', models.PositiveSmallIntegerField()),
                ('priority', models.SmallIntegerField(default=0, help_text='Lower values come first.')),
                ('position', models.PositiveIntegerField()),
                ('state', models.CharField(choices=[('open', 'Open'), ('held', 'Held'), ('filled', 'Filled'), ('closed', 'Closed')], default='open', max_length=10)),
                ('held_until', models.DateTimeField(blank=True, null=True)),
                ('returned', models.BooleanField(default=False, help_text='Offered first, because it was released or is urgent.')),
                ('ahead', models.BooleanField(default=False, help_text="Reserved as the member's next item.")),
                ('begun', models.BooleanField(db_default=False, default=False, help_text='Open, and somebody has labelled the item: offered before items without a label.')),
                ('reason', models.CharField(blank=True, choices=[('share', 'Double-annotated sample'), ('disputed', 'Annotators disagree'), ('named', 'Reserved for a member'), ('expert', 'Needs an expert'), ('gold-error', 'The gold answer looks wrong'), ('contested', 'The label is contested'), ('requested', 'Requested by a lead'), ('waived', 'Not waited for any more')], max_length=20)),
                ('item', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='slots', to='annotation.item')),
                ('member', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='slots', to='annotation.membership')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='slots', to='annotation.project')),
                ('reserved_for', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reserved_slots', to='annotation.membership')),
            ],
        ),
        migrations.CreateModel(
            name='Snapshot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('name', models.CharField(max_length=80)),
                ('note', models.TextField(blank=True)),
                ('digest', models.CharField(blank=True, max_length=64)),
                ('items', models.PositiveIntegerField(default=0)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('made_at', models.DateTimeField(blank=True, null=True)),
                ('job', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.job')),
                ('member', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='annotation.membership')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='snapshots', to='annotation.project')),
            ],
            options={
                'ordering': ['project_id', '-number'],
            },
        ),
        migrations.CreateModel(
            name='FrozenIn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('frozen', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.frozen')),
                ('item', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.item')),
                ('snapshot', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='frozen', to='annotation.snapshot')),
            ],
        ),
        migrations.CreateModel(
            name='TaskTypeVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80)),
                ('number', models.PositiveIntegerField()),
                ('digest', models.CharField(max_length=64)),
                ('definition', models.JSONField()),
                ('source', models.TextField(blank=True, help_text='The TOML source.')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('slug', 'number'), name='task_type_number'), models.UniqueConstraint(fields=('slug', 'digest'), name='task_type_digest')],
            },
        ),
        migrations.AddField(
            model_name='project',
            name='task_type',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='projects', to='annotation.tasktypeversion'),
        ),
        migrations.CreateModel(
            name='TaxonomyVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80)),
                ('number', models.PositiveIntegerField()),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('definition', models.JSONField()),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('slug', 'number'), name='taxonomy_number')],
            },
        ),
        migrations.CreateModel(
            name='Resolution',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('value', models.CharField(max_length=40)),
                ('values', models.JSONField(blank=True, default=dict, help_text='The resolved value of each field, by name.')),
                ('reason', models.CharField(blank=True, help_text='Why annotators disagreed.', max_length=40)),
                ('comment', models.TextField(blank=True)),
                ('rule', models.CharField(max_length=40)),
                ('source', models.CharField(choices=[('labels', 'Labels'), ('adjudicated', 'Adjudicated'), ('imported', 'Imported'), ('known', 'Known')], max_length=20)),
                ('current', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='resolutions', to='annotation.item')),
                ('member', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='annotation.membership')),
                ('revision', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='resolutions', to='annotation.revision')),
                ('taxonomy', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, to='annotation.taxonomyversion', to_field='digest')),
            ],
        ),
        migrations.AddField(
            model_name='project',
            name='taxonomy',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='projects', to='annotation.taxonomyversion', to_field='digest'),
        ),
        migrations.CreateModel(
            name='Label',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('stage', models.CharField(choices=[('blind', 'Blind'), ('label', 'Label'), ('verify', 'Verify'), ('qualification', 'Qualification'), ('control', 'Control'), ('baseline', 'Baseline'), ('adjudicate', 'Adjudicate')], max_length=20)),
                ('choice', models.CharField(max_length=40)),
                ('answers', models.JSONField(default=dict)),
                ('missing', models.JSONField(blank=True, db_default={}, default=dict, help_text='Answers outside their scale, by field: cause and original value.')),
                ('comment', models.TextField(blank=True)),
                ('submission', models.CharField(max_length=64, unique=True)),
                ('current', models.BooleanField(default=True)),
                ('counted', models.BooleanField(default=True)),
                ('withdrawn_at', models.DateTimeField(blank=True, null=True)),
                ('seconds', models.FloatField(blank=True, help_text='Seconds from showing the item to sending the label.', null=True)),
                ('evaluator_seen', models.BooleanField(default=False, help_text="Whether an evaluator's reply to the item was already stored.")),
                ('informed', models.BooleanField(default=False, help_text='Whether the member could already see another label or the resolution.')),
                ('first_shown', models.CharField(blank=True, db_default='', default='', help_text='The text of a pair that the member saw as A; empty if no order was drawn.', max_length=40)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('guidelines', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='annotation.guidelinesversion')),
                ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='labels', to='annotation.item')),
                ('supersedes', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='annotation.label')),
                ('member', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='labels', to='annotation.membership')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='labels', to='annotation.project')),
                ('revision', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='labels', to='annotation.revision')),
                ('slot', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='labels', to='annotation.slot')),
                ('task_type', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='annotation.tasktypeversion')),
                ('taxonomy', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, to='annotation.taxonomyversion', to_field='digest')),
            ],
        ),
        migrations.CreateModel(
            name='SearchText',
            fields=[
                ('item', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='search_text', serialize=False, to='annotation.item')),
                ('words', annotation.items.models.WordsField(null=True)),
                ('due', models.BooleanField(default=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('due', True)), fields=['item'], name='search_due')],
            },
        ),
        migrations.CreateModel(
            name='Mark',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('skip', 'Skip'), ('flag', 'Flag'), ('seen', 'Seen')], max_length=10)),
                ('note', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='marks', to='annotation.item')),
                ('member', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='marks', to='annotation.membership')),
            ],
            options={
                'ordering': ['-created_at', '-pk'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('member', 'item', 'kind'), name='mark_one')],
            },
        ),
        migrations.CreateModel(
            name='Draft',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('revision', models.PositiveIntegerField(help_text='The revision that the screen showed.')),
                ('data', models.JSONField(default=dict, help_text='Answers, comment, correction and its note.')),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='drafts', to='annotation.item')),
                ('member', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='drafts', to='annotation.membership')),
            ],
            options={
                'ordering': ['-updated_at'],
                'constraints': [models.UniqueConstraint(fields=('member', 'item'), name='draft_one')],
            },
        ),
        migrations.CreateModel(
            name='Cursor',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('stage', models.CharField(choices=[('blind', 'Blind'), ('label', 'Label'), ('verify', 'Verify'), ('qualification', 'Qualification'), ('control', 'Control'), ('baseline', 'Baseline'), ('adjudicate', 'Adjudicate')], max_length=20)),
                ('priority', models.SmallIntegerField(default=-32768)),
                ('position', models.BigIntegerField(default=-1)),
                ('nothing_until', models.DateTimeField(help_text='Nothing was found; do not search again before this time.', null=True)),
                ('member', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='cursors', to='annotation.membership')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('member', 'stage'), name='cursor_stage')],
            },
        ),
        migrations.CreateModel(
            name='Comment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.TextField()),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('withdrawn_at', models.DateTimeField(blank=True, null=True)),
                ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='comments', to='annotation.item')),
                ('member', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='comments', to='annotation.membership')),
                ('mentions', models.ManyToManyField(blank=True, related_name='mentioned_in', to='annotation.membership')),
            ],
            options={
                'ordering': ['created_at', 'pk'],
                'indexes': [models.Index(fields=['item', 'created_at'], name='comment_of_item')],
            },
        ),
        migrations.CreateModel(
            name='PracticeRound',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveSmallIntegerField()),
                ('size', models.PositiveSmallIntegerField()),
                ('needed', models.PositiveSmallIntegerField(help_text='Pass mark: right answers needed to pass.')),
                ('right', models.PositiveSmallIntegerField(default=0)),
                ('answered', models.PositiveSmallIntegerField(default=0)),
                ('feedback', models.TextField(blank=True, help_text='Feedback of a lead to the member.')),
                ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('feedback_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.membership')),
                ('member', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='practice_rounds', to='annotation.membership')),
            ],
            options={
                'ordering': ['member_id', 'number'],
                'constraints': [models.UniqueConstraint(fields=('member', 'number'), name='practice_round_number'), models.CheckConstraint(condition=models.Q(('answered__lte', models.F('size')), ('right__lte', models.F('answered'))), name='practice_counts')],
            },
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.UniqueConstraint(fields=('project', 'alias'), name='member_alias'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.UniqueConstraint(fields=('project', 'account'), name='member_account'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.CheckConstraint(condition=models.Q(('role__in', ['annotator', 'adjudicator', 'researcher', 'lead'])), name='member_role_known'),
        ),
        migrations.AddIndex(
            model_name='item',
            index=models.Index(fields=['project', 'category', 'position'], name='item_category'),
        ),
        migrations.AddIndex(
            model_name='item',
            index=models.Index(fields=['project', 'purpose'], name='item_purpose'),
        ),
        migrations.AddIndex(
            model_name='item',
            index=models.Index(fields=['project', 'cluster'], name='item_cluster'),
        ),
        migrations.AddIndex(
            model_name='item',
            index=models.Index(condition=models.Q(('parent__isnull', False)), fields=['parent'], name='item_parent'),
        ),
        migrations.AddIndex(
            model_name='item',
            index=models.Index(condition=models.Q(('duplicate_of__isnull', False)), fields=['duplicate_of'], name='item_duplicate_of'),
        ),
        migrations.AddConstraint(
            model_name='item',
            constraint=models.UniqueConstraint(fields=('project', 'key'), name='item_key'),
        ),
        migrations.AddConstraint(
            model_name='item',
            constraint=models.UniqueConstraint(fields=('project', 'position'), name='item_position'),
        ),
        migrations.AddConstraint(
            model_name='invitation',
            constraint=models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('project', 'alias'), name='invitation_alias'),
        ),
        migrations.AddConstraint(
            model_name='invitation',
            constraint=models.CheckConstraint(condition=models.Q(('role__in', ['annotator', 'adjudicator', 'researcher', 'lead'])), name='invitation_role_known'),
        ),
        migrations.AddConstraint(
            model_name='guidelinesversion',
            constraint=models.UniqueConstraint(fields=('project', 'number'), name='guidelines_number'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(fields=['project', '-created_at'], name='event_of_project'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(fields=['project', 'kind', '-created_at'], name='event_of_kind'),
        ),
        migrations.AddConstraint(
            model_name='bulkchange',
            constraint=models.UniqueConstraint(fields=('project', 'number'), name='bulk_change_number'),
        ),
        migrations.AddIndex(
            model_name='repeatable',
            index=models.Index(fields=['created_at'], name='repeatable_by_age'),
        ),
        migrations.AddConstraint(
            model_name='repeatable',
            constraint=models.UniqueConstraint(fields=('account', 'key'), name='repeatable_one'),
        ),
        migrations.AddIndex(
            model_name='revision',
            index=models.Index(condition=models.Q(('author__isnull', False)), fields=['author'], name='revision_author'),
        ),
        migrations.AddConstraint(
            model_name='revision',
            constraint=models.UniqueConstraint(fields=('item', 'number'), name='revision_number'),
        ),
        migrations.AddConstraint(
            model_name='revision',
            constraint=models.CheckConstraint(condition=models.Q(('number__gte', 1)), name='revision_from_one'),
        ),
        migrations.AddConstraint(
            model_name='frozen',
            constraint=models.UniqueConstraint(fields=('item', 'digest'), name='frozen_once'),
        ),
        migrations.AddConstraint(
            model_name='diff',
            constraint=models.UniqueConstraint(fields=('revision', 'algorithm'), name='diff_algorithm'),
        ),
        migrations.AddIndex(
            model_name='slot',
            index=models.Index(condition=models.Q(('reserved_for__isnull', True), ('returned', False), ('state', 'open')), fields=['project', 'stage', 'priority', 'position'], name='slot_open'),
        ),
        migrations.AddIndex(
            model_name='slot',
            index=models.Index(condition=models.Q(('reserved_for__isnull', True), ('returned', True), ('state', 'open')), fields=['project', 'stage', 'priority', 'position'], name='slot_returned'),
        ),
        migrations.AddIndex(
            model_name='slot',
            index=models.Index(condition=models.Q(('begun', True), ('reserved_for__isnull', True), ('returned', False), ('state', 'open')), fields=['project', 'stage', 'priority', 'position'], name='slot_begun'),
        ),
        migrations.AddIndex(
            model_name='slot',
            index=models.Index(condition=models.Q(('reserved_for__isnull', False), ('state', 'open')), fields=['reserved_for', 'stage', 'priority', 'position'], name='slot_reserved'),
        ),
        migrations.AddIndex(
            model_name='slot',
            index=models.Index(condition=models.Q(('state', 'held')), fields=['project', 'stage', 'held_until'], name='slot_held'),
        ),
        migrations.AddIndex(
            model_name='slot',
            index=models.Index(condition=models.Q(('state', 'held')), fields=['member', 'stage'], name='slot_held_by'),
        ),
        migrations.AddIndex(
            model_name='slot',
            index=models.Index(condition=models.Q(('member__isnull', False)), fields=['member', 'item'], name='slot_of_member'),
        ),
        migrations.AddIndex(
            model_name='slot',
            index=models.Index(condition=models.Q(('reserved_for__isnull', False)), fields=['reserved_for'], name='slot_reserved_for'),
        ),
        migrations.AddConstraint(
            model_name='slot',
            constraint=models.UniqueConstraint(fields=('item', 'stage', 'number'), name='slot_number'),
        ),
        migrations.AddConstraint(
            model_name='slot',
            constraint=models.UniqueConstraint(condition=models.Q(('member__isnull', False)), fields=('item', 'stage', 'member'), name='slot_one_a_member'),
        ),
        migrations.AddConstraint(
            model_name='slot',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('member__isnull', False), ('state__in', ['held', 'filled'])), models.Q(('member__isnull', True), ('state__in', ['open', 'closed'])), _connector='OR'), name='slot_member_by_state'),
        ),
        migrations.AddConstraint(
            model_name='slot',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('held_until__isnull', False), ('state', 'held')), models.Q(models.Q(('state', 'held'), _negated=True), ('held_until__isnull', True)), _connector='OR'), name='slot_time_by_state'),
        ),
        migrations.AddConstraint(
            model_name='snapshot',
            constraint=models.UniqueConstraint(fields=('project', 'number'), name='snapshot_number'),
        ),
        migrations.AddConstraint(
            model_name='snapshot',
            constraint=models.UniqueConstraint(fields=('project', 'name'), name='snapshot_name'),
        ),
        migrations.AddConstraint(
            model_name='frozenin',
            constraint=models.UniqueConstraint(fields=('snapshot', 'item'), name='frozen_in_snapshot'),
        ),
        migrations.AddIndex(
            model_name='resolution',
            index=models.Index(condition=models.Q(('current', True)), fields=['value'], name='resolution_value'),
        ),
        migrations.AddConstraint(
            model_name='resolution',
            constraint=models.UniqueConstraint(condition=models.Q(('current', True)), fields=('item',), name='resolution_one_current'),
        ),
        migrations.AddConstraint(
            model_name='project',
            constraint=models.CheckConstraint(condition=models.Q(('overlap__gte', 1)), name='overlap_positive'),
        ),
        migrations.AddConstraint(
            model_name='project',
            constraint=models.CheckConstraint(condition=models.Q(('hold_minutes__gte', 1)), name='hold_positive'),
        ),
        migrations.AddConstraint(
            model_name='project',
            constraint=models.CheckConstraint(condition=models.Q(('share_percent__lte', 100)), name='share_percent'),
        ),
        migrations.AddConstraint(
            model_name='project',
            constraint=models.CheckConstraint(condition=models.Q(('practice_items', 0), ('practice_pass__lte', models.F('practice_items')), _connector='OR'), name='practice_can_be_passed'),
        ),
        migrations.AddIndex(
            model_name='label',
            index=models.Index(fields=['member', 'stage', '-created_at'], name='label_of_member'),
        ),
        migrations.AddIndex(
            model_name='label',
            index=models.Index(condition=models.Q(('current', True)), fields=['item', 'stage'], name='label_of_item'),
        ),
        migrations.AddConstraint(
            model_name='label',
            constraint=models.UniqueConstraint(condition=models.Q(('current', True)), fields=('member', 'item', 'stage'), name='label_one_current'),
        ),
        migrations.AddConstraint(
            model_name='label',
            constraint=models.UniqueConstraint(condition=models.Q(('counted', True), ('current', True)), fields=('slot',), name='label_fills_slot'),
        ),
        migrations.AddConstraint(
            model_name='label',
            constraint=models.CheckConstraint(condition=models.Q(('counted', False), ('slot__isnull', False), _connector='OR'), name='label_counted_has_slot'),
        ),
        migrations.AddConstraint(
            model_name='label',
            constraint=models.CheckConstraint(condition=models.Q(('seconds__isnull', True), ('seconds__gte', 0), _connector='OR'), name='label_seconds'),
        ),
        migrations.RunPython(install_triggers, migrations.RunPython.noop),
    ]
