import django.db.models.deletion
from django.db import migrations, models

from annotation.migrating import DropKeyIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('annotation', '0011_partial_key_indexes'),
    ]

    operations = [
        DropKeyIndexOnline(
            model_name='item',
            name='duplicate_of',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='duplicates', to='annotation.item'),
        ),
        DropKeyIndexOnline(
            model_name='item',
            name='parent',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='children', to='annotation.item'),
        ),
        DropKeyIndexOnline(
            model_name='item',
            name='project',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='items', to='annotation.project'),
        ),
        DropKeyIndexOnline(
            model_name='revision',
            name='author',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, to='annotation.membership'),
        ),
        DropKeyIndexOnline(
            model_name='revision',
            name='item',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='revisions', to='annotation.item'),
        ),
        DropKeyIndexOnline(
            model_name='slot',
            name='item',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='slots', to='annotation.item'),
        ),
        DropKeyIndexOnline(
            model_name='slot',
            name='member',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='slots', to='annotation.membership'),
        ),
        DropKeyIndexOnline(
            model_name='slot',
            name='reserved_for',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reserved_slots', to='annotation.membership'),
        ),
    ]
