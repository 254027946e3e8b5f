"""The home page with a person's projects, the front page of a project, and the help."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from annotation import tasktypes
from annotation.db import project_counts
from annotation.generation import perturbers
from annotation.items import readiness, taxonomy
from annotation.labelling import qualification, queue
from annotation.models import (
    RIGHTS,
    WORK_LIKE_STAGES,
    Account,
    Item,
    Label,
    Membership,
    Project,
    Resolution,
    Role,
)
from annotation.projects import access
from annotation.reports import attention


@dataclass(frozen=True)
class ProjectOverview:
    """A project as a member sees it in a list. `total`, `resolved` and `awaiting` count items,
    without duplicates, qualification and control items. `mine` counts the member's own current
    labels.

    `role` is "" for a site admin without a membership.
    """

    project: Project
    role: str
    total: int
    resolved: int
    mine: int
    awaiting: int = 0

    @property
    def awaited(self) -> str:
        """What the waiting items are waiting for, in words; "" if none are waiting."""
        return readiness.describe_waiting(self.project, self.awaiting, self.role)

    @property
    def at_work(self) -> int:
        """The number of unresolved items that only need labels; never below 0."""
        return max(0, self.left - self.awaiting)

    @property
    def left(self) -> int:
        """The number of items without a final label."""
        return self.total - self.resolved

    @property
    def can_label(self) -> bool:
        """True if the member's role may label; False without a membership."""
        return bool(self.role) and Membership(role=self.role).can("label")


@dataclass(frozen=True)
class AbilityCount:
    """The categories of an ability that have items, with the sums over all of them."""

    ability: str
    categories: tuple[queue.CategoryCount, ...]

    @property
    def items(self) -> int:
        """The number of items in all categories, without duplicates."""
        return sum(row.items for row in self.categories)

    @property
    def resolved(self) -> int:
        """The number of resolved items in all categories."""
        return sum(row.resolved for row in self.categories)

    @property
    def share(self) -> float | None:
        """The share of items that are resolved, as a fraction of 1; None without items."""
        return self.resolved / self.items if self.items else None


def list_overviews(account: Account) -> list[ProjectOverview]:
    """List the projects that a person may see, by name. Takes five queries, and more for projects
    whose items can wait."""
    projects: list[Any] = list(Project.objects.visible_to(account).with_role_of(account))
    totals = Item.objects.live().originals().of_tests().per_project(projects)
    resolved = Resolution.objects.in_data_set().per_project(projects)
    mine = (
        Label.objects.current()
        .at_stages(WORK_LIKE_STAGES)
        .of_account(account)
        .per_project(projects)
    )
    wait = readiness.projects_with_waiting(projects)
    return [
        ProjectOverview(
            project=project,
            role=project.my_role or "",
            total=totals.get(project.pk, 0),
            resolved=_cached_resolved(project, project.my_role, resolved),
            mine=mine.get(project.pk, 0),
            awaiting=readiness.count_waiting(project, project.my_role or "")
            if project.pk in wait
            else 0,
        )
        for project in projects
    ]


def sort_by_ability(project: Project, counted: Sequence[queue.CategoryCount]) -> list[AbilityCount]:
    """Sort the counts of categories into abilities, in the order of the taxonomy.

    Categories that are no longer in the taxonomy are last, under the ability of their items. [] if
    no item has a category.
    """
    if not any(one.category for one in counted):
        return []
    order = taxonomy.load_taxonomy(project).places()
    counts: dict[str, list[queue.CategoryCount]] = {}
    for one in sorted(counted, key=lambda one: order.get(one.category, len(order))):
        counts.setdefault(one.ability, []).append(one)
    return [AbilityCount(ability, tuple(rows)) for ability, rows in counts.items()]


def _cached_resolved(project: Project, role: str | None, resolved: dict[int, int]) -> int:
    """Count the resolved items; `role` is None for a site admin without a membership."""
    return project_counts.get_delayed_count(
        project, "resolved", role or "", lambda: resolved.get(project.pk, 0)
    )


# The explanation of each right in the help.
RIGHT_TITLES = {
    "enter": "open the project",
    "label": "label items",
    "items": "see all items and labels",
    "adjudicate": "adjudicate",
    "results": "see runs and results",
    "run": "start and control runs",
    "manage": "see everybody's progress",
}


@require_safe
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """Show the projects that a person may see, each with its progress and what to do next."""
    assert isinstance(request.user, Account)
    context = {
        "overviews": list_overviews(request.user),
        "suspended": Membership.objects.suspended_of(request.user),
        "creates": access.may_create_projects(request.user),
        "archived": Project.objects.archived_of(request.user).exists(),
    }
    return render(request, "annotation/home.html", context)


@require_safe
@login_required
def project(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the progress of the project by category and, for its leads, by person."""
    member = access.member_for(request, slug, right="enter")
    people = _load_people(member) if member.is_lead else []
    counted = queue.count_by_category(member.project, member.role)
    context = {
        "project": member.project,
        "member": member,
        "progress": queue.load_progress(member, counted),
        "abilities": sort_by_ability(member.project, counted),
        "people": people,
        "tasks": attention.list_tasks(member, people, timezone.now()) if member.is_lead else [],
        "guidelines": member.project.guidelines.last(),
        **(_qualification(member) if member.can_label else {}),
        "perturbs": perturbers.is_suitable(member.project),
        "compares": tasktypes.load_version(member.project.task_type).pair is not None,
        "lacks_categories": _lacks_categories(member.project) if member.is_lead else False,
        "sorts": bool(tasktypes.load_version(member.project.task_type).awaits),
    }
    return render(request, "annotation/project.html", context)


def _qualification(member: Membership) -> dict[str, Any]:
    return {
        "qualifies": qualification.describe_due(member),
        "qualification_waits": qualification.waits_for_lead(member),
        "feedback": qualification.find_feedback(member),
    }


def _load_people(lead: Membership) -> list[Membership]:
    """The members with their numbers of labels, which in a large project may be some seconds old:
    counting a million labels takes two seconds."""
    found = Membership.objects.in_project(lead.project).for_progress()
    return project_counts.get_cached_count(lead.project, "people", lead.role, lambda: list(found))


def _lacks_categories(project: Project) -> bool:
    """True if items need a category, and the project has none yet."""
    task = tasktypes.load_version(project.task_type)
    return task.categories and not taxonomy.load_taxonomy(project).offered


@require_safe
@login_required
def manual(request: HttpRequest) -> HttpResponse:
    """Show the help: terms, hotkeys and the rights of each role."""
    definitions = tasktypes.load_definitions().values()
    assert isinstance(request.user, Account)
    projects = Project.objects.visible_to(request.user).select_related("taxonomy", "task_type")
    context = {
        "taxonomies": [
            (project, taxonomy.load_taxonomy(project).offered)
            for project in projects
            if tasktypes.load_version(project.task_type).categories
        ],
        "tasks": [tasktypes.parse_definition(definition) for definition in definitions],
        "roles": [
            (role, [words for right, words in RIGHT_TITLES.items() if role in RIGHTS[right]])
            for role in Role
        ],
    }
    return render(request, "annotation/help.html", context)


@require_safe
@login_required
def patterns(request: HttpRequest) -> HttpResponse:
    """Show a live example of every component of the screens."""
    return render(request, "patterns.html")
