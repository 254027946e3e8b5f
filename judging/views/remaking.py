"""Runs that are made of runs: cloned, moved, asked again as canaries, derived, parsed again."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from annotation import access
from annotation.models import Membership
from annotation.views.painting import HtmxRequest
from judging import tasks
from judging.errors import Refused
from judging.forms.remaking import AgainForm, CloneForm, DeriveForm, MoveForm, ReparseForm
from judging.models import Run
from judging.preparing import catalogue, offering
from judging.results import figures
from judging.running import canaries, deriving, reparsing, runs
from judging.running.reparsing import Preview
from judging.views.runs import found, paint


@require_http_methods(["GET", "POST"])
@login_required
def clone(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Ask the same once more, over the same items as they are now or as they were."""
    member = access.member_for(request, slug, right="run")
    run = found(member, number)
    others = offering.other_endpoints(run)
    form = CloneForm(_sent(request), is_lead=member.is_lead, same=run.endpoint, others=others)
    if request.method == "POST" and form.is_valid():
        try:
            copy = runs.clone(run, access.seated(member), **form.cleaned_data)
        except Refused as problem:
            form.add_error(None, str(problem))
        else:
            return _begun(request, copy, f"Run {copy.number} is started as a clone of {number}.")
    return _asked(request, member, "judging/run_clone.html", form, run=run)


@require_http_methods(["GET", "POST"])
@login_required
def move(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Ask a run elsewhere of which nothing was answered."""
    member = access.member_for(request, slug, right="run")
    run = found(member, number)
    form = MoveForm(_sent(request), others=offering.other_endpoints(run))
    if request.method == "POST" and form.is_valid():
        endpoint = form.cleaned_data["endpoint"]
        try:
            runs.move_to(run, endpoint, access.seated(member))
        except Refused as problem:
            form.add_error(None, str(problem))
        else:
            return _begun(request, run, f"Run {number} is asked at {endpoint.name} from now on.")
    return _asked(request, member, "judging/run_move.html", form, run=run)


@require_POST
@login_required
def again(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """Ask a canary once more."""
    member = access.member_for(request, slug, right="run")
    run = found(member, number)
    form = AgainForm(request.POST, is_lead=member.is_lead)
    try:
        allowed = form.is_valid() and form.cleaned_data["while_labelling"]
        asked = canaries.ask_again(run, access.seated(member), while_labelling=allowed)
    except Refused as problem:
        return paint(request, member, run, problem=str(problem))
    return _begun(request, asked, f"The canary is asked again, as run {asked.number}.")


@require_POST
@login_required
def ask_without(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """Ask the same without the parameter that the evaluator refused."""
    member = access.member_for(request, slug, right="run")
    run = found(member, number)
    try:
        copy = runs.ask_without(run, access.seated(member))
    except Refused as problem:
        return paint(request, member, run, problem=str(problem))
    return _begun(request, copy, f"Run {copy.number} asks the same without what was refused.")


@require_http_methods(["GET", "POST"])
@login_required
def derive(request: HttpRequest, slug: str) -> HttpResponse:
    """Count the votes of chosen runs, or average their scores, without asking anybody."""
    member = access.member_for(request, slug, right="run")
    chosen = _chosen(request, member)
    folds = [one.version for one in catalogue.offered(member.project) if one.strategy.fold]
    form = DeriveForm(_sent(request), folds=folds)
    if request.method == "POST" and form.is_valid():
        try:
            made = deriving.derive(
                member.project,
                strategy=catalogue.stored(form.version()),
                sources=chosen,
                member=access.seated(member),
            )
        except Refused as problem:
            form.add_error(None, str(problem))
        else:
            return redirect("run", slug=slug, number=made.number)
    return _asked(request, member, "judging/run_derive.html", form, chosen=chosen)


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def reparse(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """What another parser would change, and the switch to it."""
    member = access.member_for(request, slug, right="run")
    run = found(member, number)
    form = ReparseForm(_sent(request), parsers=reparsing.parsers(run), now=run.asked().parser)
    preview: Preview | None = None
    if request.method == "POST" and form.is_valid():
        try:
            if "apply" in request.POST:
                reparsing.apply(run, access.seated(member), form.cleaned_data["parser"])
                return _begun(request, run, f"Run {number} is read by {run.parser} now.")
            preview = reparsing.preview(run, form.cleaned_data["parser"])
        except Refused as problem:
            form.add_error(None, str(problem))
    counts = preview.counts.most_common() if preview else []
    return _asked(
        request, member, "judging/run_reparse.html", form, run=run, preview=preview, counts=counts
    )


def _sent(request: HttpRequest) -> QueryDict | None:
    """What was sent, be it nothing; None where nobody sent anything yet."""
    return request.POST if request.method == "POST" else None


def _chosen(request: HttpRequest, member: Membership) -> list[Run]:
    """The runs that the page names; none without a name, since all would hardly be meant."""
    query = request.POST if request.method == "POST" else request.GET
    if "run" not in query:
        return []
    try:
        return figures.chosen(member.project, query)
    except figures.UnknownRun as problem:
        raise Http404(str(problem)) from problem


def _begun(request: HttpRequest, run: Run, said: str) -> HttpResponse:
    tasks.ring(run.endpoint_id)
    messages.success(request, said)
    return redirect("run", slug=run.project.slug, number=run.number)


def _asked(
    request: HttpRequest, member: Membership, template: str, form: Any, **more: Any
) -> HttpResponse:
    context = {"project": member.project, "member": member, "form": form, **more}
    return render(request, template, context, status=422 if form.errors else 200)
