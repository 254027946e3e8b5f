"""The first label with an answer to a single change pins the diff on which it was given.

Such answers name changes by their number. All that exist were given on diffs by the algorithm
"words-1", so the stored diffs of their revisions by that algorithm are pinned.
"""

from typing import Any

from django.db import migrations

FORMER_ALGORITHM = "words-1"


def pin(apps: Any, editor: Any) -> None:
    label, diff, version = (
        apps.get_model("annotation", name) for name in ("Label", "Diff", "TaskTypeVersion")
    )
    for pk, definition in version.objects.values_list("pk", "definition"):
        for field in definition.get("fields", ()):
            if field.get("kind") != "claim_check":
                continue
            answered = label.objects.filter(task_type=pk, answers__has_key=field["name"])
            diff.objects.filter(
                algorithm=FORMER_ALGORITHM, revision__in=answered.values("revision")
            ).update(pinned=True)


class Migration(migrations.Migration):
    dependencies = [("annotation", "0019_diff_pinned")]

    operations = [migrations.RunPython(pin, migrations.RunPython.noop, elidable=True)]
