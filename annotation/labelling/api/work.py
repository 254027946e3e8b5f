"""The API of labelling: projects, the next item, labels and corrections."""

from typing import Any

from django.db.models import QuerySet
from django.urls import path
from django.utils import timezone
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import (
    PolymorphicProxySerializer,
    extend_schema,
)
from rest_framework.decorators import api_view
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.pagination import CursorPages
from annotation.api.project_rows import ProjectRowList
from annotation.api.responses import (
    PROBLEM_RESPONSES,
    SUBMISSION_RESPONSES,
    Conflict,
    validate_body,
)
from annotation.api.serializers import (
    CorrectionSerializer,
    LabelSerializer,
    NoOfferSerializer,
    OfferSerializer,
    ProjectDetailSerializer,
    ProjectSerializer,
    ShownSerializer,
    SubmissionSerializer,
    UndoSerializer,
)
from annotation.importing import jobs
from annotation.items.filters import LabelFilter
from annotation.labelling import queue, visibility
from annotation.labelling.api.qualification import StoredSerializer
from annotation.models import Account, Label, Project
from annotation.projects import access

NEXT_RESPONSE = PolymorphicProxySerializer(
    component_name="Next",
    serializers=[OfferSerializer, NoOfferSerializer],
    resource_type_field_name=None,
)


class ProjectList(ListAPIView[Project]):
    """The projects you may see, with your role in each."""

    serializer_class = ProjectSerializer
    pagination_class = CursorPages

    def get_queryset(self) -> QuerySet[Project]:
        account = self.request.user
        if not isinstance(account, Account):
            return Project.objects.none()
        return Project.objects.visible_to(account).with_role_of(account)


@extend_schema(responses={200: ProjectDetailSerializer, **PROBLEM_RESPONSES})
@api_view(["GET"])
def project(request: Request, slug: str) -> Response:
    """One project: its task, and its progress."""
    member = access.member_for(request, slug, right="enter")
    return Response(ProjectDetailSerializer(member).data)


@extend_schema(request=None, responses={200: NEXT_RESPONSE, **PROBLEM_RESPONSES})
@api_view(["POST"])
def next_item(request: Request, slug: str) -> Response:
    """Take the next item, or get the item that you hold. If there is no item for you now, the
    response says why."""
    member = access.member_for(request, slug, right="label")
    offer = queue.next_offer(member)
    if isinstance(offer, queue.Offer):
        return Response(OfferSerializer(offer).data)
    told = {"waiting": offer, "importing": jobs.describe_progress(member.project)}
    return Response(NoOfferSerializer(told).data)


class LabelList(ProjectRowList[Label]):
    """Labels with their whole history, oldest first; POST stores a label.

    Labels that you give items after reading others' labels of them count as informed.
    """

    model = Label
    right = "items"
    serializer_class = LabelSerializer
    filter_backends = (DjangoFilterBackend,)
    filterset_class = LabelFilter

    def list_rows(self) -> QuerySet[Label]:
        return Label.objects.in_project(self.member.project).for_export().order_by("pk")

    def paginate_queryset(self, queryset: Any) -> Any:
        shown = super().paginate_queryset(queryset) or []
        others = {label.item_id for label in shown if label.member_id != self.member.pk}
        visibility.record_all_seen(self.member, others, now=timezone.now())
        visibility.record_named(self.member, self.request.GET, now=timezone.now())
        return shown

    @extend_schema(
        request=SubmissionSerializer, responses={201: StoredSerializer, **SUBMISSION_RESPONSES}
    )
    def post(self, request: Request, slug: str) -> Response:
        """Label the shown revision. The same key twice is stored once."""
        member = access.member_for(request, slug, right="label")
        body = SubmissionSerializer(data=request.data)
        validate_body(body)
        made = queue.store_label(member, body.submission())
        return Response(StoredSerializer(made).data, status=201)


@extend_schema(
    request=CorrectionSerializer, responses={201: OfferSerializer, **SUBMISSION_RESPONSES}
)
@api_view(["POST"])
def corrections(request: Request, slug: str) -> Response:
    """Correct a text of the shown revision. You keep the item, and the response has a new key."""
    member = access.member_for(request, slug, right="label")
    body = CorrectionSerializer(data=request.data)
    data = validate_body(body)
    offer = queue.store_correction(member, body.submission(), data["texts"], note=data["note"])
    return Response(OfferSerializer(offer).data, status=201)


@extend_schema(request=ShownSerializer, responses={204: None, **SUBMISSION_RESPONSES})
@api_view(["POST"])
def skip(request: Request, slug: str) -> Response:
    """Skip the shown item: the queue does not offer it to you again."""
    member = access.member_for(request, slug, right="label")
    body = ShownSerializer(data=request.data)
    validate_body(body)
    queue.skip_item(member, body.submission())
    return Response(status=204)


@extend_schema(request=UndoSerializer, responses={200: OfferSerializer, **SUBMISSION_RESPONSES})
@api_view(["POST"])
def undo(request: Request, slug: str) -> Response:
    """Undo your last label and get its item again."""
    member = access.member_for(request, slug, right="label")
    named = validate_body(UndoSerializer(data=request.data))["submission"]
    offer = queue.undo_label(member, shown=named, only_shown=bool(named))
    if offer is None:
        raise Conflict("You have no label to undo.")
    return Response(OfferSerializer(offer).data)


urlpatterns = [
    path("projects/", ProjectList.as_view(), name="api-projects"),
    path("projects/<slug:slug>/", project, name="api-project"),
    path("projects/<slug:slug>/queue/next/", next_item, name="api-next"),
    path("projects/<slug:slug>/queue/skip/", skip, name="api-skip"),
    path("projects/<slug:slug>/labels/", LabelList.as_view(), name="api-labels"),
    path("projects/<slug:slug>/corrections/", corrections, name="api-corrections"),
    path("projects/<slug:slug>/undo/", undo, name="api-undo"),
]
