"""The page for new runs: estimate, pilot, and start."""

import secrets
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from annotation.htmx import HtmxRequest
from annotation.items import taxonomy
from annotation.models import Membership
from annotation.projects import access
from judging import tasks
from judging.errors import Refused
from judging.models import Run
from judging.runs import choices, progress, selection, start
from judging.runs.forms import StartForm
from judging.runs.lifecycle import RunConfig
from judging.runs.start import NewRuns, PlannedRun
from judging.strategies import catalogue

# The maximum number of pilots that a page can follow; there are never more pilots in progress.
MOST_PILOTS = 40
# Fields of the form that are passed on as they are.
_PLAIN_FIELDS = (
    *("seed", "limit", "with_duplicates", "samples", "cap"),
    *("name", "tags", "note"),
)


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def new_run(request: HtmxRequest, slug: str) -> HttpResponse:
    """Show the form for new runs; estimate their costs and start pilots on request, then start the
    runs."""
    member = access.member_for(request, slug, right="run")
    form = _build_form(request, member)
    askings: list[PlannedRun] = []
    if request.method == "POST" and form.is_valid():
        try:
            wish = _build_request(member, form)
            if not {"foresee", "pilot"} & request.POST.keys():
                return _start_runs(request, member, wish)
            if "pilot" in request.POST:
                _start_pilots(member, wish)
            askings = start.estimate_runs(member.project, wish)
        except Refused as problem:
            form.add_error(None, str(problem))
    context = {
        "project": member.project,
        "member": member,
        "form": form,
        **_estimate_context(askings),
    }
    if request.htmx:
        return render(request, "judging/run_new.html#foreseen", context, status=_status(form))
    context["items"] = selection.select_resolutions(member.project, "values").count()
    return render(request, "judging/run_new.html", context, status=_status(form))


@require_GET
@never_cache
@login_required
def pilots(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the progress of pilots to the page that waits for them."""
    member = access.member_for(request, slug, right="run")
    numbers = [int(one) for one in request.GET.getlist("run") if one.isdecimal() and len(one) < 10]
    found = Run.objects.in_project(member.project).numbered(numbers[:MOST_PILOTS]).for_page()
    watched = [progress.load_status(run) for run in found.order_by("number")]
    context = {"project": member.project, "member": member, "pilots": watched}
    return render(request, "judging/_pilots.html", context)


def _status(form: StartForm) -> int:
    return 422 if form.errors else 200


def _estimate_context(askings: list[PlannedRun]) -> dict[str, Any]:
    """Build the template context of the estimates."""
    return {
        "askings": askings,
        "total": start.sum_costs(askings),
        "pilots": [progress.load_status(run) for one in askings for run in one.pilots],
        "wants_pilot": any(one.wants_pilot for one in askings),
    }


def _build_form(request: HttpRequest, member: Membership) -> StartForm:
    project = member.project
    given = _initial_data(request.GET)
    return StartForm(
        request.POST if request.method == "POST" else None,
        strategies=[one.version for one in catalogue.list_offered(project) if one.suits],
        endpoints=choices.list_endpoints(),
        explained=choices.list_explained_runs(project),
        abilities=choices.count_by_field(project, "ability"),
        categories=choices.count_by_field(project, "category"),
        taxonomy=taxonomy.load_taxonomy(project),
        is_lead=member.is_lead,
        initial={"seed": secrets.randbits(48), **given},
    )


def _initial_data(query: QueryDict) -> dict[str, Any]:
    """Return the initial data from the query string, so that links can preselect values."""
    several = ("strategy", "endpoint", "ability", "category", "axes")
    found: dict[str, Any] = {name: query.getlist(name) for name in several if name in query}
    return found | {name: query[name] for name in ("over", "keys", "samples") if name in query}


def _build_request(member: Membership, form: StartForm) -> NewRuns:
    said, project = form.cleaned_data, member.project
    items = choices.select_items(
        project, categories=said["category"], abilities=said["ability"], keys=said["keys"]
    )
    config = RunConfig(
        items=items,
        own=form.own(),
        over=said.get("over"),
        while_labelling=said.get("while_labelling", False),
        **{name: said[name] for name in _PLAIN_FIELDS},
    )
    return NewRuns(
        strategies=[catalogue.store_version(form.strategies[slug]) for slug in said["strategy"]],
        endpoints=list(said["endpoint"]),
        config=config,
        canary=said["canary"],
    )


def _start_pilots(member: Membership, wish: NewRuns) -> None:
    for run in start.start_pilots(member.project, wish, access.ensure_membership(member)):
        tasks.notify_workers(run.endpoint_id)


def _start_runs(request: HttpRequest, member: Membership, wish: NewRuns) -> HttpResponse:
    begun = start.start_runs(member.project, wish, access.ensure_membership(member))
    for run in begun:
        tasks.notify_workers(run.endpoint_id)
    if len(begun) == 1:
        return redirect("run", slug=member.project.slug, number=begun[0].number)
    numbers = f"{begun[0].number} to {begun[-1].number}"
    messages.success(request, f"{len(begun)} runs started: {numbers}.")
    return redirect("runs", slug=member.project.slug)
