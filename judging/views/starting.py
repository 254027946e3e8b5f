"""New runs: what would be asked, what it costs by a pilot, and the start."""

import secrets
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from annotation import access
from annotation.models import Membership
from annotation.views.painting import HtmxRequest
from judging import tasks
from judging.engine import watching
from judging.errors import Refused
from judging.forms.starting import StartForm
from judging.models import Run
from judging.preparing import catalogue, offering, selecting
from judging.preparing.offering import Chosen
from judging.running import starting
from judging.running.starting import Asking, Wish

# A page follows so many pilots at once; nobody has more on their way.
FOLLOWED = 40


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def new_run(request: HtmxRequest, slug: str) -> HttpResponse:
    """What to ask of whom: said beforehand and measured by a pilot on request, then started."""
    member = access.member_for(request, slug, right="run")
    form = _form(request, member)
    askings: list[Asking] = []
    if request.method == "POST" and form.is_valid():
        try:
            wish = _wish(member, form)
            if not {"foresee", "pilot"} & request.POST.keys():
                return _started(request, member, wish)
            if "pilot" in request.POST:
                _pilot(member, wish)
            askings = starting.foresee(member.project, wish)
        except Refused as problem:
            form.add_error(None, str(problem))
    context = {"project": member.project, "member": member, "form": form, **_told(askings)}
    if request.htmx:
        return render(request, "judging/run_new.html#foreseen", context, status=_status(form))
    context["items"] = selecting.items(member.project, "values").count()
    return render(request, "judging/run_new.html", context, status=_status(form))


@require_GET
@never_cache
@login_required
def pilots(request: HttpRequest, slug: str) -> HttpResponse:
    """How far the pilots of a page are, for the page that waits for them."""
    member = access.member_for(request, slug, right="run")
    numbers = [int(one) for one in request.GET.getlist("run") if one.isdecimal() and len(one) < 10]
    found = Run.objects.in_project(member.project).numbered(numbers[:FOLLOWED]).for_page()
    watched = [watching.watch(run) for run in found.order_by("number")]
    context = {"project": member.project, "member": member, "pilots": watched}
    return render(request, "judging/_pilots.html", context)


def _status(form: StartForm) -> int:
    return 422 if form.errors else 200


def _told(askings: list[Asking]) -> dict[str, Any]:
    """What the page says of the runs before they start."""
    return {
        "askings": askings,
        "total": starting.total(askings),
        "pilots": [watching.watch(run) for one in askings for run in one.pilots],
        "wants_pilot": any(one.wants_pilot for one in askings),
    }


def _form(request: HttpRequest, member: Membership) -> StartForm:
    project = member.project
    given = _given(request.GET)
    return StartForm(
        request.POST if request.method == "POST" else None,
        strategies=[listed.version for listed in catalogue.offered(project)],
        endpoints=offering.endpoints(),
        explained=offering.explained(project),
        abilities=offering.groups(project, "ability"),
        categories=offering.groups(project, "category"),
        is_lead=member.is_lead,
        initial={"seed": secrets.randbits(48), **given},
    )


def _given(query: QueryDict) -> dict[str, Any]:
    """What a link asks for, so that a page can lead here with something chosen."""
    several = ("strategy", "endpoint", "ability", "category", "axes")
    found: dict[str, Any] = {name: query.getlist(name) for name in several if name in query}
    return found | {name: query[name] for name in ("over", "keys", "samples") if name in query}


def _wish(member: Membership, form: StartForm) -> Wish:
    said, project = form.cleaned_data, member.project
    chosen = Chosen(tuple(said["category"]), tuple(said["ability"]), said["keys"])
    return Wish(
        strategies=[catalogue.stored(form.strategies[slug]) for slug in said["strategy"]],
        endpoints=list(said["endpoint"]),
        items=offering.items_of(project, chosen),
        own=form.own(),
        over=said.get("over"),
        while_labelling=said.get("while_labelling", False),
        **{
            name: said[name]
            for name in ("seed", "limit", "with_duplicates", "samples", "canary", "cap")
        },
    )


def _pilot(member: Membership, wish: Wish) -> None:
    for run in starting.pilot(member.project, wish, access.seated(member)):
        tasks.ring(run.endpoint_id)


def _started(request: HttpRequest, member: Membership, wish: Wish) -> HttpResponse:
    begun = starting.start(member.project, wish, access.seated(member))
    for run in begun:
        tasks.ring(run.endpoint_id)
    if len(begun) == 1:
        return redirect("run", slug=member.project.slug, number=begun[0].number)
    numbers = f"{begun[0].number} to {begun[-1].number}"
    messages.success(request, f"{len(begun)} runs are started, {numbers}.")
    return redirect("runs", slug=member.project.slug)
