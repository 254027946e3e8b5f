"""The page for new runs: estimate, pilot, and start."""

import hashlib
import json
import secrets
from collections import Counter
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from annotation import tasktypes
from annotation.htmx import HtmxRequest
from annotation.items import taxonomy
from annotation.models import Item, Membership, Project
from annotation.projects import access
from judging import tasks
from judging.errors import Refused
from judging.models import Endpoint, Run
from judging.runs import choices, descriptions, estimate, progress, selection, start
from judging.runs.forms import StartForm
from judging.runs.lifecycle import RunConfig
from judging.runs.start import NewRuns, PlannedRun
from judging.strategies import catalogue, frames

# The maximum number of pilots that a page can follow; there are never more pilots in progress.
MOST_PILOTS = 40
# Fields of the form that are passed on as they are.
_PLAIN_FIELDS = ("seed", "limit", "with_duplicates", "samples", "cap", *descriptions.FIELDS)
# Fields that do not change what a run asks, so that an estimate still holds when they change.
NOT_ESTIMATED = frozenset(
    {"csrfmiddlewaretoken", "estimated", "drawn", "estimate", "pilot", *descriptions.FIELDS}
    | {f"initial-{name}" for name in descriptions.FIELDS}
)


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def new_run(request: HtmxRequest, slug: str) -> HttpResponse:
    """Show the form for new runs; estimate their costs and start pilots on request, then start the
    runs."""
    member = access.member_for(request, slug, right="run")
    form = _build_form(request, member)
    planned: list[PlannedRun] = []
    stale = ""
    if request.method == "POST" and form.is_valid():
        try:
            wish = _build_request(member, form)
            if not {"estimate", "pilot"} & request.POST.keys():
                stale = _explain_stale(member.project, wish, request.POST)
                if not stale:
                    return _start_runs(request, member, wish)
            if "pilot" in request.POST:
                _start_pilots(member, wish)
            planned = start.estimate_runs(member.project, wish)
        except Refused as problem:
            form.add_error(None, str(problem))
    context = {
        "project": member.project,
        "member": member,
        "form": form,
        "stale": stale,
        "estimated": _digest(request.POST),
        "not_estimated": " ".join(sorted(NOT_ESTIMATED)),
        **_estimate_context(member.project, planned),
    }
    status = 422 if form.errors else 409 if stale else 200
    if request.htmx:
        return render(request, "judging/run_new.html#estimate", context, status=status)
    context["items"] = selection.count_items(member.project, "values")
    context["any_items"] = Item.objects.in_project(member.project).live().exists()
    return render(request, "judging/run_new.html", context, status=status)


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


def _digest(sent: QueryDict) -> str:
    """A digest of the fields that an estimate depends on. The page sends it with the estimate that
    it shows, so that no run starts with another form than the one that was estimated."""
    # A browser ends the lines of a form that it sends with CR LF, a script with LF.
    fields = sorted(
        (name, sorted(value.replace("\r\n", "\n") for value in sent.getlist(name)))
        for name in sent.keys() - NOT_ESTIMATED
    )
    # An empty field is like a field that was not sent, as browsers leave out unticked boxes.
    said = [(name, values) for name, values in fields if any(values)]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _explain_stale(project: Project, wish: NewRuns, sent: QueryDict) -> str:
    """Say what has changed since the estimate that the page shows: the "form" or the "items"; "" if
    nothing has, or there is no estimate."""
    if sent.get("estimated", "") not in ("", _digest(sent)):
        return "form"
    wish = replace(wish, drawn=sent.getlist("drawn"))
    return "items" if start.has_other_items(project, wish) else ""


