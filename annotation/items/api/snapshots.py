"""The API of snapshots: create one, list them, and compare two."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.idempotency import IN_PROGRESS_RESPONSE, KEY_PARAMETER, make_idempotent
from annotation.api.project_rows import ProjectRowList
from annotation.api.responses import (
    PROBLEM_RESPONSES,
    ProblemSerializer,
    Unprocessable,
    validate_body,
)
from annotation.errors import FieldError
from annotation.items.models import SnapshotQuerySet
from annotation.items.snapshots import comparison, create
from annotation.labelling import visibility
from annotation.models import FrozenIn, Snapshot
from annotation.projects import access

SNAPSHOTS_PATH = "projects/<slug:slug>/snapshots/"
SINCE_PARAMETER = OpenApiParameter(
    "since", int, description="Number of the snapshot to compare with; default: the previous one."
)
WHAT_PARAMETER = OpenApiParameter("what", enum=[*comparison.CHANGE_TITLES], default="changed")


class SnapshotSerializer(serializers.ModelSerializer[Snapshot]):
    """A snapshot; `made_at` is null and `digest` empty until a worker has made it."""

    member = serializers.CharField(source="member.alias", allow_null=True, default=None)
    digest = serializers.CharField(allow_blank=True)

    class Meta:
        model = Snapshot
        fields = [
            "number", "name", "note", "member", "items", "digest", "created_at", "made_at",
        ]  # fmt: skip


class SnapshotBody(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=create.NAME_LENGTH)
    note = serializers.CharField(max_length=create.NOTE_LENGTH, allow_blank=True, default="")


class FactSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    old = serializers.JSONField(allow_null=True)
    new = serializers.JSONField(allow_null=True)


class ChangeSerializer(serializers.Serializer[Any]):
    """An item that was added, removed or changed. A changed item comes with its changed facts."""

    item = serializers.CharField(source="key")
    kind = serializers.ChoiceField(["added", "removed", "changed"])
    facts = FactSerializer(many=True)


class SnapshotList(ProjectRowList[Snapshot]):
    """All snapshots of a project, the latest first. A POST starts a new snapshot."""

    model = Snapshot
    right = "items"
    serializer_class = SnapshotSerializer

    def list_rows(self) -> QuerySet[Snapshot]:
        return Snapshot.objects.in_project(self.member.project).for_list()

    @extend_schema(
        parameters=[KEY_PARAMETER],
        request=SnapshotBody,
        responses={
            202: SnapshotSerializer,
            409: IN_PROGRESS_RESPONSE,
            422: OpenApiResponse(ProblemSerializer, "The name is missing or already used."),
            **PROBLEM_RESPONSES,
        },
    )
    @make_idempotent("manage")
    def post(self, request: Request, slug: str) -> Response:
        """Have a worker create a snapshot under a new name."""
        member = access.member_for(request, slug, right="manage")
        data = validate_body(SnapshotBody(data=request.data))
        try:
            made = create.enqueue(
                member.project, access.ensure_membership(member), data["name"], data["note"]
            )
        except FieldError as error:
            raise Unprocessable(str(error), {error.field: [str(error)]}) from error
        return Response(SnapshotSerializer(made).data, status=202)


class ChangeList(ProjectRowList[FrozenIn]):
    """The changes since another snapshot, item by item.

    Labels that you give to the listed items later count as informed.
    """

    model = FrozenIn
    right = "items"
    serializer_class = ChangeSerializer
    asks = ("since", "what")

    def list_rows(self) -> QuerySet[FrozenIn]:
        self.what = self.request.query_params.get("what", "changed")
        if self.what not in comparison.CHANGE_TITLES:
            raise ParseError(f"what is one of {', '.join(comparison.CHANGE_TITLES)}.")
        made = Snapshot.objects.in_project(self.member.project).completed()
        one = _find_snapshot(made, str(self.kwargs["number"]))
        since = self.request.query_params.get("since")
        other = _find_snapshot(made, since) if since else made.before(one)
        if other is None:
            raise Unprocessable("There is no earlier snapshot. Give another one with since.")
        return comparison.filter_changed(other, one, self.what)

    def paginate_queryset(self, queryset: Any) -> Any:
        states = super().paginate_queryset(queryset) or []
        visibility.record_all_seen(self.member, [one.item_id for one in states], now=timezone.now())
        with_fields = self.member.can_see_results
        return list(comparison.list_changes(states, self.what, with_fields=with_fields))

    @extend_schema(
        parameters=[SINCE_PARAMETER, WHAT_PARAMETER],
        responses={
            200: ChangeSerializer(many=True),
            400: ProblemSerializer,
            422: OpenApiResponse(ProblemSerializer, "There is no other snapshot."),
            **PROBLEM_RESPONSES,
        },
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


@extend_schema(responses={200: SnapshotSerializer, **PROBLEM_RESPONSES})
@api_view(["GET"])
def snapshot(request: Request, slug: str, number: int) -> Response:
    """One snapshot, which may still be incomplete."""
    member = access.member_for(request, slug, right="items")
    found = Snapshot.objects.in_project(member.project).for_list().filter(number=number).first()
    if found is None:
        raise Http404
    return Response(SnapshotSerializer(found).data)


def _find_snapshot(made: SnapshotQuerySet, number: str) -> Snapshot:
    found = made.numbered(number)
    if found is None:
        raise Http404(f"There is no snapshot {number[:20]}, or it is not ready yet.")
    return found


urlpatterns = [
    path(SNAPSHOTS_PATH, SnapshotList.as_view(), name="api-snapshots"),
    path(SNAPSHOTS_PATH + "<int:number>/", snapshot, name="api-snapshot"),
    path(
        SNAPSHOTS_PATH + "<int:number>/changes/", ChangeList.as_view(), name="api-snapshot-changes"
    ),
]
