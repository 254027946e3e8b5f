"""Runs: listed, started, followed while they go on, steered."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation import access
from annotation.models import Membership
from annotation.views.painting import HtmxRequest
from judging import differing, runs, steering, tasks, watching
from judging.filters import OutcomeFilter
from judging.models import Run
from judging.providers import PROVIDERS

PAGE = 50
SAID = {
    "pause": "Run {run} is paused. Calls in flight are kept.",
    "resume": "Run {run} goes on.",
    "cancel": "Run {run} is cancelled. What was answered stays.",
    "retry": "The failed requests of run {run} are asked again.",
}


@require_GET
@login_required
def run_list(request: HttpRequest, slug: str) -> HttpResponse:
    """Every run of the project, newest first."""
    member = access.member_for(request, slug, right="results")
    context = {
        "project": member.project,
        "member": member,
        "runs": Run.objects.in_project(member.project)
        .shown(archived="archived" in request.GET)
        .for_list(),
    }
    return render(request, "judging/runs.html", context)


@require_GET
@never_cache
@login_required
def run(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """One run: how far it is and why no further, what it rests on, what it says of each item."""
    member = access.member_for(request, slug, right="results")
    return _paint(request, member, _found(member, number))


@require_POST
@login_required
def steer(request: HtmxRequest, slug: str, number: int, step: str) -> HttpResponse:
    """Pause, resume, cancel, or ask again what failed."""
    member = access.member_for(request, slug, right="run")
    found = _found(member, number)
    try:
        steering.STEPS[step](found, access.seated(member))
    except runs.Refused as problem:
        return _paint(request, member, found, problem=str(problem))
    tasks.ring(found.endpoint_id)
    messages.success(request, SAID[step].format(run=number))
    return redirect("run", slug=slug, number=number)


@require_http_methods(["GET", "POST"])
@login_required
def cancel(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """Ask once more before a run is ended for good."""
    if request.method == "POST":
        response: HttpResponse = steer(request, slug=slug, number=number, step="cancel")
        return response
    member = access.member_for(request, slug, right="run")
    found = _found(member, number)
    context = {
        "project": member.project,
        "member": member,
        "run": found,
        "progress": watching.progress(found),
    }
    return render(request, "judging/run_cancel.html", context)


def _found(member: Membership, number: int) -> Run:
    return get_object_or_404(Run.objects.in_project(member.project).for_page(), number=number)


def _paint(
    request: HtmxRequest, member: Membership, found: Run, *, problem: str = ""
) -> HttpResponse:
    context = {
        "project": member.project,
        "member": member,
        "run": found,
        "problem": problem,
        "watched": watching.watch(found),
    }
    if request.htmx:
        response = render(request, "judging/run.html#progress", context)
        if found.state in {Run.State.FINISHED, Run.State.CANCELLED}:
            # The list of outcomes below the progress is complete only now.
            response["HX-Refresh"] = "true"
        return response
    context |= _outcomes(request, found)
    return render(request, "judging/run.html", context, status=422 if problem else 200)


def _outcomes(request: HttpRequest, found: Run) -> dict[str, Any]:
    narrowed = OutcomeFilter(request.GET, queryset=found.outcomes.for_list())
    pages = Paginator(narrowed.qs, PAGE)
    return {
        "filters": narrowed.offer(found.outcomes.kinds()),
        "page": pages.get_page(request.GET.get("page")),
        "recorded": differing.of(found),
        "strategy": found.strategy.strategy(),
        "parameters": {
            **PROVIDERS[found.pinned["provider"]].default_parameters,
            **found.pinned["parameters"],
        },
    }
