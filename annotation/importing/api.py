"""The API of imports: upload a file, preview it, choose its columns, start the import."""

from pathlib import Path
from typing import Any

from django.contrib.auth import get_user
from django.db.models import QuerySet
from django.http import FileResponse, Http404
from django.urls import path
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings

from annotation import tasktypes
from annotation.accounts.tokens import TokenAuthentication
from annotation.api.idempotency import KEY_PARAMETER, make_idempotent
from annotation.api.project_rows import ProjectRowList
from annotation.api.responses import (
    PROBLEM_RESPONSES,
    Conflict,
    JobFields,
    ProblemSerializer,
    Unprocessable,
    validate_body,
)
from annotation.importing import jobs, preview, receive, upload_files
from annotation.importing.column_mapping import item_columns
from annotation.importing.receive import ItemUpload
from annotation.importing.upload_limits import TOO_LARGE_KEY
from annotation.models import Job, Membership
from annotation.projects import access
from formats.readers import list_contents

UNUSABLE_RESPONSES = PROBLEM_RESPONSES | {
    422: OpenApiResponse(ProblemSerializer, "This cannot be used; the detail says why.")
}
CONFLICT_RESPONSES = PROBLEM_RESPONSES | {
    409: OpenApiResponse(ProblemSerializer, "Not possible in this state.")
}
IMPORT_PATH = "projects/<slug:slug>/imports/<int:number>/"


class FileSerializer(serializers.Serializer[Any]):
    """A file of items. Give `layout` if the file name does not show the format, and `password` for
    an archive that has one."""

    file = serializers.FileField()
    layout = serializers.ChoiceField(
        choices=[form for form, _ in list_contents()], default="", allow_blank=True
    )
    password = serializers.CharField(
        max_length=200, default="", allow_blank=True, trim_whitespace=False, write_only=True
    )


class ColumnsSerializer(serializers.Serializer[Any]):
    """The file's column for each column of items; "" if there is none. With `accept`, the items are
    imported as already decided."""

    columns = serializers.DictField(child=serializers.CharField(allow_blank=True))
    accept = serializers.BooleanField(default=False)


class ProblemOfRowSerializer(serializers.Serializer[Any]):
    """A row that is not imported; `place` is its number in the file of rejected rows, `row` the
    number that a spreadsheet shows for it."""

    place = serializers.IntegerField()
    problem = serializers.ChoiceField(choices=["bad", "changed"])
    file = serializers.CharField()
    line = serializers.IntegerField()
    field = serializers.CharField(
        help_text="Name of the column in the file; empty for the whole row."
    )
    reason = serializers.CharField()
    row = serializers.IntegerField(default=None, allow_null=True)
    key = serializers.CharField(default="", help_text="Key of the item; empty if it has none.")


class MissingSerializer(serializers.Serializer[Any]):
    """An answer that counts as missing in an imported row because its value is off the scale."""

    file = serializers.CharField()
    line = serializers.IntegerField()
    field = serializers.CharField(help_text="Name of the column in the file.")
    reason = serializers.CharField()
    row = serializers.IntegerField(default=None, allow_null=True)
    key = serializers.CharField(default="", help_text="Key of the item; empty if it has none.")


class ReportSerializer(serializers.Serializer[Any]):
    """Counts of rows by result; `problems` are the first rows that are not imported.

    `alone` counts the new rows that are each treated as a separate source question, because people
    rate them and no column `cluster` groups the rows. For rows imported as decided, `off_scale`
    counts the missing answers and `missing` lists the first of them.
    """

    rows = serializers.IntegerField()
    new = serializers.IntegerField()
    unchanged = serializers.IntegerField()
    alone = serializers.IntegerField(default=0)
    conflicts = serializers.IntegerField()
    bad = serializers.IntegerField()
    problems = ProblemOfRowSerializer(many=True)
    off_scale = serializers.IntegerField(default=0)
    missing = MissingSerializer(many=True, default=[])


