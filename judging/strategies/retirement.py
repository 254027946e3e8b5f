"""Retire, delete and restore a project's own strategies.

Strategies that runs use stay readable. A strategy that no run uses can be deleted with all of its
versions; its name stays reserved until it is restored.
"""

from collections.abc import Callable

from django.utils import timezone

from annotation.db import transactions
from annotation.errors import Refused
from annotation.models import Event, Membership, Project
from judging.models import Run, StrategyVersion
from judging.strategies.models import StrategyVersionQuerySet


def retire(project: Project, slug: str, member: Membership) -> None:
    """Retire a strategy: new runs can no longer use it, but it stays readable."""
    with transactions.transact():
        found = _get_own_versions(project, slug).filter(retired_at=None)
        _set_state(found, "retired", project, slug, member, retired_at=timezone.now())


def delete(project: Project, slug: str, member: Membership) -> None:
    """Delete a strategy. Raises `Refused` if runs use it."""
    with transactions.transact():
        # Starting a run locks the project too, so no run can start meanwhile.
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=project.pk)
        found = _get_own_versions(project, slug)
        used = Run.objects.filter(strategy__in=found).count()
        if used:
            rest = "1 run depends" if used == 1 else f"{used} runs depend"
            raise Refused(f"{rest} on {slug}, so it cannot be deleted. Retire it.")
        _set_state(found, "deleted", project, slug, member, deleted_at=timezone.now())


def restore(project: Project, slug: str, member: Membership) -> None:
    """Restore a strategy that was retired or deleted."""
    with transactions.transact():
        found = StrategyVersion.objects.filter(project=project, slug=slug)
        if not found.exists():
            raise Refused(f"{slug} does not belong to this project.")
        away = found.exclude(retired_at=None, deleted_at=None)
        _set_state(away, "taken back", project, slug, member, retired_at=None, deleted_at=None)


# Actions on a strategy, by their name in pages and the API.
STEPS: dict[str, Callable[[Project, str, Membership], None]] = {
    "retire": retire,
    "delete": delete,
    "back": restore,
}


def list_open_steps(newest: StrategyVersion, runs: int) -> list[str]:
    """The actions that are possible for a strategy that this many runs use."""
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
