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

from annotation.api.form_bodies import check_form, form_error
from annotation.api.pagination import CursorPages
from annotation.api.responses import (
    IF_MATCH_PARAMETER,
    PROBLEM_RESPONSES,
    REFUSED_RESPONSES,
    PreconditionFailed,
    check_if_match,
    respond_with_etag,
    validate_body,
)
from annotation.db import transactions
from annotation.projects import access
from judging.evaluators import endpoints, trial_call
from judging.evaluators.forms import EndpointPageForm
from judging.evaluators.models import REQUEST_FIELDS
from judging.evaluators.serializers import (
    ChangedEndpointSerializer,
    EndpointSerializer,
    NewEndpointSerializer,
    TriedSerializer,
)
from judging.models import Endpoint

RUNS_DEPEND = "Runs use this endpoint. Add a new endpoint instead."


class EndpointList(ListAPIView[Endpoint]):
    """The endpoints of the site, by name: for whoever may start runs in some project."""

    serializer_class = EndpointSerializer
    pagination_class = CursorPages
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Endpoint]:
        if getattr(self, "swagger_fake_view", False):
            return Endpoint.objects.none()
        return endpoints.list_visible(self.request)

    @extend_schema(
        operation_id="endpoints_create",
        request=NewEndpointSerializer,
        responses={201: EndpointSerializer, **REFUSED_RESPONSES},
    )
    def post(self, request: Request) -> Response:
        """Set up an evaluator, as a site admin. Its key stays in the environment of server and
        workers; say here the name of the variable that holds it."""
        by = access.require_site_admin(request)
        form = EndpointPageForm(validate_body(NewEndpointSerializer(data=request.data)))
        check_form(form)
        return Response(EndpointSerializer(endpoints.save_endpoint(form, by)).data, status=201)


@extend_schema(methods=["GET"], responses={200: EndpointSerializer, **PROBLEM_RESPONSES})
@extend_schema(
    methods=["PATCH"],
    parameters=[IF_MATCH_PARAMETER],
    request=ChangedEndpointSerializer,
    responses={200: EndpointSerializer, **REFUSED_RESPONSES},
)
@api_view(["GET", "PATCH"])
def endpoint(request: Request, name: str) -> Response:
    """One endpoint; a site admin's PATCH changes what it names and nothing else."""
    if request.method == "PATCH":
        _update_endpoint(request, get_object_or_404(endpoints.list_changeable(request), name=name))
    found = endpoints.get_visible(request, name)
    return respond_with_etag(EndpointSerializer(found).data, _get_settings(found))


@extend_schema(request=None, responses={200: TriedSerializer, **PROBLEM_RESPONSES})
@api_view(["POST"])
def try_endpoint(request: Request, name: str) -> Response:
    """Ask an endpoint once, outside of runs, which may cost money. No reply is stored."""
    found = endpoints.get_visible(request, name)
    return Response(TriedSerializer(trial_call.run_trial(found, timezone.now())).data)


def _update_endpoint(request: Request, found: Endpoint) -> None:
    shown = _get_settings(found)
    check_if_match(request, shown)
    asked = validate_body(ChangedEndpointSerializer(data=request.data, partial=True))
    form = EndpointPageForm({**shown, **asked}, instance=found)
    if form.resting and (
        stays := [one for one in REQUEST_FIELDS if asked.get(one, shown[one]) != shown[one]]
    ):
        raise form_error({one: [RUNS_DEPEND] for one in stays})
    check_form(form)
    with transactions.transact():
        if _get_settings(Endpoint.objects.select_for_update().get(pk=found.pk)) != shown:
            raise PreconditionFailed
        endpoints.save_endpoint(form, access.require_site_admin(request))


def _get_settings(found: Endpoint) -> dict[str, Any]:
    """What people set; what is left and until when to wait changes by itself."""
    return {name: getattr(found, name) for name in EndpointPageForm.base_fields}


urlpatterns = [
    path("endpoints/", EndpointList.as_view(), name="api-endpoints"),
    path("endpoints/<str:name>/", endpoint, name="api-endpoint"),
    path("endpoints/<str:name>/test/", try_endpoint, name="api-endpoint-test"),
]
