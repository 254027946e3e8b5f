"""What generator runs made: brought in as items, or as texts that items wait for."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from annotation import access, errors
from annotation.models import Membership, Project
from judging import tasks
from judging.errors import Refused
from judging.forms.making import BringForm
from judging.making import again, bringing, choosing, rows
from judging.models import Run
from judging.views.runs import found


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def bring_in(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Where the replies of a run can come in, and the times that they did; a post asks for it."""
    member = access.member_for(request, slug, right="manage")
    run = found(member, number)
    problem = choosing.why_not(run)
    offered = [] if problem else choosing.targets(run, member.account)
    asked = request.method == "POST"
    form = _form(run, offered, request.POST if asked else None)
    if asked and form.is_valid() and _wanted(member, run, form):
        return redirect("run-bring-in", slug, number)
    context = {
        "project": member.project,
        "member": member,
        "run": run,
        "problem": problem,
        "offered": offered,
        "form": form,
        **_brought(run, offered),
    }
    if request.headers.get("HX-Request"):
        return render(request, "judging/bring_in.html#jobs", context)
    context |= _previewed(run, offered, str(form["into"].value() or ""))
    return render(request, "judging/bring_in.html", context, status=422 if asked else 200)


@require_POST
@login_required
def ask_anew(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Ask once more about the items of which a generator run made nothing."""
    member = access.member_for(request, slug, right="run")
    asked = found(member, number)
    try:
        run = again.ask_anew(asked, access.seated(member))
    except Refused as problem:
        messages.error(request, str(problem))
        return redirect("run", slug, number)
    tasks.ring(run.endpoint_id)
    messages.success(request, f"Run {run.number} asks again what run {number} made nothing of.")
    return redirect("run", slug, run.number)


def _form(run: Run, offered: list[Project], data: Any) -> BringForm:
    return BringForm(
        data,
        targets=[(one.slug, one.name) for one in offered],
        flags=choosing.FLAGS,
        may_accept=rows.may_accept(run),
        initial={
            "into": choosing.usual_target(run, offered),
            "share": choosing.usual_share(run),
            "aside": choosing.USUAL_FLAGS,
        },
    )


def _wanted(member: Membership, run: Run, form: BringForm) -> bool:
    """Whether a job is asked for; else the form says why not."""
    try:
        wish = choosing.wish(run, member.account, form.cleaned_data["into"], form.vetting())
        bringing.want(wish, access.seated(member))
    except (Refused, errors.Refused) as problem:
        form.add_error(None, str(problem))
    return not form.errors


def _brought(run: Run, offered: list[Project]) -> dict[str, Any]:
    found = list(bringing.of_run(run))
    return {
        "jobs": found,
        "busy": any(job.finished_at is None for job in found),
        "open": {one.slug for one in offered},
        "in_place": rows.in_place(run, run.project),
        "holds": rows.mark(run),
    }


def _previewed(run: Run, offered: list[Project], into: str) -> dict[str, Any]:
    """A look at the first rows, as they come into the chosen project."""
    wanted = [one for one in offered if one.slug == into]
    chosen = next(iter(wanted or offered), None)
    return {"chosen": chosen, "preview": choosing.preview(run, chosen) if chosen else []}
