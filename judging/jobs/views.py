"""The page of a project's long-running work: progress, requester, and actions."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from annotation.projects import access
from judging.jobs import job_list

JOBS_PER_PAGE = 50


@require_safe
@never_cache
@login_required
def jobs(request: HttpRequest, slug: str) -> HttpResponse:
    """List the imports, exports, archives, snapshots and runs that the member may see, newest
    first."""
    member = access.member_for(request, slug, right="results")
    page = Paginator(job_list.list_visible(member)[:], JOBS_PER_PAGE).get_page(
        request.GET.get("page")
    )
    entries = job_list.build_entries(list(page.object_list), member)
    context = {
        "project": member.project,
        "member": member,
        "page": page,
        "entries": entries,
        "busy": any(entry.is_under_way for entry in entries),
    }
    template = "judging/jobs.html" + ("#jobs" if request.headers.get("HX-Request") else "")
    return render(request, template, context)


@require_POST
@login_required
def change_job(request: HttpRequest, slug: str, kind: str, number: int, step: str) -> HttpResponse:
    """Cancel a job, or run a failed job again."""
    member = access.member_for(request, slug, right="results")
    job = job_list.find_job(member, kind, number)
    act = {"cancel": job_list.cancel_job, "again": job_list.rerun_job}[step]
    if job is None or not act(job, access.ensure_membership(member)):
        messages.error(request, "This job can no longer be changed. See its state.")
    return redirect("jobs", slug)