def _estimate_context(project: Project, planned: list[PlannedRun]) -> dict[str, Any]:
    """Build the template context of the estimates."""
    estimates = [one.estimate for one in planned]
    total = estimate.sum_prices(estimates)
    refusals = list(dict.fromkeys(one.refusal for one in planned if one.refusal))
    return {
        "refusals": refusals,
        "short_of_cap": [
            (one.title, short.message)
            for one in planned
            for short in one.shortages
            if short.limit == "cap"
        ],
        # The budget must do for all runs together.
        "short_of_budget": estimate.compare_budget(
            project,
            total,
            has_token_limit=all(one.has_token_limit for one in estimates if one.to_ask),
        ),
        "planned": planned,
        "sending": [one for one in planned if one.estimate.to_ask and not one.endpoint.is_offline],
        "to_ask": sum(one.to_ask for one in estimates),
        "total": total,
        "unpriced": sum(one.price is None for one in estimates),
        "unpriced_endpoints": sorted(
            {
                one.endpoint.name
                for one in planned
                if one.estimate.cost is None and one.estimate.to_ask
            }
        ),
        "untimed_endpoints": sorted(
            {
                one.endpoint.name
                for one in planned
                if not (one.estimate.time or one.endpoint.is_offline) and one.estimate.to_ask
            }
        ),
        "shared_times": _sum_times(planned),
        "busy_endpoints": _count_runs_under_way(planned),
        "pilots": [progress.load_status(run) for one in planned for run in one.pilots],
        "pilot_calls": (
            0 if refusals else sum(one.estimate.pilot_calls for one in planned if one.wants_pilot)
        ),
    }


def _sum_times(planned: list[PlannedRun]) -> list[tuple[Endpoint, float]]:
    """The seconds of all runs together at each endpoint that several runs share: it takes no more
    calls at the same time for them than for one."""
    found: dict[str, tuple[Endpoint, list[float]]] = {}
    for one in planned:
        if one.estimate.time:
            _, seconds = found.setdefault(one.endpoint.name, (one.endpoint, []))
            seconds.append(one.estimate.time.seconds)
    return [(endpoint, sum(each)) for endpoint, each in found.values() if len(each) > 1]


def _count_runs_under_way(planned: list[PlannedRun]) -> dict[str, int]:
    """For each busy endpoint that would be asked, by its name, the runs of any project that it is
    asked for now."""
    sending = [one for one in planned if one.estimate.to_ask and not one.endpoint.is_offline]
    asked = {one.endpoint.pk for one in sending}
    there = Run.objects.going_on().filter(endpoint__in=asked, kind=Run.Kind.ASKED)
    return dict(Counter(there.order_by("endpoint__name").values_list("endpoint__name", flat=True)))


def _build_form(request: HttpRequest, member: Membership) -> StartForm:
    project = member.project
    task = tasktypes.load_task_type(project)
    offered = [one for one in catalogue.list_offered(project) if one.suits]
    recommended = catalogue.recommend(task, offered)
    if task.awaits and not Item.objects.in_project(project).lacking(task.awaits).exists():
        # All items have the text that they waited for, so nothing has to be generated.
        recommended = []
    needs = {frames.get_item_needs(one.strategy) for one in recommended}
    seed = choices.find_last_seed(project)
    given = _initial_data(request.GET)
    return StartForm(
        request.POST if request.method == "POST" else None,
        strategies=[one.version for one in offered],
        endpoints=choices.list_endpoints(),
        explained=choices.list_explained_runs(project),
        comparable=choices.list_comparable_runs(project),
        abilities=choices.count_by_field(project, "ability"),
        categories=choices.count_by_field(project, "category"),
        taxonomy=taxonomy.load_taxonomy(project),
        is_lead=member.is_lead,
        recommended={
            one.version.slug: catalogue.RECOMMENDED[one.version.slug] for one in recommended
        },
        usable={one: selection.count_items(project, one) for one in needs},
        generating=bool(task.awaits) or any(one.runs for one in offered if one.strategy.generates),
        initial={"seed": secrets.randbits(48) if seed is None else seed, **given},
    )


_SINGLE = ("over", "same_as", "language", "keys", "samples", "seed", "limit", "draws")


def _initial_data(query: QueryDict) -> dict[str, Any]:
    """Return the initial data from the query string, so that links can preselect values."""
    several = ("strategy", "endpoint", "ability", "category", "axes")
    found: dict[str, Any] = {name: query.getlist(name) for name in several if name in query}
    return found | {name: query[name] for name in _SINGLE if name in query}


def _build_request(member: Membership, form: StartForm) -> NewRuns:
    said, project = form.cleaned_data, member.project
    items = choices.select_items(
        project, categories=said["category"], abilities=said["ability"], keys=said["keys"]
    )
    config = RunConfig(
        items=items,
        own=form.own(),
        over=said.get("over"),
        same_as=said.get("same_as"),
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
