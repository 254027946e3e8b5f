from typing import Any

from django.db import migrations
from django.db.models.functions import Lower


def write_small(apps: Any, schema_editor: Any) -> None:
    """Write the addresses of accounts in small letters, as new ones are."""
    accounts = apps.get_model("annotation", "Account").objects
    for account in accounts.exclude(email=Lower("email")):
        accounts.filter(pk=account.pk).update(email=account.email.lower())


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0002_task_type_of_imported_final_labels"),
    ]

    operations = [
        migrations.AlterModelManagers(name="account", managers=[]),
        migrations.RunPython(write_small, migrations.RunPython.noop),
    ]
