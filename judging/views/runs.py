"""Runs: listed, followed while they go on, steered."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation import access
from annotation.models import Membership
from annotation.views.painting import HtmxRequest
from judging import pins, tasks
from judging.engine import watching
from judging.forms.budget import CapForm
from judging.making import choosing, suggesting
from judging.models import Run
from judging.preparing import offering
from judging.recorded import differing
from judging.results.filters import OutcomeFilter, RunFilter
from judging.running import canaries, reparsing, runs, steering, tallies

PAGE = 50
SAID = {
    "pause": "Run {run} is paused. Calls in flight are stopped, and asked again when it goes on.",
    "resume": "Run {run} goes on.",
    "cancel": "Run {run} is cancelled. Calls in flight are stopped; what was answered stays.",
    "retry": "The failed requests of run {run} are asked again.",
    "mended": "Run {run} is updated from another run's retry.",
    "archive": "Run {run} is archived: lists and figures leave it out.",
    "unarchive": "Run {run} is back in lists and figures.",
}


@require_GET
@login_required
def run_list(request: HttpRequest, slug: str) -> HttpResponse:
    """Every run of the project, newest first, narrowed down by what it is."""
    member = access.member_for(request, slug, right="results")
    every = Run.objects.in_project(member.project)
    narrowed = RunFilter(request.GET, queryset=every)
    pages = Paginator(narrowed.qs.for_list(), PAGE)
    page = pages.get_page(request.GET.get("page"))
    tallies.with_items(page, timezone.now())
    context = {
        "project": member.project,
        "member": member,
        "filters": narrowed.offer(every.values_list("strategy__slug", "endpoint__name").distinct()),
        "page": page,
        "any_runs": every.exists(),
    }
    return render(request, "judging/runs.html", context)


@require_GET
@never_cache
@login_required
def run(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """One run: how far it is and why no further, what it rests on, what it says of each item."""
    member = access.member_for(request, slug, right="results")
    return paint(request, member, found(member, number))


@require_POST
@login_required
def steer(request: HtmxRequest, slug: str, number: int, step: str) -> HttpResponse:
    """Pause, cancel, ask again what failed, put away or take back."""
    member = access.member_for(request, slug, right="run")
    steered = found(member, number)
    take = partial(steering.STEPS[step], steered, access.seated(member))
    return _taken(request, member, steered, step, take)


@require_POST
@login_required
def resume(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """Go on with a paused run, under a higher cap if one is entered."""
    member = access.member_for(request, slug, right="run")
    paused = found(member, number)
    form = CapForm(request.POST)
    if not form.is_valid():
        return paint(request, member, paused, problem=f"New cap: {form.errors['cap'][0]}")
    take = partial(runs.resume, paused, access.seated(member), cap=form.cleaned_data["cap"])
    return _taken(request, member, paused, "resume", take)


def _taken(
    request: HtmxRequest, member: Membership, run: Run, step: str, take: Callable[[], object]
) -> HttpResponse:
    try:
        number = take()
    except runs.Refused as problem:
        return paint(request, member, run, problem=str(problem))
    tasks.ring(run.endpoint_id)
    said = "mended" if step == "retry" and not number else step
    messages.success(request, SAID[said].format(run=run.number))
    return redirect("run", slug=member.project.slug, number=run.number)


@require_http_methods(["GET", "POST"])
@login_required
def cancel(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """Ask once more before a run is ended for good."""
    if request.method == "POST":
        response: HttpResponse = steer(request, slug=slug, number=number, step="cancel")
        return response
    member = access.member_for(request, slug, right="run")
    asked = found(member, number)
    context = {
        "project": member.project,
        "member": member,
        "run": asked,
        "progress": watching.progress(asked),
    }
    return render(request, "judging/run_cancel.html", context)


def found(member: Membership, number: int) -> Run:
    return get_object_or_404(Run.objects.in_project(member.project).for_page(), number=number)


def paint(request: HtmxRequest, member: Membership, run: Run, *, problem: str = "") -> HttpResponse:
    """The page of a run, of which a poll gets the progress alone."""
    context = {
        "project": member.project,
        "member": member,
        "run": run,
        "problem": problem,
        "watched": watching.watch(run),
        "unasked": runs.UNASKED.get(run.kind, ""),
    }
    if request.htmx:
        response = render(request, "judging/run.html#progress", context)
        if run.state in {Run.State.FINISHED, Run.State.CANCELLED}:
            # The list of outcomes below the progress is complete only now.
            response["HX-Refresh"] = "true"
        return response
    context |= _outcomes(request, run) | _related(run)
    return render(request, "judging/run.html", context, status=422 if problem else 200)


def _outcomes(request: HttpRequest, run: Run) -> dict[str, Any]:
    narrowed = OutcomeFilter(request.GET, queryset=run.outcomes.for_list())
    pages = Paginator(narrowed.qs, PAGE)
    return {
        "filters": narrowed.offer(run.outcomes.kinds()),
        "page": pages.get_page(request.GET.get("page")),
        "recorded": differing.of(run),
        "strategy": run.strategy.strategy(),
        "own": pins.own(run.pinned),
    }


def _related(run: Run) -> dict[str, Any]:
    """What it follows from, what follows from it, and what can be made of it now."""
    return {
        "sources": run.sources.for_results(),
        "derived": run.derived.for_results(),
        "explains": offering.explained(run.project).filter(pk=run.pk).exists(),
        "readable": reparsing.is_readable(run),
        "comes_in": run.generates and not choosing.why_not(run),
        "suggests": suggesting.is_for(run) and not suggesting.why_not(run),
        **(_drift(run) if run.occasion and not run.generates else {}),
    }


def _drift(run: Run) -> dict[str, Any]:
    # Altair takes a second to import; no other page should wait for it.
    from charts import drift

    canary = canaries.of(run)
    points = [
        drift.Asking(
            run=f"Run {one.run.number}",
            asked=one.run.created_at,
            share=one.share.value,
            low=one.share.low,
            high=one.share.high,
            n=one.n,
        )
        for one in canary.drifts
        if one.share.value is not None
    ]
    return {"canary": canary, "drift": drift.drifts(points) if points else None}
