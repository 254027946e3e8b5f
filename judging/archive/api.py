"""The API for publication: the methods paragraph, and archives of results."""

from dataclasses import replace
from typing import Any

from django.db.models import QuerySet
from django.http import FileResponse, Http404
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.form_bodies import form_error
from annotation.api.idempotency import KEY_PARAMETER, make_idempotent
from annotation.api.project_rows import ProjectRowList
from annotation.api.responses import (
    PROBLEM_RESPONSES,
    REFUSED_RESPONSES,
    Conflict,
    JobFields,
    ProblemSerializer,
    validate_body,
)
from annotation.models import Job, Membership
from annotation.projects import access
from judging import tasks
from judging.archive import jobs
from judging.results import figures, run_marks
from judging.results.api import PENDING_RESPONSES, RUN_PARAMETER, respond
from judging.results.tables import methods

CONFLICT_RESPONSES = {409: OpenApiResponse(ProblemSerializer, "Not possible in the current state.")}


class MethodsSerializer(serializers.Serializer[methods.MethodsText]):
    """The methods as paragraphs (data, annotation, each run, figures), as text and for LaTeX."""

    paragraphs = serializers.ListField(child=serializers.CharField())
    text = serializers.CharField()
    latex = serializers.CharField()


@extend_schema(
    parameters=[RUN_PARAMETER],
    responses={200: MethodsSerializer, **PENDING_RESPONSES, **PROBLEM_RESPONSES},
)
@api_view(["GET"])
def methods_paragraph(request: Request, slug: str) -> Response:
    """The methods paragraph for the chosen runs. A worker counts its numbers, again whenever the
    data have changed; numbers over few outcomes are counted at once.
    """
    member = access.member_for(request, slug, right="results")
    try:
        runs = figures.select_project_runs(member.project, request.query_params)
    except figures.UnknownRun as problem:
        raise Http404(str(problem)) from problem
    asked = [figures.build_request(member.project, one, runs, ()) for one in methods.METHODS]
    answers = [figures.fetch_or_enqueue(one) for one in asked]
    making = [one for one in answers if isinstance(one, figures.PendingTable)]
    for one in making:
        tasks.notify_of_figure(one)
    if making:
        return respond(making[0])
    made = [one.rows for one in answers if isinstance(one, figures.FigureTable)]
    return Response(MethodsSerializer(methods.MethodsText.from_tables(made)).data)


class ArchiveAskedSerializer(serializers.Serializer[Any]):
    """The numbers of the runs; by default, the default runs of the results. With `texts` the
    archive includes the texts of items, with `replies` the evaluators' replies."""

    runs = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2_147_483_647),
        default=list,
        max_length=1_000,
    )
    texts = serializers.BooleanField(default=False)
    replies = serializers.BooleanField(default=False)


class ArchiveSerializer(JobFields):
    """An archive of results. It contains data, figures and digests, so that anybody can reproduce
    the figures. `file` says whether there is a file to download. If the archive failed, `message`
    says why.
    """

    runs = serializers.ListField(source="result.runs", child=serializers.IntegerField())
    texts = serializers.BooleanField(source="result.texts")
    replies = serializers.BooleanField(source="result.replies")
    bytes = serializers.IntegerField(source="result.bytes", default=None, allow_null=True)
    file = serializers.SerializerMethodField()

    def get_file(self, job: Job) -> bool:
        return _has_file(job)


class ArchiveList(ProjectRowList[Job]):
    """The project's archives of results, the latest first."""

    model = Job
    right = "manage"
    serializer_class = ArchiveSerializer

    def list_rows(self) -> QuerySet[Job]:
        return jobs.list_archives(self.member.project).order_by("-pk")

    @extend_schema(
        parameters=[KEY_PARAMETER],
        request=ArchiveAskedSerializer,
        responses={201: ArchiveSerializer, **REFUSED_RESPONSES, **CONFLICT_RESPONSES},
    )
    @make_idempotent("manage")
    def post(self, request: Request, slug: str) -> Response:
        """Let a worker create an archive. The job appears in the list of jobs, where you can cancel
        it.
        """
        lead = access.member_for(request, slug, right="manage")
        wish = jobs.ArchiveRequest(**validate_body(ArchiveAskedSerializer(data=request.data)))
        runs = [run for run in run_marks.load_marked_runs(lead.project) if not run.archived_at]
        if unknown := sorted(set(wish.runs) - {run.number for run in runs}):
            raise form_error({"runs": [f"There is no run {number} to show." for number in unknown]})
        named = [run for run in runs if run.number in wish.runs]
        chosen = [run.number for run in named or run_marks.select_default(runs)]
        job = jobs.enqueue(lead.project, access.ensure_membership(lead), replace(wish, runs=chosen))
        return Response(ArchiveSerializer(job).data, status=201)


@extend_schema(responses={200: ArchiveSerializer, **PROBLEM_RESPONSES})
@api_view(["GET"])
def archive(request: Request, slug: str, number: int) -> Response:
    """One archive and its progress."""
    lead = access.member_for(request, slug, right="manage")
    return Response(ArchiveSerializer(_get_archive_or_404(lead, number)).data)


@extend_schema(
    responses={(200, "application/octet-stream"): OpenApiTypes.BINARY, **CONFLICT_RESPONSES}
)
@api_view(["GET"])
def archive_file(request: Request, slug: str, number: int) -> FileResponse:
    """The file of a finished archive."""
    lead = access.member_for(request, slug, right="manage")
    job = _get_archive_or_404(lead, number)
    if not _has_file(job):
        raise Conflict(
            f"Archive {number} has no file, or its file has been deleted. See its state, or create "
            "a new archive."
        )
    return FileResponse(
        jobs.get_path(job).open("rb"),
        as_attachment=True,
        filename=f"{slug}-results-{number}.zip",
        content_type="application/octet-stream",
    )


def _get_archive_or_404(lead: Membership, number: int) -> Job:
    found = jobs.list_archives(lead.project).filter(result__number=number).first()
    if found is None:
        raise Http404
    return found


def _has_file(job: Job) -> bool:
    return job.state == Job.State.FINISHED and jobs.get_path(job).exists()


ARCHIVES_PATH = "projects/<slug:slug>/archives/"

urlpatterns = [
    path("projects/<slug:slug>/methods/", methods_paragraph, name="api-methods"),
    path(ARCHIVES_PATH, ArchiveList.as_view(), name="api-archives"),
    path(ARCHIVES_PATH + "<int:number>/", archive, name="api-archive"),
    path(ARCHIVES_PATH + "<int:number>/file/", archive_file, name="api-archive-file"),
]
