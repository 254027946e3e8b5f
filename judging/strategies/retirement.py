"""A project's own strategies that it no longer wants: retired, deleted, taken back.

What runs rest on stays readable; what none rests on is put away with all of its versions, and its
name with it, until somebody takes it back.
"""

from collections.abc import Callable

from django.utils import timezone

from annotation.db import transactions
from annotation.errors import Refused
from annotation.models import Event, Membership, Project
from judging.models import Run, StrategyVersion
from judging.strategies.models import StrategyVersionQuerySet


def retire(project: Project, slug: str, member: Membership) -> None:
    """Offer a strategy to new runs no more; it stays where it can be read."""
    with transactions.transact():
        found = _get_own_versions(project, slug).filter(retired_at=None)
        _set_state(found, "retired", project, slug, member, retired_at=timezone.now())


def delete(project: Project, slug: str, member: Membership) -> None:
    """Put a strategy away. Raises `Refused` if runs rest on it."""
    with transactions.transact():
        # Whoever starts a run holds the project, too.
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=project.pk)
        found = _get_own_versions(project, slug)
        used = Run.objects.filter(strategy__in=found).count()
        if used:
            rest = "1 run depends" if used == 1 else f"{used} runs depend"
            raise Refused(f"{rest} on {slug}, so it cannot be deleted. Retire it.")
        _set_state(found, "deleted", project, slug, member, deleted_at=timezone.now())


def restore(project: Project, slug: str, member: Membership) -> None:
    """Offer a strategy again that was retired or deleted."""
    with transactions.transact():
        found = StrategyVersion.objects.filter(project=project, slug=slug)
        if not found.exists():
            raise Refused(f"{slug} does not belong to this project.")
        away = found.exclude(retired_at=None, deleted_at=None)
        _set_state(away, "taken back", project, slug, member, retired_at=None, deleted_at=None)


# What a person may do to a strategy, by the name that pages and the API have for it.
STEPS: dict[str, Callable[[Project, str, Membership], None]] = {
    "retire": retire,
    "delete": delete,
    "back": restore,
}


def list_open_steps(newest: StrategyVersion, runs: int) -> list[str]:
    """The steps that a strategy on which so many runs rest can take now."""
    if newest.project_id is None:
        return []
    return ["back" if newest.retired_at else "retire", *([] if runs else ["delete"])]


def _get_own_versions(project: Project, slug: str) -> StrategyVersionQuerySet:
    found = StrategyVersion.objects.own(project).filter(slug=slug)
    if not found.exists():
        raise Refused(f"{slug} does not belong to this project.")
    return found


def _set_state(
    found: StrategyVersionQuerySet,
    what: str,
    project: Project,
    slug: str,
    member: Membership,
    **when: object,
) -> None:
    if found.update(**when):
        Event.record(f"strategy {what}", slug, project_id=project.pk, member_id=member.pk)
