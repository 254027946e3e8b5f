"""The home page with a person's projects, the front page of a project, and the help."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from annotation import tasktypes
from annotation.generation import perturbers
from annotation.items import taxonomy
from annotation.labelling import queue
from annotation.models import RIGHTS, Account, Membership, Role
from annotation.projects import access, overview

# What each right allows, as shown in the help.
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
    """The projects that a person may see, each with its progress and what to do next."""
    assert isinstance(request.user, Account)
    context = {
        "overviews": overview.list_overviews(request.user),
        "suspended": Membership.objects.suspended_of(request.user),
    }
    return render(request, "annotation/home.html", context)


@require_safe
@login_required
def project(request: HttpRequest, slug: str) -> HttpResponse:
    """The progress of the project, by category and, for its leads, by person."""
    member = access.member_for(request, slug, right="enter")
    people = Membership.objects.in_project(member.project).for_progress()
    context = {
        "project": member.project,
        "member": member,
        "progress": queue.load_progress(member),
        "abilities": overview.count_by_ability(member.project, role=member.role),
        "people": people if member.is_lead else None,
        "guidelines": member.project.guidelines.last(),
        "perturbs": perturbers.is_suitable(member.project),
        "sorts": bool(tasktypes.load_version(member.project.task_type).awaits),
    }
    return render(request, "annotation/project.html", context)


@require_safe
@login_required
def manual(request: HttpRequest) -> HttpResponse:
    """The help: terms, hotkeys and the rights of each role."""
    definitions = tasktypes.load_definitions().values()
    context = {
        "taxonomy": taxonomy.load(),
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
    """A live example of every component of the screens."""
    return render(request, "patterns.html")
