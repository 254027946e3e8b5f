"""The API of endpoints: who can be asked, within which limits and at which prices."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import api_view
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access, writing
from annotation.api.answering import (
    IF_MATCH,
    PROBLEMS,
    REFUSED,
    Changed,
    check_match,
    checked,
    steadily,
)
from annotation.api.formed import refuse_wrong, wrong
from annotation.api.paging import CursorPages
from judging.api.endpoint_serializers import (
    ChangedEndpointSerializer,
    EndpointSerializer,
    NewEndpointSerializer,
    TriedSerializer,
)
from judging.forms.endpoints import EndpointPageForm
from judging.models import Endpoint
from judging.models.evaluators import SHAPES
from judging.preparing import endpoints, trying

RESTING = "Runs rest on this. Make a new endpoint."


class EndpointList(ListAPIView[Endpoint]):
    """The endpoints of the site, by name: for whoever may start runs in some project."""

    serializer_class = EndpointSerializer
    pagination_class = CursorPages
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Endpoint]:
        if getattr(self, "swagger_fake_view", False):
            return Endpoint.objects.none()
        return endpoints.visible(self.request)

    @extend_schema(
        operation_id="endpoints_create",
        request=NewEndpointSerializer,
        responses={201: EndpointSerializer, **REFUSED},
    )
    def post(self, request: Request) -> Response:
        """Set up an evaluator, as a site admin. Its key stays in the environment of server and
        workers; say here the name of the variable that holds it."""
        by = access.site_admin(request)
        form = EndpointPageForm(checked(NewEndpointSerializer(data=request.data)))
        refuse_wrong(form)
        return Response(EndpointSerializer(endpoints.save(form, by)).data, status=201)


@extend_schema(methods=["GET"], responses={200: EndpointSerializer, **PROBLEMS})
@extend_schema(
    methods=["PATCH"],
    parameters=[IF_MATCH],
    request=ChangedEndpointSerializer,
    responses={200: EndpointSerializer, **REFUSED},
)
@api_view(["GET", "PATCH"])
def endpoint(request: Request, name: str) -> Response:
    """One endpoint; a site admin's PATCH changes what it names and nothing else."""
    if request.method == "PATCH":
        _change(request, get_object_or_404(endpoints.changeable(request), name=name))
    found = endpoints.named(request, name)
    return steadily(EndpointSerializer(found).data, _steady(found))


@extend_schema(request=None, responses={200: TriedSerializer, **PROBLEMS})
@api_view(["POST"])
def tried(request: Request, name: str) -> Response:
    """Ask an endpoint once, outside of runs, which may cost money. No reply is stored."""
    found = endpoints.named(request, name)
    return Response(TriedSerializer(trying.ask(found, timezone.now())).data)


def _change(request: Request, found: Endpoint) -> None:
    shown = _steady(found)
    check_match(request, shown)
    asked = checked(ChangedEndpointSerializer(data=request.data, partial=True))
    form = EndpointPageForm({**shown, **asked}, instance=found)
    if form.resting and (
        stays := [one for one in SHAPES if asked.get(one, shown[one]) != shown[one]]
    ):
        raise wrong({one: [RESTING] for one in stays})
    refuse_wrong(form)
    with writing.transact():
        if _steady(Endpoint.objects.select_for_update().get(pk=found.pk)) != shown:
            raise Changed
        endpoints.save(form, access.site_admin(request))


def _steady(found: Endpoint) -> dict[str, Any]:
    """What people set; what is left and until when to wait changes by itself."""
    return {name: getattr(found, name) for name in EndpointPageForm.base_fields}


urlpatterns = [
    path("endpoints/", EndpointList.as_view(), name="api-endpoints"),
    path("endpoints/<str:name>/", endpoint, name="api-endpoint"),
    path("endpoints/<str:name>/test/", tried, name="api-endpoint-test"),
]
