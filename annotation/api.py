"""The API of the human half: the same queue, the same access and the same words as the pages."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import path
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    PolymorphicProxySerializer,
    extend_schema,
)
from rest_framework.decorators import api_view
from rest_framework.exceptions import APIException, ParseError
from rest_framework.generics import ListAPIView
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from annotation import access, queue
from annotation.filters import ItemFilter, LabelFilter
from annotation.leads import agreeing, agreement
from annotation.models import Account, Item, Label, Project
from annotation.serializers import (
    AgreementSerializer,
    CorrectionSerializer,
    ItemDetailSerializer,
    ItemSerializer,
    LabelSerializer,
    NoOfferSerializer,
    OfferSerializer,
    ProblemSerializer,
    ProjectDetailSerializer,
    ProjectSerializer,
    SubmissionSerializer,
)
from annotation.serializers_practice import StoredSerializer

PROBLEMS: dict[int, Any] = {
    403: OpenApiResponse(ProblemSerializer, "Your role does not allow this."),
    404: OpenApiResponse(ProblemSerializer, "Not there, or not yours to see."),
}
SUBMISSION_PROBLEMS = PROBLEMS | {
    409: OpenApiResponse(ProblemSerializer, "The item changed; nothing was stored."),
    422: OpenApiResponse(ProblemSerializer, "The submission cannot be taken."),
}
OFFERED = PolymorphicProxySerializer(
    component_name="Next",
    serializers=[OfferSerializer, NoOfferSerializer],
    resource_type_field_name=None,
)


class Unprocessable(APIException):
    """A request that is well formed and cannot be taken all the same."""

    status_code = 422


class Conflict(APIException):
    """What the request speaks of is no longer so."""

    status_code = 409


class Pages(LimitOffsetPagination):
    default_limit = 100
    max_limit = 1000


class ProjectList(ListAPIView[Project]):
    """The projects you may see, with your role in each."""

    serializer_class = ProjectSerializer
    pagination_class = Pages

    def get_queryset(self) -> QuerySet[Project]:
        account = self.request.user
        if not isinstance(account, Account):
            return Project.objects.none()
        return Project.objects.visible_to(account).with_role_of(account)


@extend_schema(responses={200: ProjectDetailSerializer, **PROBLEMS})
@api_view(["GET"])
def project(request: Request, slug: str) -> Response:
    """One project: what it asks of you, and how far it has come."""
    member = access.member_for(request, slug, right="enter")
    return Response(ProjectDetailSerializer(member).data)


@extend_schema(request=None, responses={200: OFFERED, **PROBLEMS})
@api_view(["POST"])
def next_item(request: Request, slug: str) -> Response:
    """Take the next item, or be shown the one you hold; else why there is none for you now."""
    member = access.member_for(request, slug, right="label")
    return Response(_offered(queue.next_offer(member)))


class LabelList(ListAPIView[Label]):
    """Labels with their whole history, oldest first, and the place to send one to."""

    serializer_class = LabelSerializer
    pagination_class = Pages
    filter_backends = (DjangoFilterBackend,)
    filterset_class = LabelFilter

    def get_queryset(self) -> QuerySet[Label]:
        if getattr(self, "swagger_fake_view", False):
            return Label.objects.none()
        member = access.member_for(self.request, self.kwargs["slug"], right="items")
        return Label.objects.in_project(member.project).for_export()

    @extend_schema(
        request=SubmissionSerializer, responses={201: StoredSerializer, **SUBMISSION_PROBLEMS}
    )
    def post(self, request: Request, slug: str) -> Response:
        """Say what you think of the shown revision. The same key twice is stored once."""
        member = access.member_for(request, slug, right="label")
        body = SubmissionSerializer(data=request.data)
        data = checked(body)
        try:
            made = queue.label(
                member,
                **body.shown(),
                answers=data["answers"],
                comment=data["comment"],
                seconds=data["seconds"],
            )
        except queue.Refused as problem:
            raise refusal(problem) from problem
        return Response(StoredSerializer(made).data, status=201)


@extend_schema(
    request=CorrectionSerializer, responses={201: OfferSerializer, **SUBMISSION_PROBLEMS}
)
@api_view(["POST"])
def corrections(request: Request, slug: str) -> Response:
    """Correct a text of the shown revision; the item stays yours, with a new key."""
    member = access.member_for(request, slug, right="label")
    body = CorrectionSerializer(data=request.data)
    data = checked(body)
    try:
        offer = queue.correct(member, **body.shown(), texts=data["texts"], note=data["note"])
    except queue.Refused as problem:
        raise refusal(problem) from problem
    return Response(OfferSerializer(offer).data, status=201)


@extend_schema(request=None, responses={200: OfferSerializer, **SUBMISSION_PROBLEMS})
@api_view(["POST"])
def undo(request: Request, slug: str) -> Response:
    """Take your last label back and get its item again."""
    member = access.member_for(request, slug, right="label")
    offer = queue.undo(member)
    if offer is None:
        raise Conflict("There is no label of yours whose item could be shown again.")
    return Response(OfferSerializer(offer).data)


class ItemList(ListAPIView[Item]):
    """Items without their texts, in their order."""

    serializer_class = ItemSerializer
    pagination_class = Pages
    filter_backends = (DjangoFilterBackend,)
    filterset_class = ItemFilter

    def get_queryset(self) -> QuerySet[Item]:
        if getattr(self, "swagger_fake_view", False):
            return Item.objects.none()
        member = access.member_for(self.request, self.kwargs["slug"], right="items")
        return Item.objects.in_project(member.project).for_list()


@extend_schema(responses={200: ItemDetailSerializer, **PROBLEMS})
@api_view(["GET"])
def item(request: Request, slug: str, key: str) -> Response:
    """One item with all revisions of its texts."""
    member = access.member_for(request, slug, right="items")
    found = Item.objects.in_project(member.project).for_page(key)
    if found is None:
        raise Http404
    return Response(ItemDetailSerializer(found).data)


@extend_schema(
    parameters=[
        OpenApiParameter("field", description="A question of the task type; none means all."),
        OpenApiParameter("category", description="Only items of this category."),
    ],
    responses={200: AgreementSerializer, 400: ProblemSerializer, **PROBLEMS},
)
@api_view(["GET"])
def agreements(request: Request, slug: str) -> Response:
    """How far people agree: figures with their intervals, and who said what where another did."""
    member = access.member_for(request, slug, right="manage")
    wanted, category = (request.query_params.get(name, "") for name in ("field", "category"))
    asked = agreeing.questions(member.project)
    chosen = [one for one in asked if wanted in ("", one.name)]
    if wanted and not chosen:
        known = ", ".join(one.name for one in asked) or "nothing that people could agree on"
        raise ParseError(f"This project does not ask {wanted!r}. It asks {known}.")
    found = [agreement.measure(member.project, one, category) for one in chosen]
    figures = [agreement.as_row(row) for one in found for row in one.rows]
    cells = [agreement.as_cell(one.question, cell) for one in found for cell in one.cells]
    return Response(AgreementSerializer({"figures": figures, "confusion": cells}).data)


def _offered(offer: queue.Offer | queue.Waiting) -> Any:
    if isinstance(offer, queue.Waiting):
        return NoOfferSerializer({"waiting": offer}).data
    return OfferSerializer(offer).data


def checked(body: BaseSerializer[Any]) -> dict[str, Any]:
    if not body.is_valid():
        raise Unprocessable({"detail": "The body cannot be used.", "problems": dict(body.errors)})
    data: dict[str, Any] = body.validated_data
    return data


def refusal(problem: queue.Refused) -> APIException:
    """How the API says that a submission cannot be taken: 409 if the item changed, else 422."""
    return (
        Conflict(str(problem)) if isinstance(problem, queue.Stale) else Unprocessable(str(problem))
    )


urlpatterns = [
    path("projects/", ProjectList.as_view(), name="api-projects"),
    path("projects/<slug:slug>/", project, name="api-project"),
    path("projects/<slug:slug>/queue/next/", next_item, name="api-next"),
    path("projects/<slug:slug>/labels/", LabelList.as_view(), name="api-labels"),
    path("projects/<slug:slug>/corrections/", corrections, name="api-corrections"),
    path("projects/<slug:slug>/undo/", undo, name="api-undo"),
    path("projects/<slug:slug>/agreement/", agreements, name="api-agreement"),
    path("projects/<slug:slug>/items/", ItemList.as_view(), name="api-items"),
    path("projects/<slug:slug>/items/<path:key>/", item, name="api-item"),
]
