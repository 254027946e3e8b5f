from typing import Any

from django.db import migrations


def write_small(apps: Any, schema_editor: Any) -> None:
    """Write the addresses of accounts in small letters, as new ones are."""
    accounts = apps.get_model("annotation", "Account").objects
    # SQLite knows small letters of ASCII only.
    for pk, email in accounts.values_list("pk", "email"):
        if email != email.lower():
            accounts.filter(pk=pk).update(email=email.lower())


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0002_task_type_of_imported_final_labels"),
    ]

    operations = [
        migrations.AlterModelManagers(name="account", managers=[]),
        migrations.RunPython(write_small, migrations.RunPython.noop),
    ]
