"""Pages that list, show and control runs."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django.views.decorators.vary import vary_on_headers

from annotation.htmx import HtmxRequest
from annotation.items import taxonomy
from annotation.models import Membership
from annotation.projects import access
from judging import tasks
from judging.errors import Refused
from judging.evaluators import providers
from judging.evaluators.models import API_CHOICES, JSON_CHOICES
from judging.generation import ability_suggestions
from judging.generation import choices as generation_choices
from judging.models import Run
from judging.results.filters import OutcomeFilter, RunFilter
from judging.runs import (
    archiving,
    canaries,
    choices,
    counts,
    descriptions,
    lifecycle,
    progress,
    reparse,
    run_config,
    spending,
    supplements,
)
from judging.runs.choices import get_run_or_404
from judging.runs.forms import CapForm, DescriptionForm
from judging.runs.recorded import differences
from judging.strategies import draws

ROWS_PER_PAGE = 50
STEP_MESSAGES = {
    "pause": "Run {run} is paused. Calls in flight are stopped and sent again when you resume.",
    "resume": "Run {run} resumed.",
    "cancel run": "Run {run} is cancelled. Calls in flight are stopped; stored replies stay.",
    "cancel retry": "The retry of run {run} is cancelled. New replies count; the other requests "
    "are back to failed.",
    "cancel supplement": "The supplement of run {run} is cancelled. Its usable replies count; all "
    "other items keep their original result.",
    "retry": "Failed requests of run {run} are sent again.",
    "mended": "Run {run} is updated from another run's retry.",
    "archive": "Run {run} is archived. It no longer appears in lists and results.",
    "unarchive": "Run {run} is unarchived. Lists and figures show it again.",
}


@require_GET
@vary_on_headers("HX-Request")  # or the browser's Back could show only the rows
@login_required
def run_list(request: HtmxRequest, slug: str) -> HttpResponse:
    """List the runs of the project, newest first, with filters; for htmx only the rows, as long as
    one of them is not finished."""
    member = access.member_for(request, slug, right="results")
    every = Run.objects.in_project(member.project)
    narrowed = RunFilter(request.GET, queryset=every)
    pages = Paginator(narrowed.qs.for_list(), ROWS_PER_PAGE)
    page = pages.get_page(request.GET.get("page"))
    counts.with_item_counts(page, timezone.now())
    context = {
        "project": member.project,
        "member": member,
        "filters": narrowed.offer(
            every.values_list("strategy__slug", "endpoint__name").distinct(), every.list_tags()
        ),
        "page": page,
        "any_runs": every.exists(),
        "busy": any(run.state in (Run.State.PLANNING, Run.State.RUNNING) for run in page),
        "chosen": {
            int(one) for one in request.GET.getlist("run") if one.isdecimal() and len(one) < 10
        },
    }
    return render(request, "judging/runs.html" + "#rows" * bool(request.htmx), context)


@require_GET
@never_cache
@login_required
def run(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """Show a run: its progress, the reason if it stopped, what it pins, and its outcome for each
    item."""
    member = access.member_for(request, slug, right="results")
    return render_run(request, member, get_run_or_404(member, number))


@require_POST
@login_required
def change_run(request: HtmxRequest, slug: str, number: int, step: str) -> HttpResponse:
    """Pause, cancel, retry, archive or unarchive a run."""
    member = access.member_for(request, slug, right="run")
    steered = get_run_or_404(member, number)
    take = partial(archiving.STEPS[step], steered, access.ensure_membership(member))
    return _apply_step(request, member, steered, step, take)


@require_POST
@login_required
def describe_run(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """Change the name, the tags and the note of a run."""
    member = access.member_for(request, slug, right="run")
    described = get_run_or_404(member, number)
    form = DescriptionForm(request.POST)
    if form.is_valid():
        for name in form.list_overtaken(described):
            now = form.load(described)[name]
            form.add_error(
                name,
                f"Somebody has changed this meanwhile, to “{now}”. Nothing was saved. Copy what "
                "you wrote, reload the page, and change it again.",
            )
    if form.is_valid():
        try:
            descriptions.describe_run(described, access.ensure_membership(member), **form.changes())
        except Refused as problem:
            form.add_error("name", str(problem))
        else:
            messages.success(request, f"Name, tags and note of run {number} saved.")
            return redirect("run", slug=slug, number=number)
    return render_run(request, member, described, description=form)


@require_POST
@login_required
def resume_run(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """Resume a paused run, with a higher cap if one is entered."""
    member = access.member_for(request, slug, right="run")
    paused = get_run_or_404(member, number)
    form = CapForm(request.POST)
    if not form.is_valid():
        return render_run(request, member, paused, problem=f"New cap: {form.errors['cap'][0]}")
    take = partial(
        lifecycle.resume, paused, access.ensure_membership(member), cap=form.cleaned_data["cap"]
    )
    return _apply_step(request, member, paused, "resume", take)


def _apply_step(
    request: HtmxRequest, member: Membership, run: Run, step: str, take: Callable[[], object]
) -> HttpResponse:
    said = f"cancel {supplements.get_cancellable(run)}" if step == "cancel" else step
    try:
        number = take()
    except Refused as problem:
        return render_run(request, member, run, problem=str(problem))
    tasks.notify_workers(run.endpoint_id)
    if step == "retry" and not number:
        said = "mended"
    messages.success(request, STEP_MESSAGES[said].format(run=run.number))
    return redirect("run", slug=member.project.slug, number=run.number)


@require_http_methods(["GET", "POST"])
@login_required
def cancel_run(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """Ask for confirmation, then cancel the run, or only its supplement or retry while one asks."""
    if request.method == "POST":
        response: HttpResponse = change_run(request, slug=slug, number=number, step="cancel")
        return response
    member = access.member_for(request, slug, right="run")
    asked = get_run_or_404(member, number)
    context = {
        "project": member.project,
        "member": member,
        "run": asked,
        "progress": progress.count_progress(asked),
        "cancelled": supplements.get_cancellable(asked),
    }
    return render(request, "judging/run_cancel.html", context)


def render_run(
    request: HtmxRequest,
    member: Membership,
    run: Run,
    *,
    problem: str = "",
    description: DescriptionForm | None = None,
) -> HttpResponse:
    """Render the page of a run; a poll by htmx gets only the progress. `description` is a form with
    errors."""
    context = {
        "project": member.project,
        "member": member,
        "run": run,
        "problem": problem,
        "watched": progress.load_status(run),
        "budget_now": spending.describe_budget(run),
        "unasked": lifecycle.UNASKED_REASONS.get(run.kind, ""),
    }
    if request.htmx:
        response = render(request, "judging/run.html#progress", context)
        if run.state in {Run.State.FINISHED, Run.State.CANCELLED}:
            # Only now is the list of outcomes below the progress complete.
            response["HX-Refresh"] = "true"
        return response
    context |= _outcomes_context(request, run) | _related_context(run)
    context["description"] = description or DescriptionForm(initial=DescriptionForm.load(run))
    status = 422 if problem or description else 200
    return render(request, "judging/run.html", context, status=status)


def _outcomes_context(request: HttpRequest, run: Run) -> dict[str, Any]:
    narrowed = OutcomeFilter(request.GET, queryset=run.outcomes.for_list())
    pages = Paginator(narrowed.qs, ROWS_PER_PAGE)
    strategy, own = run.strategy.strategy(), run_config.load_overrides(run.pinned)
    return {
        "filters": narrowed.offer(run.outcomes.kinds(), taxonomy.load_taxonomy(run.project)),
        "page": pages.get_page(request.GET.get("page")),
        "recorded": differences.compare_verdicts(run),
        "strategy": strategy,
        "own": own,
        "along": run_config.describe_axes(strategy, own.axes) if run.kind == Run.Kind.ASKED else "",
        "drawn": _describe_draws(run),
        "form": _describe_form(run),
    }


def _describe_draws(run: Run) -> list[str]:
    """How many items got each option of what the run draws, as lines."""
    strategy = run.pinned_strategy()
    if not strategy.draws:
        return []
    found = run.outcomes.order_by().values_list("drawn", flat=True)
    return list(draws.describe_counts(strategy, list(found)))


def _describe_form(run: Run) -> dict[str, str]:
    """How the requests of a run ask, beside their parameters: by which protocol and kind of call,
    and for answers in which form."""
    mode, schema = run.pinned.get("json_mode", ""), run.pinned_strategy().schema
    answers = JSON_CHOICES[mode].lower().replace("json", "JSON")
    if mode and schema is None:
        answers = f"as text: the endpoint's {answers} needs a schema, which this strategy lacks"
    api = run.pinned.get("api", "chat")
    provider = providers.get_title(run.pinned["provider"])
    return {
        "provider": provider,
        "api": API_CHOICES.get(api, api).partition(" ")[0],
        "answers": answers,
    }


def _related_context(run: Run) -> dict[str, Any]:
    """The template context with the source runs and derived runs of a run, and the possible actions
    on its results."""
    return {
        "sources": run.sources.for_results(),
        "supplements": supplements.list_supplements(run),
        "derived": run.derived.for_results(),
        "explains": choices.list_explained_runs(run.project).filter(pk=run.pk).exists(),
        "readable": reparse.can_reparse(run),
        "comes_in": run.generates and not generation_choices.explain_unavailable(run),
        "suggests": ability_suggestions.suggests_abilities(run)
        and not ability_suggestions.explain_unavailable(run),
        **(_drift_context(run) if run.occasion and not run.generates else {}),
    }


def _drift_context(run: Run) -> dict[str, Any]:
    # Altair takes a second to import; no other page should wait for it.
    from charts import drift

    canary = canaries.load_canary(run)
    points = [
        drift.CanaryRun(
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
    return {"canary": canary, "drift": drift.draw_drift(points) if points else None}
