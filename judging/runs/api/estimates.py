"""The API to estimate what new runs would request and cost, and to start pilots."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.idempotency import KEY_PARAMETER, make_idempotent
from annotation.projects import access
from judging import tasks
from judging.evaluators.api import CurrencyField
from judging.runs import start
from judging.runs.api.responses import (
    IDEMPOTENT_RESPONSES,
    REFUSAL_RESPONSES,
    call_or_422,
    parse_run_body,
)
from judging.runs.api.serializers import PriceRangeSerializer, ShortageSerializer, StartSerializer
from judging.runs.start import PlannedRun


class AmountSerializer(serializers.Serializer[Any]):
    """An amount with the interval from the pilot."""

    value = serializers.DecimalField(max_digits=20, decimal_places=6)
    low = serializers.DecimalField(max_digits=20, decimal_places=6)
    high = serializers.DecimalField(max_digits=20, decimal_places=6)


class EstimateSerializer(serializers.Serializer[Any]):
    """A value with its 95 % interval. An undefined value is null and has a reason."""

    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField()
    reason = serializers.CharField(allow_blank=True)


class PilotSerializer(serializers.Serializer[Any]):
    """The usage of one call, estimated from `n` stored replies."""

    n = serializers.IntegerField()
    tokens = EstimateSerializer()
    cost = EstimateSerializer()


class TokenRangeSerializer(serializers.Serializer[Any]):
    """Tokens of all requests that are still to be sent."""

    low = serializers.IntegerField()
    high = serializers.IntegerField()


class TimeSerializer(serializers.Serializer[Any]):
    """How long the requests may take, in seconds, if a call takes `per_call` seconds as the latest
    `n` replies did: those of the same `strategy` and endpoint, of the same `endpoint`, or of the
    same `model` at other endpoints. Retries and pauses are not included."""

    seconds = serializers.FloatField()
    per_call = serializers.FloatField()
    in_flight = serializers.IntegerField()
    n = serializers.IntegerField()
    replies_of = serializers.CharField()


class SameItemsSerializer(serializers.Serializer[Any]):
    """What became of the `items` of run `number`: the new run can use `used` of them, `changed` of
    these with another text than that run, and `left_out` not."""

    number = serializers.IntegerField()
    items = serializers.IntegerField()
    used = serializers.IntegerField()
    changed = serializers.IntegerField()
    left_out = serializers.IntegerField()


class PlannedRunSerializer(serializers.Serializer[PlannedRun]):
    """What a run would request. `stored` is the number of its `requests` that are already answered
    and cost nothing.

    `price` is the range of the cost, from a pilot or, before there is one, from the length of the
    prompts with replies as short as the endpoint's earlier ones to `cost`, with replies up to the
    token limit; both are null if a price is unknown. `by_pilot` has an interval once 30 calls are
    answered. `pilots` are the pilot runs that are still in progress. `refusal` says why the run
    cannot start, "" if it can, and `shortages` are the limits that the price may exceed.
    `same_items` is null without `same_as`. `axes` are those that the run will pin: "main" stands
    for the axis of each item's ability, "all" for all; empty for a strategy without axes. `drawn`
    are the numbers of items that get each option of what a generator draws. `language` is the one
    to translate into, "" for other strategies. If the run is started with the same seed and this
    `items_digest`, it starts with these items or not at all.
    """

    strategy = serializers.CharField(source="strategy.slug")
    strategy_version = serializers.IntegerField(source="strategy.number")
    endpoint = serializers.CharField(source="endpoint.name")
    items = serializers.IntegerField(source="estimate.items")
    calls = serializers.IntegerField(source="estimate.calls")
    requests = serializers.IntegerField(source="estimate.requests")
    stored = serializers.IntegerField(source="estimate.stored")
    to_ask = serializers.IntegerField(source="estimate.to_ask")
    cost = serializers.DecimalField(
        source="estimate.cost", max_digits=20, decimal_places=6, allow_null=True
    )
    price = PriceRangeSerializer(source="estimate.price", allow_null=True)
    tokens_in = TokenRangeSerializer(source="estimate.tokens_in")
    tokens_out = TokenRangeSerializer(source="estimate.tokens_out")
    currency = CurrencyField()
    time = TimeSerializer(source="estimate.time", allow_null=True)
    pilot = PilotSerializer(source="estimate.pilot")
    by_pilot = AmountSerializer(source="estimate.by_pilot", allow_null=True)
    wants_pilot = serializers.BooleanField()
    pilots = serializers.SerializerMethodField()
    refusal = serializers.CharField(allow_blank=True)
    shortages = ShortageSerializer(many=True)
    labelling = serializers.IntegerField(source="estimate.labelling")
    examples = serializers.ListField(source="estimate.examples", child=serializers.CharField())
    same_items = SameItemsSerializer(source="estimate.same_items", allow_null=True)
    axes = serializers.ListField(source="estimate.axes", child=serializers.CharField())
    drawn = serializers.DictField(
        source="estimate.drawn", child=serializers.DictField(child=serializers.IntegerField())
    )
    language = serializers.CharField(allow_blank=True)
    items_digest = serializers.CharField(source="estimate.items_digest")

    def get_pilots(self, planned: PlannedRun) -> list[int]:
        return [run.number for run in planned.pilots]


@extend_schema(request=StartSerializer, responses={200: PlannedRunSerializer, **REFUSAL_RESPONSES})
@api_view(["POST"])
def estimate(request: Request, slug: str) -> Response:
    """Estimate what a run would request and cost. Nothing is started."""
    member = access.member_for(request, slug, right="run")
    wish = parse_run_body(member, request.data)
    [planned] = call_or_422(lambda: start.estimate_runs(member.project, wish))
    return Response(PlannedRunSerializer(planned).data)


@extend_schema(
    parameters=[KEY_PARAMETER],
    request=StartSerializer,
    responses={200: PlannedRunSerializer, **IDEMPOTENT_RESPONSES},
)
@api_view(["POST"])
@make_idempotent("run", takes_long=True)
def pilot(request: Request, slug: str) -> Response:
    """Start a pilot that sends what is missing until 30 calls are answered, unless a pilot is in
    progress."""
    member = access.member_for(request, slug, right="run")
    wish = parse_run_body(member, request.data)
    for begun in call_or_422(
        lambda: start.start_pilots(member.project, wish, access.ensure_membership(member))
    ):
        tasks.notify_workers(begun.endpoint_id)
    [planned] = call_or_422(lambda: start.estimate_runs(member.project, wish))
    return Response(PlannedRunSerializer(planned).data)


urlpatterns = [
    path("projects/<slug:slug>/runs/estimate/", estimate, name="api-runs-estimate"),
    path("projects/<slug:slug>/runs/pilot/", pilot, name="api-runs-pilot"),
]
