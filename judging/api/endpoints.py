"""The API of endpoints: who can be asked, within which limits and at which prices."""

from typing import Any

from django.db.models import QuerySet
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import api_view
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.answering import PROBLEMS
from annotation.api.paging import CursorPages
from judging.api.endpoint_serializers import EndpointSerializer
from judging.models import Endpoint
from judging.preparing import endpoints


class EndpointList(ListAPIView[Endpoint]):
    """The endpoints of the site, by name: for whoever may start runs in some project."""

    serializer_class = EndpointSerializer
    pagination_class = CursorPages
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Endpoint]:
        if getattr(self, "swagger_fake_view", False):
            return Endpoint.objects.none()
        return endpoints.visible(self.request)


@extend_schema(responses={200: EndpointSerializer, **PROBLEMS})
@api_view(["GET"])
def endpoint(request: Request, name: str) -> Response:
    """One endpoint."""
    return Response(EndpointSerializer(endpoints.named(request, name)).data)


urlpatterns = [
    path("endpoints/", EndpointList.as_view(), name="api-endpoints"),
    path("endpoints/<str:name>/", endpoint, name="api-endpoint"),
]
