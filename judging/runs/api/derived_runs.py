"""The API where runs are foreseen, piloted, made of runs, and read again."""

from typing import Any

from django.db.models import QuerySet
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import api_view
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.idempotency import KEY_PARAMETER, make_idempotent
from annotation.api.pagination import CursorPages
from annotation.api.responses import validate_body
from annotation.projects import access
from judging import tasks
from judging.models import Call, Run
from judging.runs import canaries, choices, lifecycle, progress, start
from judging.runs import derived as runs_derived
from judging.runs import reparse as runs_reparse
from judging.runs.api.derived_runs_serializers import (
    AgainSerializer,
    AskingSerializer,
    CallSerializer,
    CanarySerializer,
    CloneSerializer,
    DeriveSerializer,
    ParserSerializer,
    ReparsedSerializer,
)
from judging.runs.api.responses import (
    IDEMPOTENT_RESPONSES,
    REFUSAL_RESPONSES,
    RUN_PATH,
    call_or_422,
    get_run_or_404,
    parse_run_body,
)
from judging.runs.api.serializers import StartSerializer, WatchedRunSerializer

ITEM_PARAMETER = OpenApiParameter("item", OpenApiTypes.STR, description="The key of one item.")


@extend_schema(request=StartSerializer, responses={200: AskingSerializer, **REFUSAL_RESPONSES})
@api_view(["POST"])
def estimate(request: Request, slug: str) -> Response:
    """What a run would ask and cost; nothing is started."""
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
@make_idempotent("run")
def pilot(request: Request, slug: str) -> Response:
    """Ask some 30 calls of a run, unless that many are answered or on their way."""
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
    """Ask the same once more; what was answered is not asked again."""
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
    """Ask the same without the parameter that the evaluator refused, in a run that takes the place
    of this one."""
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
@make_idempotent("run")
def derive(request: Request, slug: str) -> Response:
    """Count the votes of runs, or average their scores, without asking anybody."""
    member = access.member_for(request, slug, right="run")
    said = validate_body(DeriveSerializer(data=request.data))
    sources = [get_run_or_404(member, number) for number in dict.fromkeys(said["runs"])]

    def derived() -> Run:
        strategy = choices.get_version(member.project, said["strategy"])
        by = access.ensure_membership(member)
        return runs_derived.derive_run(
            member.project, strategy=strategy, sources=sources, member=by
        )

    return respond_created(call_or_422(derived))


@extend_schema(request=ParserSerializer, responses={200: ReparsedSerializer, **REFUSAL_RESPONSES})
@api_view(["POST"])
def preview_reparse(request: Request, slug: str, number: int) -> Response:
    """What would change if a run's replies were read by another parser."""
    member = access.member_for(request, slug, right="run")
    run = get_run_or_404(member, number)
    said = validate_body(ParserSerializer(data=request.data))
    return Response(
        ReparsedSerializer(call_or_422(lambda: runs_reparse.build_preview(run, **said))).data
    )


@extend_schema(request=ParserSerializer, responses={200: WatchedRunSerializer, **REFUSAL_RESPONSES})
@api_view(["POST"])
def reparse(request: Request, slug: str, number: int) -> Response:
    """Read a run's replies by another parser; its outcomes and derived runs follow."""
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
    """How far an evaluator drifted since a canary was first asked, and where to ask it again."""
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


class CallList(ListAPIView[Call]):
    """Every call of a run with its reply and what was read in it, in the order of making."""

    serializer_class = CallSerializer
    pagination_class = CursorPages
    asks = ("item",)
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Call]:
        if getattr(self, "swagger_fake_view", False):
            return Call.objects.none()
        member = access.member_for(self.request, self.kwargs["slug"], right="results")
        run = get_run_or_404(member, self.kwargs["number"])
        return run.calls.for_list(self.request.query_params.get("item"))

    @extend_schema(parameters=[ITEM_PARAMETER])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


def respond_created(run: Run) -> Response:
    """The answer to a run that was just made."""
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
