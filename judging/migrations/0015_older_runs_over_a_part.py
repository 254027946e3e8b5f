"""Older runs over a part of the items are found. A migration of its own: outcomes are counted
without a lock on the table of runs, and what was cut short is done again."""

from typing import Any

from django.db import migrations
from django.db.models import Count

# What older runs could have been over is not on record: the run of the project with the most items
# stands in for it, and what is over less than this share of them is a part.
NEARLY_ALL = 0.9


def find_parts(apps: Any, editor: Any) -> None:
    Run, Outcome = apps.get_model("judging", "Run"), apps.get_model("judging", "Outcome")
    judging = Run.objects.filter(generates=False)
    # What checks explanations is over what another run found equal, and that is all of it.
    checks = judging.filter(kind="asked", occasion="", sources__isnull=False)
    runs = dict(judging.exclude(pk__in=checks.values("pk")).values_list("pk", "project"))
    counts = Outcome.objects.order_by().values_list("run").annotate(n=Count("item", distinct=True))
    sizes = {run: n for run, n in counts if run in runs}
    most: dict[int, int] = {}
    for run, n in sizes.items():
        most[runs[run]] = max(n, most.get(runs[run], 0))
    parts = [run for run, n in sizes.items() if n < NEARLY_ALL * most[runs[run]]]
    for start in range(0, len(parts), 500):
        Run.objects.filter(pk__in=parts[start : start + 500]).update(is_part=True)


class Migration(migrations.Migration):
    dependencies = [("judging", "0014_runs_over_a_part")]

    operations = [migrations.RunPython(find_parts, migrations.RunPython.noop)]
