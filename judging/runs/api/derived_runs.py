"""The API to estimate, pilot, clone, repeat and combine runs, and to parse their replies again."""

from typing import Any

from django.db.models import QuerySet
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.idempotency import KEY_PARAMETER, make_idempotent
from annotation.api.project_rows import ProjectRowList
from annotation.api.responses import validate_body
from annotation.projects import access
from judging import tasks
from judging.evaluators.api import CurrencyField
from judging.models import Call, Reading, Reply, Run
from judging.runs import canaries, choices, lifecycle, progress, start
from judging.runs import derived as runs_derived
from judging.runs import reparse as runs_reparse
from judging.runs.api.responses import (
    IDEMPOTENT_RESPONSES,
    REFUSAL_RESPONSES,
    RUN_PATH,
    call_or_422,
    parse_run_body,
)
from judging.runs.api.serializers import (
    DescriptionSerializer,
    RunCapField,
    StartSerializer,
    WatchedRunSerializer,
)
from judging.runs.canaries import Canary, Drift
from judging.runs.choices import get_run_or_404
from judging.runs.reparse import OutcomeChange, ReparsePreview
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


class PriceRangeSerializer(serializers.Serializer[Any]):
    """What a run costs, in `currency`."""

    low = serializers.DecimalField(max_digits=20, decimal_places=6)
    high = serializers.DecimalField(max_digits=20, decimal_places=6)


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


class AskingSerializer(serializers.Serializer[PlannedRun]):
    """What a run would request. `stored` is the number of its `requests` that are already answered
    and cost nothing.

    `price` is the range of the cost, from a pilot or, before there is one, from the length of the
    prompts with replies as short as the endpoint's earlier ones to `cost`, with replies up to the
    token limit; both are null if a price is unknown. `by_pilot` has an interval once 30 calls are
    answered. `pilots` are the pilot runs that are still in progress. `same_items` is null without
    `same_as`.
    """

    strategy = serializers.CharField(source="strategy.slug")
    strategy_version = serializers.IntegerField(source="strategy.number")
    endpoint = serializers.CharField(source="endpoint.name")
    items = serializers.IntegerField(source="foreseen.items")
    calls = serializers.IntegerField(source="foreseen.calls")
    requests = serializers.IntegerField(source="foreseen.requests")
    stored = serializers.IntegerField(source="foreseen.stored")
    to_ask = serializers.IntegerField(source="foreseen.to_ask")
    cost = serializers.DecimalField(
        source="foreseen.cost", max_digits=20, decimal_places=6, allow_null=True
    )
    price = PriceRangeSerializer(source="foreseen.price", allow_null=True)
    tokens_in = TokenRangeSerializer(source="foreseen.tokens_in")
    tokens_out = TokenRangeSerializer(source="foreseen.tokens_out")
    currency = CurrencyField()
    time = TimeSerializer(source="foreseen.time", allow_null=True)
    pilot = PilotSerializer(source="foreseen.pilot")
    by_pilot = AmountSerializer(source="foreseen.by_pilot", allow_null=True)
    wants_pilot = serializers.BooleanField()
    pilots = serializers.SerializerMethodField()
    labelling = serializers.IntegerField(source="foreseen.labelling")
    examples = serializers.ListField(source="foreseen.examples", child=serializers.CharField())
    same_items = SameItemsSerializer(source="foreseen.same_items", allow_null=True)

    def get_pilots(self, asking: PlannedRun) -> list[int]:
        return [run.number for run in asking.pilots]


class AgainSerializer(serializers.Serializer[Any]):
    """Send requests again. While the items are being labelled, only a lead may do this."""

    while_labelling = serializers.BooleanField(default=False)


class CloneSerializer(AgainSerializer):
    """How to clone a run: with the current or the pinned revisions of the items, and with the same
    endpoint or, if a name is given, another endpoint."""

    endpoint = serializers.CharField(default=None, allow_null=True, max_length=80)
    as_pinned = serializers.BooleanField(default=False)
    cap = RunCapField()


