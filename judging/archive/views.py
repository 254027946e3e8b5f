"""Pages for publication: the methods paragraph, and archives of results."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from annotation.errors import Refused
from annotation.models import Job, Membership
from annotation.projects import access
from judging import tasks
from judging.archive import create, jobs
from judging.results import figures, run_marks
from judging.results.tables import methods
from judging.results.views.downloads import respond_pending

CONTENT_TYPES = {"txt": "text/plain; charset=utf-8", "tex": "text/x-tex; charset=utf-8"}


@require_GET
@login_required
def methods_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The methods paragraph for the chosen runs, to read and to copy; while a worker counts its
    numbers, the progress."""
    member = access.member_for(request, slug, right="results")
    answers = [figures.fetch_or_enqueue(one) for one in _request_methods(request, member)]
    making = [one for one in answers if isinstance(one, figures.PendingTable)]
    for one in making:
        tasks.notify_of_figure(one)
    made = [one.rows for one in answers if isinstance(one, figures.FigureTable)]
    context = {
        "project": member.project,
        "member": member,
        "making": making,
        "said": None if making else methods.MethodsText.from_tables(made),
        "forms": CONTENT_TYPES,
    }
    template = "judging/paper/methods.html"
    return render(
        request, f"{template}#text" if request.headers.get("HX-Request") else template, context
    )


@require_GET
@login_required
def methods_file(request: HttpRequest, slug: str, text: str) -> HttpResponse:
    """The methods paragraph as text or LaTeX; while a worker counts its numbers, 503."""
    member = access.member_for(request, slug, right="results")
    if text not in CONTENT_TYPES:
        raise Http404
    answers = [figures.fetch_or_enqueue(one) for one in _request_methods(request, member)]
    making = [one for one in answers if isinstance(one, figures.PendingTable)]
    for one in making:
        tasks.notify_of_figure(one)
    if making:
        return respond_pending(request)
    made = [one.rows for one in answers if isinstance(one, figures.FigureTable)]
    said = methods.MethodsText.from_tables(made)
    content = said.latex if text == "tex" else said.text
    response = HttpResponse(content, content_type=CONTENT_TYPES[text])
    response["Content-Disposition"] = f'attachment; filename="{slug}-methods.{text}"'
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def archives(request: HttpRequest, slug: str) -> HttpResponse:
    """The requested archives of results; POST requests one."""
    member = access.member_for(request, slug, right="manage")
    if request.method == "POST":
        wish = _build_request(request, member)
        try:
            create.check_sealed(member.project, texts=wish.texts, replies=wish.replies)
        except Refused as error:
            messages.error(request, str(error))
        else:
            jobs.enqueue(member.project, access.ensure_membership(member), wish)
        return redirect("archives", slug)
    found = jobs.list_archives(member.project)
    context = {
        "project": member.project,
        "member": member,
        "runs": [run for run in run_marks.load_marked_runs(member.project) if not run.archived_at],
        "jobs": found,
        "busy": any(job.finished_at is None for job in found),
    }
    template = "judging/paper/archives.html"
    return render(
        request, f"{template}#jobs" if request.headers.get("HX-Request") else template, context
    )


@require_GET
@login_required
def archive(request: HttpRequest, slug: str, number: int) -> HttpResponseBase:
    """Download the file of an archive."""
    member = access.member_for(request, slug, right="manage")
    found = jobs.list_archives(member.project).filter(state=Job.State.FINISHED)
    job = found.filter(result__number=number).first()
    if job is None or not jobs.get_path(job).exists():
        messages.error(request, f"Archive {number} is no longer here. Create it again.")
        return redirect("archives", slug)
    name = f"{slug}-results-{number}.zip"
    return FileResponse(jobs.get_path(job).open("rb"), as_attachment=True, filename=name)


def _request_methods(request: HttpRequest, member: Membership) -> list[figures.TableRequest]:
    """The tables of the methods paragraph for the runs in the URL. Raises Http404."""
    try:
        runs = figures.select_project_runs(member.project, request.GET)
    except figures.UnknownRun as error:
        raise Http404(str(error)) from error
    return [figures.build_request(member.project, one, runs, ()) for one in methods.METHODS]


def _build_request(request: HttpRequest, member: Membership) -> jobs.ArchiveRequest:
    """Return the requested archive. If no run is ticked, it contains the default runs of the result
    pages.
    """
    runs = [run for run in run_marks.load_marked_runs(member.project) if not run.archived_at]
    ticked = [run for run in runs if str(run.number) in request.POST.getlist("run")]
    numbers = [run.number for run in ticked or run_marks.select_default(runs)]
    return jobs.ArchiveRequest(numbers, "texts" in request.POST, "replies" in request.POST)
