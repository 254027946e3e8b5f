"""The API to clone, repeat and combine runs, and to parse their replies again."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.idempotency import KEY_PARAMETER, make_idempotent
from annotation.api.responses import validate_body
from annotation.projects import access
from judging import tasks
from judging.models import Run
from judging.runs import canaries, choices, descriptions, lifecycle, progress
from judging.runs import derived as runs_derived
from judging.runs import reparse as runs_reparse
from judging.runs.api.estimates import EstimateSerializer
from judging.runs.api.responses import (
    IDEMPOTENT_RESPONSES,
    REFUSAL_RESPONSES,
    RUN_PATH,
    call_or_422,
)
from judging.runs.api.serializers import DescriptionSerializer, RunCapField, WatchedRunSerializer
from judging.runs.canaries import Canary, Drift
from judging.runs.choices import get_run_or_404
from judging.runs.reparse import OutcomeChange, ReparsePreview


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
        described = {name: said[name] for name in descriptions.FIELDS}
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


def respond_created(run: Run) -> Response:
    """Return the 201 response for a new run."""
    tasks.notify_workers(run.endpoint_id)
    return Response(WatchedRunSerializer(progress.load_status(run)).data, status=201)


urlpatterns = [
    path("projects/<slug:slug>/runs/derive/", derive, name="api-runs-derive"),
    path(RUN_PATH + "clone/", clone, name="api-run-clone"),
    path(RUN_PATH + "ask-without/", ask_without, name="api-run-ask-without"),
    path(RUN_PATH + "canary/", canary, name="api-run-canary"),
    path(RUN_PATH + "reparse/", reparse, name="api-run-reparse"),
    path(RUN_PATH + "reparse/preview/", preview_reparse, name="api-run-reparse-preview"),
]
