"""Views to import the replies of generator runs as items, or as the missing texts of items."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from annotation import errors
from annotation.models import Membership, Project
from annotation.projects import access
from judging import tasks
from judging.errors import Refused
from judging.generation import bring_in as generation_bring_in
from judging.generation import choices, regenerate, rows
from judging.generation.forms import BringForm
from judging.models import Run
from judging.runs.choices import get_run_or_404


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def bring_in(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Show the possible target projects for a run's replies, and the imports so far; a POST
    requests an import."""
    member = access.member_for(request, slug, right="manage")
    run = get_run_or_404(member, number)
    problem = choices.explain_unavailable(run)
    offered = [] if problem else choices.list_targets(run, member.account)
    asked = request.method == "POST"
    form = _build_form(run, offered, request.POST if asked else None, request.GET.get("into", ""))
    if asked and form.is_valid() and _enqueue(member, run, form):
        return redirect("run-bring-in", slug, number)
    context = {
        "project": member.project,
        "member": member,
        "run": run,
        "problem": problem,
        "offered": offered,
        "form": form,
        **_bring_in_context(run, offered),
    }
    if request.headers.get("HX-Request"):
        return render(request, "judging/bring_in.html#jobs", context)
    context |= _preview_context(run, offered, str(form["into"].value() or ""))
    return render(request, "judging/bring_in.html", context, status=422 if asked else 200)


@require_POST
@login_required
def retry_generation(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Start a run that asks again for the items that got no text from a generator run."""
    member = access.member_for(request, slug, right="run")
    asked = get_run_or_404(member, number)
    try:
        run = regenerate.retry_missing(asked, access.ensure_membership(member))
    except Refused as problem:
        messages.error(request, str(problem))
        return redirect("run", slug, number)
    tasks.notify_workers(run.endpoint_id)
    messages.success(
        request, f"Run {run.number} retries the items for which run {number} generated nothing."
    )
    return redirect("run", slug, run.number)


def _build_form(run: Run, offered: list[Project], data: Any, into: str) -> BringForm:
    """The form; `into` is the project that the address chooses, "" for the default."""
    known = into in {one.slug for one in offered}
    return BringForm(
        data,
        targets=[(one.slug, one.name) for one in offered],
        flags=choices.FLAGS,
        may_accept=rows.can_skip_review(run),
        initial={
            "into": into if known else choices.default_target(run, offered),
            "share": choices.default_share(run),
            "aside": choices.DEFAULT_FLAGS,
        },
    )


def _enqueue(member: Membership, run: Run, form: BringForm) -> bool:
    """Request an import job. If it is refused, return False and show the reason in the form."""
    try:
        wish = choices.build_request(run, member.account, form.cleaned_data["into"], form.vetting())
        generation_bring_in.enqueue(wish, access.ensure_membership(member))
    except (Refused, errors.Refused) as problem:
        form.add_error(None, str(problem))
    return not form.errors


def _bring_in_context(run: Run, offered: list[Project]) -> dict[str, Any]:
    found = list(generation_bring_in.list_jobs(run))
    return {
        "jobs": found,
        "busy": any(job.finished_at is None for job in found),
        "open": {one.slug for one in offered},
        "in_place": rows.fills_own_items(run, run.project),
        "holds": rows.build_key_infix(run),
    }


def _preview_context(run: Run, offered: list[Project], into: str) -> dict[str, Any]:
    """The template context with a preview of the first rows for the chosen project; without a
    choice there is none."""
    chosen = next((one for one in offered if one.slug == into), None)
    return {"chosen": chosen, "preview": choices.build_preview(run, chosen) if chosen else []}
