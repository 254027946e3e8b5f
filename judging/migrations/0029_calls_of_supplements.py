from django.db import migrations, models

from annotation.db.migration_operations import WidenUniqueOnline

COLUMNS = ("outcome", "role", "order", "step", "axis", "sample")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("judging", "0028_supplements")]

    operations = [
        WidenUniqueOnline(
            "call",
            models.UniqueConstraint(fields=(*COLUMNS, "supplement"), name="call_one_of_supplement"),
            replaces=models.UniqueConstraint(fields=COLUMNS, name="call_one"),
        ),
    ]