class ImportSerializer(JobFields):
    """An import. `step` is the next step: choose the columns, check the file, start the import, or
    store the items. `report` describes the check until the state is finished, then the import.
    """

    file = serializers.CharField(source="result.name")
    format = serializers.CharField(source="result.form")
    bytes = serializers.IntegerField(source="result.bytes")
    note = serializers.CharField(
        source="result.note", default="", help_text="What was not read of the file, if anything."
    )
    found = serializers.ListField(source="result.found", child=serializers.CharField())
    columns = serializers.DictField(source="result.columns", child=serializers.CharField())
    accept = serializers.BooleanField(source="result.accept")
    step = serializers.ChoiceField(
        source="result.step",
        choices=[upload_files.CHOOSE, upload_files.CHECK, upload_files.READY, upload_files.STORE],
    )
    report = ReportSerializer(source="result.report", default=None, allow_null=True)
    done = serializers.IntegerField()
    total = serializers.IntegerField(allow_null=True)


class ImportList(ProjectRowList[Job]):
    """The project's imports, the latest first. A POST uploads a file."""

    model = Job
    right = "manage"
    serializer_class = ImportSerializer
    parser_classes: list[Any] = [*api_settings.DEFAULT_PARSER_CLASSES, MultiPartParser]

    def list_rows(self) -> QuerySet[Job]:
        return jobs.list_imports(self.member.project).order_by("-pk")

    @extend_schema(
        operation_id="projects_imports_create",
        parameters=[KEY_PARAMETER],
        request={"multipart/form-data": FileSerializer},
        responses={201: ImportSerializer, **UNUSABLE_RESPONSES, **CONFLICT_RESPONSES},
    )
    @make_idempotent("manage", takes_long=True)
    def post(self, request: Request, slug: str) -> Response:
        """Upload a file. The file is previewed as soon as its columns are known. Nothing is
        imported until the import is started."""
        member = access.member_for(request, slug, right="manage")
        data = request.data
        _ask_again(request)
        member = access.member_for(request, slug, right="manage", anew=True)
        if request.META.get(TOO_LARGE_KEY):
            raise receive.too_large_error()
        sent = ItemUpload(**validate_body(FileSerializer(data=data)))
        job = receive.receive_file(access.ensure_membership(member), sent, timezone.now())
        return Response(ImportSerializer(_reload_job(job)).data, status=201)


def _ask_again(request: Request) -> None:
    """Find again who sends the request: an upload may take long, and token, session and account of
    now count. Raises `AuthenticationFailed`."""
    sent = request._request
    if found := TokenAuthentication().authenticate(request):
        request.user = found[0]
        return
    sent.session = type(sent.session)(sent.session.session_key)
    request.user = get_user(sent)
    if not request.user.is_authenticated:
        raise AuthenticationFailed("You are signed out. Sign in again.")


@extend_schema(responses={200: ImportSerializer, **PROBLEM_RESPONSES})
@api_view(["GET"])
def import_detail(request: Request, slug: str, number: int) -> Response:
    """One import with its progress and the rows that are not imported."""
    return Response(ImportSerializer(_find_import(request, slug, number)[1]).data)


@extend_schema(
    request=ColumnsSerializer,
    responses={200: ImportSerializer, **CONFLICT_RESPONSES, **UNUSABLE_RESPONSES},
)
@api_view(["PUT"])
def choose_columns(request: Request, slug: str, number: int) -> Response:
    """Choose the columns of the file, and check it with them."""
    member, job = _find_import(request, slug, number)
    said = validate_body(ColumnsSerializer(data=request.data))
    chosen = _chosen_columns(member, job, said["columns"])
    jobs.choose_columns(job, chosen, accept=said["accept"])
    return Response(ImportSerializer(_reload_job(job)).data)


@extend_schema(request=None, responses={200: ImportSerializer, **CONFLICT_RESPONSES})
@api_view(["POST"])
def start_import(request: Request, slug: str, number: int) -> Response:
    """Start the import of a checked file."""
    member, job = _find_import(request, slug, number)
    jobs.start_import(job, access.ensure_membership(member))
    return Response(ImportSerializer(_reload_job(job)).data)


