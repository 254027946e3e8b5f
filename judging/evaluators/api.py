"""The API of endpoints: evaluators with their limits and prices.

It never accepts or returns an API key, only the name of the environment variable that has the key.
"""

from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.form_bodies import FormSerializer, check_form, form_error
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
from judging.evaluators.keys import is_key_set
from judging.evaluators.presets import load_presets
from judging.evaluators.providers import merge_defaults
from judging.evaluators.ratings import NAME_LENGTH, SOURCE_LENGTH
from judging.evaluators.trial_call import TrialResult
from judging.models import Endpoint


class CurrencyField(serializers.CharField):
    """The currency of the amounts beside it: that of the site, a code of three letters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(read_only=True, **options)

    def get_attribute(self, instance: Any) -> str:
        return settings.CURRENCY


class RatingSerializer(serializers.Serializer[Any]):
    """A rating of the model from elsewhere: its name, its value, where it is from, and its date."""

    name = serializers.CharField(max_length=NAME_LENGTH)
    value = serializers.FloatField()
    source = serializers.CharField(max_length=SOURCE_LENGTH)  # type: ignore[assignment]
    date = serializers.DateField()


class EndpointSerializer(serializers.ModelSerializer[Endpoint]):
    """An evaluator. Prices are per million tokens in `currency`. `price_in` and `price_out` are
    null if unknown; `price_cached` and `price_reasoning` are null if such tokens cost as much as
    other input and output.

    `sends` are the parameters of every request: the defaults, with the values in `parameters`
    taking precedence. `key_set`: whether the server finds a key in `key_variable`. `remaining`: the
    remaining limits in the provider's response headers, and when they were read. An archived
    endpoint, with `archived_at`, takes no new runs. `ratings` are those of the model from
    elsewhere, with which results can compare precision and recall.
    """

    sends = serializers.SerializerMethodField()
    key_set = serializers.SerializerMethodField()
    currency = CurrencyField()
    ratings = RatingSerializer(many=True, read_only=True)
    remaining = serializers.JSONField(read_only=True)

    class Meta:
        model = Endpoint
        fields = (
            "name",
            "provider",
            "address",
            "key_variable",
            "key_set",
            "model",
            "api",
            "template",
            "json_mode",
            "parameters",
            "sends",
            "in_flight",
            "per_minute",
            "tokens_per_minute",
            "timeout",
            "price_in",
            "price_out",
            "price_cached",
            "price_reasoning",
            "currency",
            "ratings",
            "paused_until",
            "remaining",
            "created_at",
            "archived_at",
        )
        read_only_fields = fields

    def get_sends(self, endpoint: Endpoint) -> dict[str, Any]:
        return merge_defaults(endpoint.pinned())

    def get_key_set(self, endpoint: Endpoint) -> bool:
        return is_key_set(endpoint.key_variable)


class NewEndpointSerializer(FormSerializer):
    """A new evaluator. A token limit is added to the parameters of a chat endpoint, unless they
    already have a limit or set it to null.
    """

    form = EndpointPageForm
    leaves = frozenset({"ratings"})
    ratings = RatingSerializer(many=True, default=list)


class ChangedEndpointSerializer(FormSerializer):
    """New values for some settings of an endpoint. Once runs use the endpoint, the settings that
    shape its requests are fixed: provider, address, model, parameters, api, template and json_mode.
    Of an endpoint that makes no calls, such as one of recorded replies, only `ratings` can change.
    """

    form = EndpointPageForm
    leaves = frozenset({"name", "ratings"})
    ratings = RatingSerializer(many=True)


class PresetSerializer(serializers.Serializer[Any]):
    """Settings of a usual evaluator. To create an endpoint from them, send `values` with a `name`
    and a `model` of your own; other settings that you send replace those of the preset. `why` says
    what the preset sets and why.
    """

    slug = serializers.CharField()
    title = serializers.CharField()
    why = serializers.CharField()
    values = serializers.DictField()


class TriedSerializer(serializers.Serializer[TrialResult]):
    """The result of a test call; `problem` says why there is no answer, and `warnings` why runs
    could not use such an answer, or that another model gave it. `cost` is null if a price or a
    token count is unknown."""

    problem = serializers.CharField(allow_blank=True)
    warnings = serializers.ListField(child=serializers.CharField())
    text = serializers.CharField(allow_blank=True)
    finish = serializers.CharField(allow_blank=True)
    model = serializers.CharField(allow_blank=True)
    tokens_in = serializers.IntegerField(allow_null=True)
    tokens_out = serializers.IntegerField(allow_null=True)
    tokens_cached = serializers.IntegerField(allow_null=True)
    tokens_reasoning = serializers.IntegerField(allow_null=True)
    thinking = serializers.CharField(allow_blank=True)
    seconds = serializers.FloatField(allow_null=True)
    cost = serializers.DecimalField(max_digits=20, decimal_places=12, allow_null=True)
    currency = CurrencyField()


RUNS_DEPEND = "Runs use this endpoint. Add a new endpoint instead."
NO_CALLS = "This endpoint makes no calls, so only its ratings can change."


class EndpointList(ListAPIView[Endpoint]):
    """The endpoints of the site, sorted by name, archived ones too, for users who may start runs in
    any project."""

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
        """Add an evaluator, as a site admin. The API key stays in the environment of the server and
        the workers; the request contains only the name of its environment variable.
        """
        by = access.require_site_admin(request)
        form = EndpointPageForm(validate_body(NewEndpointSerializer(data=request.data)))
        check_form(form)
        return Response(EndpointSerializer(endpoints.save_endpoint(form, by)).data, status=201)


@extend_schema(responses={200: PresetSerializer(many=True), **PROBLEM_RESPONSES})
@api_view(["GET"])
def presets(request: Request) -> Response:
    """The presets from which a site admin can create an endpoint, in the order of the page."""
    access.require_site_admin(request)
    return Response(PresetSerializer([*load_presets().values()], many=True).data)


@extend_schema(methods=["GET"], responses={200: EndpointSerializer, **PROBLEM_RESPONSES})
@extend_schema(
    methods=["PATCH"],
    parameters=[IF_MATCH_PARAMETER],
    request=ChangedEndpointSerializer,
    responses={200: EndpointSerializer, **REFUSED_RESPONSES},
)
@extend_schema(methods=["DELETE"], responses={204: None, **REFUSED_RESPONSES})
@api_view(["GET", "PATCH", "DELETE"])
def endpoint(request: Request, name: str) -> Response:
    """One endpoint; a site admin's PATCH changes only the given settings. DELETE works only if no
    run uses the endpoint."""
    if request.method == "DELETE":
        found = endpoints.get_changeable(request, name)
        endpoints.delete_endpoint(found, access.require_site_admin(request))
        return Response(status=204)
    if request.method == "PATCH":
        _update_endpoint(request, endpoints.get_changeable(request, name))
    found = endpoints.get_visible(request, name)
    return respond_with_etag(EndpointSerializer(found).data, _get_settings(found))


@extend_schema(request=None, responses={200: TriedSerializer, **PROBLEM_RESPONSES})
@api_view(["POST"])
def try_endpoint(request: Request, name: str) -> Response:
    """Make one test call to an endpoint, which may cost money. The reply is not stored."""
    found = endpoints.get_visible(request, name)
    return Response(TriedSerializer(trial_call.run_trial(found, timezone.now())).data)


@extend_schema(request=None, responses={200: EndpointSerializer, **REFUSED_RESPONSES})
@api_view(["POST"])
def change_endpoint(request: Request, name: str, step: str) -> Response:
    """Archive an endpoint, as a site admin, so that it takes no new runs, or restore it; runs that
    use it go on. Or end the pause that its provider asked for."""
    found = endpoints.get_changeable(request, name)
    endpoints.STEPS[step](found, access.require_site_admin(request))
    return Response(EndpointSerializer(found).data)


def _update_endpoint(request: Request, found: Endpoint) -> None:
    shown = _get_settings(found)
    check_if_match(request, shown)
    asked = validate_body(ChangedEndpointSerializer(data=request.data, partial=True))
    form = EndpointPageForm({**shown, **asked}, instance=found)
    stays = [one for one in asked if form.fields[one].disabled and asked[one] != shown[one]]
    if stays:
        raise form_error({one: [NO_CALLS if form.offline else RUNS_DEPEND] for one in stays})
    check_form(form)
    with transactions.transact():
        if _get_settings(Endpoint.objects.select_for_update().get(pk=found.pk)) != shown:
            raise PreconditionFailed
        endpoints.save_endpoint(form, access.require_site_admin(request))


def _get_settings(found: Endpoint) -> dict[str, Any]:
    """Return the settings that people can change, to compute the ETag. Remaining limits and pauses
    are left out, since they change without anybody editing the endpoint.
    """
    return {name: getattr(found, name) for name in EndpointPageForm.base_fields}


urlpatterns = [
    path("endpoint-presets/", presets, name="api-endpoint-presets"),
    path("endpoints/", EndpointList.as_view(), name="api-endpoints"),
    path("endpoints/<path:name>/test/", try_endpoint, name="api-endpoint-test"),
    path(
        "endpoints/<path:name>/archive/",
        change_endpoint,
        {"step": "archive"},
        name="api-endpoint-archive",
    ),
    path(
        "endpoints/<path:name>/restore/",
        change_endpoint,
        {"step": "restore"},
        name="api-endpoint-restore",
    ),
    path(
        "endpoints/<path:name>/end-pause/",
        change_endpoint,
        {"step": "end-pause"},
        name="api-endpoint-end-pause",
    ),
    # The last one, since names from before they were checked may have a slash.
    path("endpoints/<path:name>/", endpoint, name="api-endpoint"),
]
