from django.db import migrations

from annotation.db.migration_operations import DropKeyIndexesOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('annotation', '0011_partial_key_indexes'),
    ]

    operations = [
        DropKeyIndexesOnline(
            keys=[
                ('item', 'duplicate_of'),
                ('item', 'parent'),
                ('item', 'project'),
                ('revision', 'author'),
                ('revision', 'item'),
                ('slot', 'item'),
                ('slot', 'member'),
                ('slot', 'reserved_for'),
            ],
        ),
    ]
