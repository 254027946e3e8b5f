"""Creates projects, and stores versions of their task types and taxonomies."""

from typing import Any

from django.db.models import Max

from annotation import tasktypes
from annotation.db import transactions
from annotation.items import taxonomy
from annotation.models import Event, Project, TaskTypeVersion, TaxonomyVersion


def load_task_type_version(slug: str) -> TaskTypeVersion:
    """Return the stored version of a task type file as it is now. Raises `KeyError` for an unknown
    slug."""
    return store_task_type(tasktypes.load_definitions()[slug], tasktypes.load_sources()[slug])


def store_task_type(definition: dict[str, Any], source: str) -> TaskTypeVersion:
    """Return the stored version of a definition; a new definition is stored first. `source` is its
    TOML."""
    slug, digest = definition["slug"], tasktypes.digest_definition(definition)
    with transactions.transact():
        known = TaskTypeVersion.objects.filter(slug=slug)
        version = known.filter(digest=digest).first()
        if version is None:
            number = (known.aggregate(last=Max("number"))["last"] or 0) + 1
            version = TaskTypeVersion.objects.create(
                slug=slug, number=number, digest=digest, definition=definition, source=source
            )
    return version


def store_taxonomy(definition: dict[str, Any]) -> TaxonomyVersion:
    """Return the stored version of a definition; a new definition is stored first."""
    slug, digest = definition["slug"], taxonomy.digest_definition(definition)
    with transactions.transact():
        known = TaxonomyVersion.objects.filter(slug=slug)
        version = known.filter(digest=digest).first()
        if version is None:
            number = (known.aggregate(last=Max("number"))["last"] or 0) + 1
            version = TaxonomyVersion.objects.create(
                slug=slug, number=number, digest=digest, definition=definition
            )
    return version


def create_project(slug: str, *, task_type: str = "perturbation-vetting", **values: Any) -> Project:
    """Create a project. By default its name is derived from the slug, and its overlap is the number
    of raters that the task type recommends.

    Raises `KeyError` for an unknown task type.
    """
    version = load_task_type_version(task_type)
    values.setdefault("taxonomy", store_taxonomy(taxonomy.shipped_definition()))
    values.setdefault("name", slug.replace("-", " ").capitalize())
    values.setdefault("overlap", tasktypes.load_version(version).raters)
    return Project.objects.create(slug=slug, task_type=version, **values)


def create_audited_project(slug: str, **values: Any) -> Project:
    """Create a project like `create_project`, and record it in the audit log."""
    with transactions.transact():
        project = create_project(slug, **values)
        new = {"slug": slug, "task type": str(project.task_type)}
        Event.record("project", slug, project_id=project.pk, member_id=None, old={}, new=new)
    return project