@extend_schema(request=None, responses={200: ImportSerializer, **CONFLICT_RESPONSES})
@api_view(["POST"])
def cancel_import(request: Request, slug: str, number: int) -> Response:
    """Cancel an unfinished import. Rows that are already imported stay."""
    member, job = _find_import(request, slug, number)
    if not jobs.cancel_import(job, access.ensure_membership(member), timezone.now()):
        raise Conflict(f"Import {number} had already finished.")
    return Response(ImportSerializer(_reload_job(job)).data)


@extend_schema(
    responses={(200, "application/octet-stream"): OpenApiTypes.BINARY, **CONFLICT_RESPONSES}
)
@api_view(["GET"])
def rejected_rows(request: Request, slug: str, number: int) -> FileResponse:
    """The rejected rows, unchanged, so that you can correct them and upload them again."""
    _, job = _find_import(request, slug, number)
    return _file(
        upload_files.rejected_rows_path(job),
        f"{slug}-import-{number}-to-mend{job.result['ending']}",
    )


@extend_schema(
    responses={(200, "application/octet-stream"): OpenApiTypes.BINARY, **CONFLICT_RESPONSES}
)
@api_view(["GET"])
def rejected_problems(request: Request, slug: str, number: int) -> FileResponse:
    """All rejected rows with line, field and reason, as CSV."""
    _, job = _find_import(request, slug, number)
    return _file(upload_files.problems_path(job), f"{slug}-import-{number}-problems.csv")


def _find_import(request: Request, slug: str, number: int) -> tuple[Membership, Job]:
    member = access.member_for(request, slug, right="manage")
    job = jobs.find_import(member.project, number)
    if job is None:
        raise Http404
    return member, job


def _reload_job(job: Job) -> Job:
    return jobs.list_imports(job.project).get(pk=job.pk)


def _chosen_columns(member: Membership, job: Job, said: dict[str, str]) -> dict[str, str]:
    """Return the chosen file column for each column of items; "" for columns that are not in the
    body."""
    task = tasktypes.load_version(member.project.task_type)
    if upload_files.is_fixed(job):
        return {}
    names, found = item_columns(task), job.result["found"]
    if unknown := sorted(set(said) - set(names)):
        _refuse(f"An item has no {', '.join(unknown)}. It has {', '.join(names)}.")
    if unknown := sorted({column for column in said.values() if column} - set(found)):
        _refuse(f"The file has no {', '.join(unknown)}. It has {', '.join(found)}.")
    chosen = {name: said.get(name, "") for name in names}
    if missing := preview.missing_columns(task, upload_files.build_source(job), chosen):
        _refuse(f"Every item needs {', '.join(missing)}. Choose a column for each.")
    return chosen


def _refuse(words: str) -> None:
    raise Unprocessable("The body cannot be used.", {"columns": [words]})


def _file(path: Path, name: str) -> FileResponse:
    if not path.exists():
        raise Conflict(
            "This file does not exist or has been deleted. Upload the data again to recreate it."
        )
    return FileResponse(
        path.open("rb"),
        as_attachment=True,
        filename=name,
        content_type="application/octet-stream",
    )


urlpatterns = [
    path("projects/<slug:slug>/imports/", ImportList.as_view(), name="api-imports"),
    path(IMPORT_PATH, import_detail, name="api-import"),
    path(IMPORT_PATH + "columns/", choose_columns, name="api-import-columns"),
    path(IMPORT_PATH + "start/", start_import, name="api-import-start"),
    path(IMPORT_PATH + "cancel/", cancel_import, name="api-import-cancel"),
    path(IMPORT_PATH + "rows/", rejected_rows, name="api-import-rows"),
    path(IMPORT_PATH + "problems/", rejected_problems, name="api-import-problems"),
]
