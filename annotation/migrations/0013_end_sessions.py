from django.db import migrations


def end(apps, schema_editor):
    """Their keys stood in these tables as browsers have them; from now on a digest does."""
    apps.get_model('sessions', 'Session').objects.all().delete()
    apps.get_model('usersessions', 'UserSession').objects.all().delete()


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0012_keys_without_indexes'),
        ('sessions', '0001_initial'),
        ('usersessions', '0001_initial'),
    ]

    operations = [
        migrations.RunPython(end, migrations.RunPython.noop, elidable=True),
    ]
