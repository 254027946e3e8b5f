"""Projects have their categories in versions; until now each had those of `taxonomy.toml`."""

from typing import Any

from django.db import migrations

from annotation.items import taxonomy


def fill(apps: Any, editor: Any) -> None:
    version, project = (
        apps.get_model("annotation", name) for name in ("TaxonomyVersion", "Project")
    )
    if project.objects.exists():
        definition = taxonomy.shipped_definition()
        digest = taxonomy.shipped_digest()
        version.objects.create(
            slug=definition["slug"], number=1, digest=digest, definition=definition
        )
        project.objects.update(taxonomy_id=digest)


class Migration(migrations.Migration):
    dependencies = [("annotation", "0023_taxonomy_versions")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop, elidable=True)]