class DeriveSerializer(DescriptionSerializer):
    """The numbers of the runs to combine, and the strategy that combines their outcomes. Weighted
    votes need `weights`, one for each of the `runs`, in their order. Name, tags and note are those
    of the new run."""

    strategy = serializers.CharField(max_length=80)
    runs = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2_147_483_647), max_length=1000
    )
    weights = serializers.ListField(
        child=serializers.FloatField(min_value=0, max_value=runs_derived.MOST_WEIGHT),
        max_length=1000,
        default=list,
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        runs, weights = attrs["runs"], attrs["weights"]
        if weights and len(weights) != len(set(runs)):
            raise serializers.ValidationError(
                {"weights": "Give one weight for each run, and each run once."}
            )
        return attrs


class ParserSerializer(serializers.Serializer[Any]):
    """The parser for the replies; null for the current version of the run's own parser."""

    parser = serializers.CharField(default=None, allow_null=True, allow_blank=True, max_length=80)


class OutcomeChangeSerializer(serializers.Serializer[OutcomeChange]):
    """An item on one axis, with its current outcome and the outcome it would get."""

    item = serializers.CharField()
    axis = serializers.CharField(allow_blank=True)
    before = serializers.CharField()
    after = serializers.CharField()


class ReparsedSerializer(serializers.Serializer[ReparsePreview]):
    """What another parser would change. `counts` covers all changes, `changes` lists only the first
    changes."""

    parser = serializers.CharField()
    outcomes = serializers.IntegerField()
    changed = serializers.IntegerField()
    counts = serializers.SerializerMethodField()
    changes = OutcomeChangeSerializer(many=True)

    def get_counts(self, preview: ReparsePreview) -> list[dict[str, Any]]:
        return [
            {"before": before, "after": after, "n": n}
            for (before, after), n in preview.counts.most_common()
        ]


class DriftSerializer(serializers.Serializer[Drift]):
    """How many outcomes of a repetition differ from the first run, among the outcomes decided in
    both runs."""

    run = serializers.IntegerField(source="run.number")
    state = serializers.CharField(source="run.state")
    asked_at = serializers.DateTimeField(source="run.created_at")
    changed = serializers.IntegerField()
    share = EstimateSerializer()


class CanarySerializer(serializers.Serializer[Canary]):
    """The numbers of all runs of a canary, and the drift of each later run."""

    askings = serializers.SerializerMethodField()
    drifts = DriftSerializer(many=True)

    def get_askings(self, canary: Canary) -> list[int]:
        return [run.number for run in canary.askings]


class ReplySerializer(serializers.Serializer[Reply]):
    """The reply as the provider sent it. `thinking` is what the model wrote before its reply, null
    if nothing is known of it; it is never parsed. `tokens_cached` are a part of `tokens_in`,
    `tokens_reasoning` a part of `tokens_out`; null if not reported."""

    text = serializers.CharField(allow_blank=True)
    finish = serializers.CharField()
    model = serializers.CharField(allow_blank=True)
    tokens_in = serializers.IntegerField(allow_null=True)
    tokens_out = serializers.IntegerField(allow_null=True)
    tokens_cached = serializers.IntegerField(allow_null=True)
    tokens_reasoning = serializers.IntegerField(allow_null=True)
    thinking = serializers.CharField(allow_null=True, allow_blank=True)
    cost = serializers.DecimalField(max_digits=20, decimal_places=12, allow_null=True)
    currency = CurrencyField()
    asked_at = serializers.DateTimeField()
    seconds = serializers.FloatField()


class StoredReadingSerializer(serializers.Serializer[Reading]):
    """What a parser read in a reply: a value, or the cause why there is no value."""

    parser = serializers.CharField()
    value = serializers.JSONField()
    path = serializers.CharField(allow_blank=True)
    cause = serializers.CharField(allow_blank=True)
    explanation = serializers.CharField(allow_blank=True)


class CallSerializer(serializers.Serializer[Call]):
    """A call of a run for one item, with its request, reply and readings. `supplement` is the
    number of the supplement that asked the item again, 0 for the run's own calls. `shows` is the
    value of the earlier reading that the prompt includes. `message` is the provider's error
    message."""

    item = serializers.CharField(source="outcome.item.key")
    axis = serializers.CharField(allow_blank=True)
    role = serializers.CharField()
    order = serializers.IntegerField()
    step = serializers.IntegerField()
    sample = serializers.IntegerField()
    supplement = serializers.IntegerField()
    request = serializers.CharField(source="request.digest")
    state = serializers.CharField(source="request.state")
    cause = serializers.CharField(source="request.cause", allow_blank=True)
    message = serializers.CharField(source="request.message", allow_blank=True)
    attempts = serializers.IntegerField(source="request.attempts")
    shows = serializers.JSONField(source="fed_by.value", default=None)
    reply = ReplySerializer(source="request.reply", default=None, allow_null=True)
    readings = serializers.SerializerMethodField()

    @extend_schema_field(StoredReadingSerializer(many=True))
    def get_readings(self, call: Call) -> Any:
        reply = getattr(call.request, "reply", None)
        return [
            StoredReadingSerializer(one).data for one in (reply.readings.all() if reply else ())
        ]


ITEM_PARAMETER = OpenApiParameter("item", OpenApiTypes.STR, description="The key of one item.")


@extend_schema(request=StartSerializer, responses={200: AskingSerializer, **REFUSAL_RESPONSES})
@api_view(["POST"])
def estimate(request: Request, slug: str) -> Response:
    """Estimate what a run would request and cost. Nothing is started."""
    member = access.member_for(request, slug, right="run")
    wish = parse_run_body(member, request.data)
    [asking] = call_or_422(lambda: start.estimate_runs(member.project, wish))
    return Response(AskingSerializer(asking).data)


@extend_schema(
    parameters=[KEY_PARAMETER],
    request=StartSerializer,
    responses={200: AskingSerializer, **IDEMPOTENT_RESPONSES},
)
@api_view(["POST"])
@make_idempotent("run", takes_long=True)
def pilot(request: Request, slug: str) -> Response:
    """Start a pilot of about 30 calls, unless 30 calls are already answered or a pilot is in
    progress."""
    member = access.member_for(request, slug, right="run")
    wish = parse_run_body(member, request.data)
    for begun in call_or_422(
        lambda: start.start_pilots(member.project, wish, access.ensure_membership(member))
    ):
        tasks.notify_workers(begun.endpoint_id)
    [asking] = start.estimate_runs(member.project, wish)
    return Response(AskingSerializer(asking).data)


@extend_schema(
    parameters=[KEY_PARAMETER],
    request=CloneSerializer,
    responses={201: WatchedRunSerializer, **IDEMPOTENT_RESPONSES},
)
@api_view(["POST"])
@make_idempotent("run")
def clone(request: Request, slug: str, number: int) -> Response:
    """Start the same run again. Requests that are already answered are not sent again."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    said = validate_body(CloneSerializer(data=request.data))
    name = said.pop("endpoint")

    def cloned() -> Run:
        endpoint = choices.get_endpoint(name) if name else None
        return lifecycle.clone_run(run, access.ensure_membership(member), endpoint=endpoint, **said)

    return respond_created(call_or_422(cloned))


@extend_schema(
    parameters=[KEY_PARAMETER],
    request=None,
    responses={201: WatchedRunSerializer, **IDEMPOTENT_RESPONSES},
)
@api_view(["POST"])
@make_idempotent("run")
def ask_without(request: Request, slug: str, number: int) -> Response:
    """Start the same run without the parameter that the evaluator refused. The new run replaces
    this run."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    return respond_created(
        call_or_422(
            lambda: lifecycle.restart_without_parameter(run, access.ensure_membership(member))
        )
    )


