"""The API of exports: request a table as a file, check its progress, and download it."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet
from django.http import FileResponse, Http404
from django.urls import path
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.idempotency import KEY_PARAMETER, make_idempotent
from annotation.api.project_rows import ProjectRowList
from annotation.api.responses import (
    CONFLICT_RESPONSES,
    PROBLEM_RESPONSES,
    Conflict,
    JobFields,
    Unprocessable,
    validate_body,
)
from annotation.errors import FieldError
from annotation.items.filters import ItemFilter
from annotation.jobs import job_queue
from annotation.models import Item, Job, Membership
from annotation.projects import access
from formats.writers import FILE_FORMATS
from judging.exporting import jobs
from judging.exporting.dataset_card import LICENCES, UNSTATED
from judging.exporting.rows import ExportRequest
from judging.exporting.tables import EXPORT_TABLES
from judging.runs.api.responses import REFUSAL_RESPONSES

EXPORT_PATH = "projects/<slug:slug>/exports/<int:number>/"


class NamedChoice(serializers.ChoiceField):
    """A choice of names; the error message for any other name lists the allowed names."""

    def __init__(self, names: Iterable[str]) -> None:
        there = [*names]
        words: Any = {
            "invalid_choice": f"There is no {{input}}. Choose one of: {', '.join(there)}."
        }
        super().__init__(choices=[(name, name) for name in there], error_messages=words)


class ExportAskedSerializer(serializers.Serializer[Any]):
    """A table in a format. `filters` select items, with names and values as in the item list. With
    `canary` each row has a column that marks it as test data and contains a searchable string.
    `snapshot` exports all items of that snapshot; without it, the current items. `licence` is
    stated in the data card of the format `hub`. With `encrypt` the file is a zip with a password;
    request the password from its own URL. Control and qualification items are left out unless
    `with_control` is true.
    """

    table = NamedChoice(EXPORT_TABLES)
    format = NamedChoice(FILE_FORMATS)
    filters = serializers.DictField(child=serializers.CharField(max_length=2000), default=dict)
    canary = serializers.BooleanField(default=False)
    snapshot = serializers.CharField(default="", allow_blank=True, max_length=80)
    licence = serializers.ChoiceField(choices=[*LICENCES.items()], default=UNSTATED)
    encrypt = serializers.BooleanField(default=False)
    with_control = serializers.BooleanField(default=False)


class ExportSerializer(JobFields):
    """An export: `done` of `total` rows so far, null if unknown. `file`: whether a file can be
    downloaded; it is deleted after `expires`. If the export failed, `message` says why."""

    table = serializers.CharField(source="result.table")
    format = serializers.CharField(source="result.form")
    filters = serializers.DictField(source="result.filters")
    canary = serializers.CharField(source="result.canary")
    snapshot = serializers.CharField(source="result.snapshot", default="")
    licence = serializers.CharField(source="result.licence", default="")
    encrypt = serializers.BooleanField(source="result.encrypt", default=False)
    with_control = serializers.BooleanField(source="result.with_control", default=False)
    done = serializers.IntegerField()
    total = serializers.IntegerField(allow_null=True)
    expires = serializers.SerializerMethodField()
    file = serializers.SerializerMethodField()

    def get_expires(self, job: Job) -> datetime | None:
        seconds = job.result.get("expires")
        return datetime.fromtimestamp(seconds, tz=UTC) if seconds else None

    def get_file(self, job: Job) -> bool:
        return jobs.can_download(job, timezone.now())


class ExportList(ProjectRowList[Job]):
    """The exports of tables that you may see, newest first; POST requests one."""

    model = Job
    right = "results"
    serializer_class = ExportSerializer

    def list_rows(self) -> QuerySet[Job]:
        return jobs.list_exports(self.member).order_by("-pk")

    @extend_schema(
        operation_id="projects_exports_create",
        parameters=[KEY_PARAMETER],
        request=ExportAskedSerializer,
        responses={201: ExportSerializer, **REFUSAL_RESPONSES, **CONFLICT_RESPONSES},
    )
    @make_idempotent("results")
    def post(self, request: Request, slug: str) -> Response:
        """Let a worker write a table to a file."""
        member = access.member_for(request, slug, right="results")
        wish = _parse_export_body(member, validate_body(ExportAskedSerializer(data=request.data)))
        try:
            job = jobs.enqueue(member.project, access.ensure_membership(member), wish)
        except FieldError as error:
            raise Unprocessable(_INVALID_BODY, {error.field: [str(error)]}) from error
        return Response(ExportSerializer(job).data, status=201)


@extend_schema(responses={200: ExportSerializer, **PROBLEM_RESPONSES})
@api_view(["GET"])
def export(request: Request, slug: str, number: int) -> Response:
    """One export and its progress."""
    return Response(ExportSerializer(_get_export_or_404(request, slug, number)[1]).data)


@extend_schema(request=None, responses={200: ExportSerializer, **CONFLICT_RESPONSES})
@api_view(["POST"])
def cancel_export(request: Request, slug: str, number: int) -> Response:
    """Cancel an export that is not finished."""
    member, job = _get_export_or_404(request, slug, number)
    if not job_queue.cancel_job(job, member):
        raise Conflict(f"Export {number} finished before it could be cancelled.")
    job.refresh_from_db()
    return Response(ExportSerializer(job).data)


@extend_schema(
    responses={(200, "application/octet-stream"): OpenApiTypes.BINARY, **CONFLICT_RESPONSES},
)
@api_view(["GET"])
def export_file(request: Request, slug: str, number: int) -> FileResponse:
    """The file of an export. It can be downloaded from when it is written until it expires."""
    _, job = _get_export_or_404(request, slug, number)
    if not jobs.can_download(job, timezone.now()):
        raise Conflict(
            f"Export {number} has no file, or its file has been deleted. See its state, or create "
            "the export again."
        )
    name = f"{slug}-{job.result['table']}-{number}{jobs.get_path(job).suffix}"
    return FileResponse(
        jobs.get_path(job).open("rb"),
        as_attachment=True,
        filename=name,
        content_type="application/octet-stream",
    )


class PasswordSerializer(serializers.Serializer[Any]):
    password = serializers.CharField()


@extend_schema(responses={200: PasswordSerializer, **CONFLICT_RESPONSES})
@api_view(["GET"])
def export_password(request: Request, slug: str, number: int) -> Response:
    """The password of an encrypted export that you requested, while its file exists."""
    member, job = _get_export_or_404(request, slug, number)
    found = jobs.get_password(job, member)
    if not found:
        raise Conflict(
            f"Export {number} has no password for you: it is not encrypted, not finished, already "
            "deleted, or requested by somebody else. Create your own export."
        )
    return Response({"password": found}, headers={"Cache-Control": "no-store"})


def _get_export_or_404(request: Request, slug: str, number: int) -> tuple[Membership, Job]:
    member = access.member_for(request, slug, right="results")
    job = jobs.list_exports(member).filter(result__number=number).first()
    if job is None:
        raise Http404
    return member, job


def _parse_export_body(member: Membership, said: dict[str, Any]) -> ExportRequest:
    """Parse the requested export; 422 if the member may not export the table, or if a filter is
    invalid.
    """
    table, filters = said["table"], said["filters"]
    if table not in jobs.list_tables(member):
        named = ", ".join(jobs.list_tables(member))
        raise Unprocessable(_INVALID_BODY, {"table": [f"Your role may export {named}."]})
    narrowed = ItemFilter(filters, Item.objects.in_project(member.project))
    unknown = [] if table == "items" else list(filters)
    unknown += [name for name in filters if name not in narrowed.filters]
    if unknown:
        words = f"{table} cannot be filtered by {', '.join(dict.fromkeys(unknown))}."
        raise Unprocessable(_INVALID_BODY, {"filters": [words]})
    if not narrowed.form.is_valid():
        raise Unprocessable(_INVALID_BODY, {"filters": narrowed.form.errors.get_json_data()})
    of_items = {name: said[name] for name in ("snapshot", "licence", "encrypt", "with_control")}
    return ExportRequest(table, said["format"], filters, said["canary"], **of_items)


_INVALID_BODY = "The body cannot be used."

urlpatterns = [
    path("projects/<slug:slug>/exports/", ExportList.as_view(), name="api-exports"),
    path(EXPORT_PATH, export, name="api-export"),
    path(EXPORT_PATH + "cancel/", cancel_export, name="api-export-cancel"),
    path(EXPORT_PATH + "file/", export_file, name="api-export-file"),
    path(EXPORT_PATH + "password/", export_password, name="api-export-password"),
]
