"""Where a person begins: their projects, one project's front page, and what explains the rest."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from annotation import access, perturbing, queue, reports, tasktypes, taxonomy
from annotation.models import RIGHTS, Account, Membership, Role

# What each right allows, in words for people.
ALLOWS = {
    "enter": "open the project",
    "label": "vet items",
    "items": "see items with everybody's labels",
    "adjudicate": "decide what people disagree on",
    "results": "see runs and results",
    "run": "start and steer runs",
    "manage": "see how far everybody has come",
}


@require_safe
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The projects that a person may see, each with its progress and what to do next."""
    assert isinstance(request.user, Account)
    context = {
        "overviews": reports.overviews(request.user),
        "suspended": Membership.objects.suspended_of(request.user),
    }
    return render(request, "annotation/home.html", context)


@require_safe
@login_required
def project(request: HttpRequest, slug: str) -> HttpResponse:
    """How far the project has come, by category and, for its leads, by person."""
    member = access.member_for(request, slug, right="enter")
    people = Membership.objects.in_project(member.project).for_progress()
    context = {
        "project": member.project,
        "member": member,
        "progress": queue.progress(member),
        "abilities": reports.by_ability(member.project, role=member.role),
        "people": people if member.is_lead else None,
        "guidelines": member.project.guidelines.last(),
        "perturbs": perturbing.fits(member.project),
        "sorts": bool(tasktypes.of_version(member.project.task_type).awaits),
    }
    return render(request, "annotation/project.html", context)


@require_safe
@login_required
def manual(request: HttpRequest) -> HttpResponse:
    """What the words mean, which keys there are and who may do what."""
    definitions = tasktypes.definitions().values()
    context = {
        "taxonomy": taxonomy.load(),
        "tasks": [tasktypes.from_definition(definition) for definition in definitions],
        "roles": [
            (role, [words for right, words in ALLOWS.items() if role in RIGHTS[right]])
            for role in Role
        ],
    }
    return render(request, "annotation/help.html", context)


@require_safe
@login_required
def patterns(request: HttpRequest) -> HttpResponse:
    """Every component of the screens, live."""
    return render(request, "patterns.html")