@extend_schema(
    parameters=[KEY_PARAMETER],
    request=DeriveSerializer,
    responses={201: WatchedRunSerializer, **IDEMPOTENT_RESPONSES},
)
@api_view(["POST"])
@make_idempotent("run", takes_long=True)
def derive(request: Request, slug: str) -> Response:
    """Combine runs by a vote or by mean, without calling an evaluator."""
    member = access.member_for(request, slug, right="run")
    said = validate_body(DeriveSerializer(data=request.data))
    sources = [get_run_or_404(member, number) for number in dict.fromkeys(said["runs"])]

    def derived() -> Run:
        strategy = choices.get_version(member.project, said["strategy"])
        by = access.ensure_membership(member)
        described = {name: said[name] for name in ("name", "tags", "note")}
        return runs_derived.derive_run(
            member.project,
            strategy=strategy,
            sources=sources,
            weights=dict(zip(said["runs"], said["weights"], strict=False)),
            member=by,
            **described,
        )

    return respond_created(call_or_422(derived))


@extend_schema(request=ParserSerializer, responses={200: ReparsedSerializer, **REFUSAL_RESPONSES})
@api_view(["POST"])
def preview_reparse(request: Request, slug: str, number: int) -> Response:
    """Preview what would change if another parser read the run's replies."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    said = validate_body(ParserSerializer(data=request.data))
    return Response(
        ReparsedSerializer(call_or_422(lambda: runs_reparse.build_preview(run, **said))).data
    )


@extend_schema(request=ParserSerializer, responses={200: WatchedRunSerializer, **REFUSAL_RESPONSES})
@api_view(["POST"])
def reparse(request: Request, slug: str, number: int) -> Response:
    """Parse a run's replies with another parser; its outcomes and derived runs are updated."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    said = validate_body(ParserSerializer(data=request.data))
    call_or_422(lambda: runs_reparse.switch_parser(run, access.ensure_membership(member), **said))
    tasks.notify_workers(run.endpoint_id)
    return Response(WatchedRunSerializer(progress.load_status(get_run_or_404(member, number))).data)


