from django.db import migrations, models

from annotation.db.migration_operations import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('annotation', '0028_order_of_items'),
    ]

    operations = [
        AddIndexOnline(
            model_name='slot',
            index=models.Index(condition=models.Q(('begun', True), ('reserved_for__isnull', True), ('returned', False), ('state', 'open')), fields=['project', 'stage', 'priority', 'position'], name='slot_begun'),
        ),
    ]
