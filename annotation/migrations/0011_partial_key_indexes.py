from django.db import migrations, models

from annotation.db.migration_operations import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('annotation', '0010_cancelled_jobs'),
    ]

    operations = [
        AddIndexOnline(
            model_name='item',
            index=models.Index(condition=models.Q(('parent__isnull', False)), fields=['parent'], name='item_parent'),
        ),
        AddIndexOnline(
            model_name='item',
            index=models.Index(condition=models.Q(('duplicate_of__isnull', False)), fields=['duplicate_of'], name='item_duplicate_of'),
        ),
        AddIndexOnline(
            model_name='revision',
            index=models.Index(condition=models.Q(('author__isnull', False)), fields=['author'], name='revision_author'),
        ),
        AddIndexOnline(
            model_name='slot',
            index=models.Index(condition=models.Q(('reserved_for__isnull', False)), fields=['reserved_for'], name='slot_reserved_for'),
        ),
    ]
