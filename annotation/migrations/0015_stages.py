"""Stages have the words of annotation: label, qualification and control.

What nobody may change keeps the words from before: entries of the audit, and digests of snapshots.
"""

from typing import Any

from django.db import migrations, models
from django.db.models import Case, F, Value, When

STAGES = {"work": "label", "practice": "qualification", "probe": "control"}
CHOICES = [
    ("blind", "Blind"),
    ("label", "Label"),
    ("verify", "Verify"),
    ("qualification", "Qualification"),
    ("control", "Control"),
    ("baseline", "Baseline"),
    ("adjudicate", "Adjudicate"),
]


def rename(apps: Any, editor: Any) -> None:
    _update(apps, STAGES)


def rename_back(apps: Any, editor: Any) -> None:
    _update(apps, {now: before for before, now in STAGES.items()})


def _update(apps: Any, words: dict[str, str]) -> None:
    """One statement a table."""
    changed = Case(
        *(When(stage=old, then=Value(new)) for old, new in words.items()), default=F("stage")
    )
    for name in ("Slot", "Cursor", "Label"):
        apps.get_model("annotation", name).objects.filter(stage__in=words).update(stage=changed)


class Migration(migrations.Migration):
    dependencies = [("annotation", "0014_missing_answers")]

    operations = [
        # Which words a stage may be is no part of the column.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="project",
                    name="overlap",
                    field=models.PositiveSmallIntegerField(
                        default=1, help_text="Counted labels that each item gets at stage label."
                    ),
                ),
                migrations.AlterField(
                    model_name="slot",
                    name="stage",
                    field=models.CharField(choices=CHOICES, default="label", max_length=20),
                ),
                migrations.AlterField(
                    model_name="cursor",
                    name="stage",
                    field=models.CharField(choices=CHOICES, max_length=20),
                ),
                migrations.AlterField(
                    model_name="label",
                    name="stage",
                    field=models.CharField(choices=CHOICES, max_length=20),
                ),
            ]
        ),
        migrations.RunPython(rename, rename_back),
    ]
