"""The API of long-running work: imports, exports, archives, snapshots and runs, in one list."""

from typing import Any

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.pagination import CursorPages
from annotation.api.project_rows import ProjectRowList
from annotation.api.responses import (
    CONFLICT_RESPONSES,
    Conflict,
)
from annotation.models import Job
from annotation.projects import access
from judging.jobs import job_list
from judging.jobs.job_list import JobListEntry

JOB_PATH = "projects/<slug:slug>/jobs/<slug:kind>/<int:number>/"
KIND_PARAMETER = OpenApiParameter(
    "kind", location=OpenApiParameter.PATH, enum=list(job_list.JOB_KINDS)
)
ACTIONS = {"cancel": job_list.cancel_job, "again": job_list.rerun_job}


class JobSerializer(serializers.Serializer[JobListEntry]):
    """A job or a run. `done` of `total` steps are completed so far; both are null if there is
    nothing to count. `kind` and `number` identify the job; `can_cancel` and `can_again` say if it
    can be cancelled or run again now."""

    kind = serializers.CharField()
    number = serializers.IntegerField(allow_null=True)
    title = serializers.CharField()
    of = serializers.CharField()
    state = serializers.CharField()
    message = serializers.CharField()
    member = serializers.CharField(help_text="Who requested the job; empty if nobody did.")
    done = serializers.IntegerField(allow_null=True)
    total = serializers.IntegerField(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    can_cancel = serializers.BooleanField()
    can_again = serializers.BooleanField()


class JobPages(CursorPages):
    """Paginate rows of several tables in the order of their list (`queryset.order`)."""

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> Any:
        return queryset.order


class JobList(ProjectRowList[Any]):
    """All long-running work that you may see, newest first."""

    model = Job
    right = "results"
    serializer_class = JobSerializer
    pagination_class = JobPages

    def list_rows(self) -> Any:
        return job_list.list_visible(self.member)

    def paginate_queryset(self, queryset: Any) -> Any:
        return job_list.build_entries(super().paginate_queryset(queryset) or [], self.member)


@extend_schema(
    parameters=[KIND_PARAMETER], request=None, responses={204: None, **CONFLICT_RESPONSES}
)
@api_view(["POST"])
def change_job(request: Request, slug: str, kind: str, number: int, step: str) -> Response:
    """Cancel a job, or run a failed job again; runs have their own URLs."""
    member = access.member_for(request, slug, right="results")
    job = job_list.find_job(member, kind, number)
    if job is None:
        raise Http404
    if not ACTIONS[step](job, access.ensure_membership(member)):
        raise Conflict("This job can no longer be changed. See its state.")
    return Response(status=204)


urlpatterns = [
    path("projects/<slug:slug>/jobs/", JobList.as_view(), name="api-jobs"),
    path(JOB_PATH + "cancel/", change_job, {"step": "cancel"}, name="api-job-cancel"),
    path(JOB_PATH + "again/", change_job, {"step": "again"}, name="api-job-again"),
]
