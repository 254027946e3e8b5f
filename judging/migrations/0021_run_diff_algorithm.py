"""A run pins the version of the diff by which edit sizes and places are measured.

Runs whose judged texts all have a diff by "words-1" keep it: only such runs can have figures by
edit size or place, since the diffs of all judged texts were computed first.
"""

from typing import Any

from django.db import migrations, models
from django.db.models import Exists, OuterRef

FORMER_ALGORITHM = "words-1"


def keep_former(apps: Any, editor: Any) -> None:
    run, outcome = (apps.get_model("judging", name) for name in ("Run", "Outcome"))
    diff = apps.get_model("annotation", "Diff")
    former = diff.objects.filter(revision=OuterRef("revision"), algorithm=FORMER_ALGORITHM)
    outcomes = outcome.objects.filter(run=OuterRef("pk"))
    run.objects.filter(
        Exists(outcomes), ~Exists(outcomes.filter(~Exists(former)))
    ).update(diff_algorithm=FORMER_ALGORITHM)


class Migration(migrations.Migration):
    dependencies = [("annotation", "0020_pin_former_diffs"), ("judging", "0020_clearer_help_texts")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="diff_algorithm",
            field=models.CharField(
                default="words-2",
                help_text="The version of the diff by which edit sizes and places are measured.",
                max_length=20,
            ),
        ),
        migrations.RunPython(keep_former, migrations.RunPython.noop, elidable=True),
    ]
