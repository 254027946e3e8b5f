"""Pages that start runs from runs (clone, move, canary, combine) or parse their replies again."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from annotation.htmx import HtmxRequest
from annotation.models import Membership
from annotation.projects import access
from judging import tasks
from judging.errors import Refused
from judging.models import Run
from judging.results import figures
from judging.runs import canaries, choices, derived, lifecycle, reparse
from judging.runs.forms.derived_runs import (
    CloneForm,
    DeriveForm,
    MoveForm,
    ReparseForm,
    RepeatRunForm,
)
from judging.runs.reparse import ReparsePreview
from judging.runs.views.runs import get_run_or_404, render_run
from judging.strategies import catalogue


@require_http_methods(["GET", "POST"])
@login_required
def clone_run(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Start the same run again, over the current or the pinned revisions of its items."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    others = choices.list_other_endpoints(run)
    form = CloneForm(
        _submitted_data(request), is_lead=member.is_lead, same=run.endpoint, others=others
    )
    if request.method == "POST" and form.is_valid():
        try:
            copy = lifecycle.clone_run(run, access.ensure_membership(member), **form.cleaned_data)
        except Refused as problem:
            form.add_error(None, str(problem))
        else:
            return _redirect_to_run(
                request, copy, f"Run {copy.number} started as a clone of run {number}."
            )
    return _render_form(request, member, "judging/run_clone.html", form, run=run)


@require_http_methods(["GET", "POST"])
@login_required
def move_run(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Move a run without answers to another endpoint."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    form = MoveForm(_submitted_data(request), others=choices.list_other_endpoints(run))
    if request.method == "POST" and form.is_valid():
        endpoint = form.cleaned_data["endpoint"]
        try:
            lifecycle.move_to_endpoint(run, endpoint, access.ensure_membership(member))
        except Refused as problem:
            form.add_error(None, str(problem))
        else:
            return _redirect_to_run(request, run, f"Run {number} now uses {endpoint.name}.")
    return _render_form(request, member, "judging/run_move.html", form, run=run)


@require_POST
@login_required
def repeat_canary(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """Repeat a canary."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    form = RepeatRunForm(request.POST, is_lead=member.is_lead)
    try:
        allowed = form.is_valid() and form.cleaned_data["while_labelling"]
        asked = canaries.repeat_canary(
            run, access.ensure_membership(member), while_labelling=allowed
        )
    except Refused as problem:
        return render_run(request, member, run, problem=str(problem))
    return _redirect_to_run(request, asked, f"The canary is repeated as run {asked.number}.")


@require_POST
@login_required
def ask_without(request: HtmxRequest, slug: str, number: int) -> HttpResponse:
    """Start the same run without the parameter that the evaluator refused."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    try:
        copy = lifecycle.restart_without_parameter(run, access.ensure_membership(member))
    except Refused as problem:
        return render_run(request, member, run, problem=str(problem))
    return _redirect_to_run(
        request, copy, f"Run {copy.number} started without the refused parameter."
    )


@require_http_methods(["GET", "POST"])
@login_required
def derive_run(request: HttpRequest, slug: str) -> HttpResponse:
    """Combine the chosen runs by majority or by mean, without calling an evaluator."""
    member = access.member_for(request, slug, right="run")
    chosen = _named_runs(request, member)
    folds = [one.version for one in catalogue.list_offered(member.project) if one.strategy.fold]
    form = DeriveForm(_submitted_data(request), folds=folds)
    if request.method == "POST" and form.is_valid():
        try:
            made = derived.derive_run(
                member.project,
                strategy=catalogue.store_version(form.version()),
                sources=chosen,
                member=access.ensure_membership(member),
            )
        except Refused as problem:
            form.add_error(None, str(problem))
        else:
            return redirect("run", slug=slug, number=made.number)
    return _render_form(request, member, "judging/run_derive.html", form, chosen=chosen)


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def reparse_run(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Preview what another parser would change, and switch to it."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    form = ReparseForm(
        _submitted_data(request),
        parsers=reparse.list_parsers(run),
        now=run.pinned_strategy().parser,
    )
    preview: ReparsePreview | None = None
    if request.method == "POST" and form.is_valid():
        try:
            if "apply" in request.POST:
                reparse.switch_parser(
                    run, access.ensure_membership(member), form.cleaned_data["parser"]
                )
                return _redirect_to_run(request, run, f"Run {number} now uses parser {run.parser}.")
            preview = reparse.build_preview(run, form.cleaned_data["parser"])
        except Refused as problem:
            form.add_error(None, str(problem))
    counts = preview.counts.most_common() if preview else []
    return _render_form(
        request, member, "judging/run_reparse.html", form, run=run, preview=preview, counts=counts
    )


def _submitted_data(request: HttpRequest) -> QueryDict | None:
    """The submitted data, which may be empty; None for a GET."""
    return request.POST if request.method == "POST" else None


def _named_runs(request: HttpRequest, member: Membership) -> list[Run]:
    """The runs named in the request; none if no run is named, since all are hardly meant."""
    query = request.POST if request.method == "POST" else request.GET
    if "run" not in query:
        return []
    try:
        return figures.select_project_runs(member.project, query)
    except figures.UnknownRun as problem:
        raise Http404(str(problem)) from problem


def _redirect_to_run(request: HttpRequest, run: Run, said: str) -> HttpResponse:
    tasks.notify_workers(run.endpoint_id)
    messages.success(request, said)
    return redirect("run", slug=run.project.slug, number=run.number)


def _render_form(
    request: HttpRequest, member: Membership, template: str, form: Any, **more: Any
) -> HttpResponse:
    context = {"project": member.project, "member": member, "form": form, **more}
    return render(request, template, context, status=422 if form.errors else 200)
