"""The page of a project's budget and its spending."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotation.projects import access
from judging.models import Run
from judging.runs import budget as runs_budget
from judging.runs.forms import CapForm

RUNS_PER_PAGE = 50


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def budget(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the cap and the spent and reserved amounts of a project, and the same for each of its
    runs; a lead sets the cap."""
    sets = request.method == "POST"
    member = access.member_for(request, slug, right="manage" if sets else "results")
    status = runs_budget.load_status(member.project)
    form = CapForm(request.POST if sets else None, initial={"cap": status.cap})
    if sets and form.is_valid():
        runs_budget.set_cap(
            member.project, form.cleaned_data["cap"], access.ensure_membership(member)
        )
        standing = runs_budget.load_status(member.project)
        if standing.left == 0:
            messages.warning(
                request,
                "Cap saved. Nothing of it is left: no call is sent until you raise or remove it.",
            )
        else:
            messages.success(request, "Cap saved. Paused runs stay paused until you resume them.")
        return redirect("budget", slug=slug)
    asked = Run.objects.in_project(member.project).filter(kind=Run.Kind.ASKED)
    page = Paginator(asked.for_page().order_by("-number"), RUNS_PER_PAGE).get_page(
        request.GET.get("page")
    )
    context = {
        "project": member.project,
        "member": member,
        "status": status,
        "form": form,
        "page": page,
        "spendings": runs_budget.list_spending(list(page)),
    }
    return render(request, "judging/budget.html", context, status=422 if form.errors else 200)
