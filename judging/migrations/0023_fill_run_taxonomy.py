"""Until now every project had the categories of `taxonomy.toml`."""

from typing import Any

from django.db import migrations
from django.db.models import OuterRef, Subquery


def fill(apps: Any, editor: Any) -> None:
    run, project = apps.get_model("judging", "Run"), apps.get_model("annotation", "Project")
    of_project = project.objects.filter(pk=OuterRef("project")).values("taxonomy_id")
    run.objects.update(taxonomy_id=Subquery(of_project[:1]))


class Migration(migrations.Migration):
    dependencies = [("judging", "0022_run_taxonomy")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop, elidable=True)]
