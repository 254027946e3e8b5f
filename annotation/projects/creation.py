"""Creates projects, and stores versions of their task types and taxonomies."""

from datetime import datetime
from itertools import chain, count
from typing import Any, TypeVar

from django.db import IntegrityError
from django.db.models import Max
from django.utils.text import slugify

from annotation import tasktypes
from annotation.db import transactions
from annotation.errors import FieldError
from annotation.items import taxonomy
from annotation.labelling import work_order
from annotation.models import (
    Account,
    Event,
    Membership,
    Project,
    Role,
    TaskTypeVersion,
    TaxonomyVersion,
)

Version = TypeVar("Version", TaskTypeVersion, TaxonomyVersion)

_SLUG_LENGTH = 80
NAME_TAKEN = "There is a project of this name. Choose another one."


def load_task_type_version(slug: str) -> TaskTypeVersion:
    """Return the stored version of a task type file as it is now. Raises `KeyError` for an unknown
    slug."""
    return store_task_type(tasktypes.load_definitions()[slug], tasktypes.load_sources()[slug])


def store_task_type(definition: dict[str, Any], source: str) -> TaskTypeVersion:
    """Return the stored version of a definition; a new definition is stored first. `source` is its
    TOML."""
    digest = tasktypes.digest_definition(definition)
    new = {"slug": definition["slug"], "digest": digest, "definition": definition}
    return _store(TaskTypeVersion(**new, source=source))


def store_taxonomy(definition: dict[str, Any]) -> TaxonomyVersion:
    """Return the stored version of a definition; a new definition is stored first."""
    digest = taxonomy.digest_definition(definition)
    new = {"slug": definition["slug"], "digest": digest, "definition": definition}
    return _store(TaxonomyVersion(**new))


def _store(new: Version) -> Version:
    """Return the stored version with the slug and digest of this one, which is stored first under
    the next number if there is none. Others may store theirs at the same moment."""
    known = type(new).objects.filter(slug=new.slug)
    with transactions.transact():
        while (stored := known.filter(digest=new.digest).first()) is None:
            new.number = (known.aggregate(last=Max("number"))["last"] or 0) + 1
            type(new).objects.bulk_create([new], ignore_conflicts=True)
    return stored


def create_project(
    slug: str,
    *,
    task_type: str = "perturbation-vetting",
    version: TaskTypeVersion | None = None,
    **values: Any,
) -> Project:
    """Create a project with a task type, or with a stored version of one. By default its name is
    derived from the slug, its categories are the shipped ones, and its overlap is the number of
    raters that the task type recommends.

    Raises `KeyError` for an unknown task type.
    """
    version = version or load_task_type_version(task_type)
    values.setdefault("taxonomy", store_taxonomy(taxonomy.shipped_definition()))
    values.setdefault("name", slug.replace("-", " ").capitalize())
    values.setdefault("overlap", tasktypes.load_version(version).raters)
    return Project.objects.create(slug=slug, task_type=version, **values)


def free_slug(name: str) -> str:
    """Return a slug for a project of this name that no project has."""
    base = slugify(name)[: _SLUG_LENGTH - 4].strip("-_") or "project"
    taken = set(Project.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    numbered = (f"{base}-{number}" for number in count(2))
    return next(slug for slug in chain([base], numbered) if slug not in taken)


def create_led_project(account: Account, name: str, **values: Any) -> Project:
    """Create a project of this name with the account as its lead, and record it in the audit log.

    Raises `FieldError` if the account sees a project of this name, or if somebody else creates one
    at the same moment.
    """
    try:
        with transactions.transact():
            # A form that is sent twice waits here, and then finds the project of the first time.
            Account.objects.select_for_update(no_key=True).get(pk=account.pk)
            if Project.objects.visible_to(account).filter(name__iexact=name).exists():
                raise FieldError(NAME_TAKEN, "name")
            settings = work_order.choose_for_new_project() | values
            project = create_audited_project(free_slug(name), name=name, **settings)
            add_lead(project, account)
    except IntegrityError as error:
        raise FieldError("Somebody else is creating a project right now. Try again.") from error
    return project


def add_lead(project: Project, account: Account, *, by_command: bool = False) -> None:
    """Make the account a lead of a project without members, and record it in the audit log, by
    default as its own act."""
    member = Membership.objects.create(
        project=project, account=account, alias=account.username, role=Role.LEAD
    )
    by: dict[str, Any] = {"project_id": project.pk, "member_id": None if by_command else member.pk}
    Event.record("member", member.alias, **by, old={}, new={"role": Role.LEAD.value})


def archive_project(member: Membership, now: datetime) -> None:
    """Take a project out of all lists and pages; nothing is deleted, and `restore_project` brings
    it back."""
    _set_archived(member, now)


def restore_project(member: Membership) -> None:
    """Bring an archived project back."""
    _set_archived(member, None)


def _set_archived(member: Membership, at: datetime | None) -> None:
    with transactions.transact():
        project = Project.objects.select_for_update(no_key=True).get(pk=member.project_id)
        if (project.archived_at is None) == (at is None):
            return
        project.archived_at = at
        project.save(update_fields=["archived_at"])
        Event.record(
            "archived" if at else "restored",
            project.slug,
            project_id=project.pk,
            member_id=member.pk,
        )


def create_audited_project(slug: str, **values: Any) -> Project:
    """Create a project like `create_project`, and record it in the audit log."""
    with transactions.transact():
        project = create_project(slug, **values)
        new = {"slug": slug, "task type": str(project.task_type)}
        Event.record("project", slug, project_id=project.pk, member_id=None, old={}, new=new)
    return project