@extend_schema(methods=["GET"], responses={200: CanarySerializer, **REFUSAL_RESPONSES})
@extend_schema(
    methods=["POST"],
    parameters=[KEY_PARAMETER],
    request=AgainSerializer,
    responses={201: WatchedRunSerializer, **IDEMPOTENT_RESPONSES},
)
@api_view(["GET", "POST"])
@make_idempotent("run")
def canary(request: Request, slug: str, number: int) -> Response:
    """Return how far an evaluator has drifted since the first run of a canary; a POST repeats the
    canary."""
    asks = request.method == "POST"
    member = access.member_for(request, slug, right="run" if asks else "results")
    run = get_run_or_404(member, number)
    if not asks:
        call_or_422(lambda: canaries.check_canary(run))
        return Response(CanarySerializer(canaries.load_canary(run)).data)
    said = validate_body(AgainSerializer(data=request.data))
    return respond_created(
        call_or_422(lambda: canaries.repeat_canary(run, access.ensure_membership(member), **said))
    )


class CallList(ProjectRowList[Call]):
    """List the calls of a run with their replies and readings, in the order of creation."""

    model = Call
    right = "results"
    serializer_class = CallSerializer
    asks = ("item",)

    def list_rows(self) -> QuerySet[Call]:
        run = get_run_or_404(self.member, self.kwargs["number"])
        return run.calls.for_list(self.request.query_params.get("item"))

    @extend_schema(parameters=[ITEM_PARAMETER])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


def respond_created(run: Run) -> Response:
    """Return the 201 response for a new run."""
    tasks.notify_workers(run.endpoint_id)
    return Response(WatchedRunSerializer(progress.load_status(run)).data, status=201)


urlpatterns = [
    path("projects/<slug:slug>/runs/estimate/", estimate, name="api-runs-estimate"),
    path("projects/<slug:slug>/runs/pilot/", pilot, name="api-runs-pilot"),
    path("projects/<slug:slug>/runs/derive/", derive, name="api-runs-derive"),
    path(RUN_PATH + "clone/", clone, name="api-run-clone"),
    path(RUN_PATH + "ask-without/", ask_without, name="api-run-ask-without"),
    path(RUN_PATH + "canary/", canary, name="api-run-canary"),
    path(RUN_PATH + "reparse/", reparse, name="api-run-reparse"),
    path(RUN_PATH + "reparse/preview/", preview_reparse, name="api-run-reparse-preview"),
    path(RUN_PATH + "calls/", CallList.as_view(), name="api-run-calls"),
]
