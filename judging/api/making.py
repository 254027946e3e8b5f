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

from annotation import access
from annotation.api.answering import checked
from annotation.api.paging import CursorPages
from annotation.api.repeating import KEY, once
from judging import tasks
from judging.api.answering import DONE_ONCE, REFUSED, RUN, done, found, wish_of
from judging.api.making_serializers import (
    AgainSerializer,
    AskingSerializer,
    CallSerializer,
    CanarySerializer,
    CloneSerializer,
    DeriveSerializer,
    ParserSerializer,
    ReparsedSerializer,
)
from judging.api.serializers import StartSerializer, WatchedRunSerializer
from judging.engine import watching
from judging.models import Call, Run
from judging.preparing import offering
from judging.running import canaries, deriving, reparsing, runs, starting

ITEM_PARAMETER = OpenApiParameter("item", OpenApiTypes.STR, description="The key of one item.")


@extend_schema(request=StartSerializer, responses={200: AskingSerializer, **REFUSED})
@api_view(["POST"])
def estimate(request: Request, slug: str) -> Response:
    """What a run would ask and cost; nothing is started."""
    member = access.member_for(request, slug, right="run")
    wish = wish_of(member, request.data)
    [asking] = done(lambda: starting.foresee(member.project, wish))
    return Response(AskingSerializer(asking).data)


@extend_schema(
    parameters=[KEY], request=StartSerializer, responses={200: AskingSerializer, **DONE_ONCE}
)
@api_view(["POST"])
@once("run")
def pilot(request: Request, slug: str) -> Response:
    """Ask some 30 calls of a run, unless that many are answered or on their way."""
    member = access.member_for(request, slug, right="run")
    wish = wish_of(member, request.data)
    for begun in done(lambda: starting.pilot(member.project, wish, access.seated(member))):
        tasks.ring(begun.endpoint_id)
    [asking] = starting.foresee(member.project, wish)
    return Response(AskingSerializer(asking).data)


@extend_schema(
    parameters=[KEY], request=CloneSerializer, responses={201: WatchedRunSerializer, **DONE_ONCE}
)
@api_view(["POST"])
@once("run")
def clone(request: Request, slug: str, number: int) -> Response:
    """Ask the same once more; what was answered is not asked again."""
    member = access.member_for(request, slug, right="run")
    run = found(member, number)
    said = checked(CloneSerializer(data=request.data))
    name = said.pop("endpoint")

    def cloned() -> Run:
        endpoint = offering.endpoint_of(name) if name else None
        return runs.clone(run, access.seated(member), endpoint=endpoint, **said)

    return begun(done(cloned))


@extend_schema(parameters=[KEY], request=None, responses={201: WatchedRunSerializer, **DONE_ONCE})
@api_view(["POST"])
@once("run")
def ask_without(request: Request, slug: str, number: int) -> Response:
    """Ask the same without the parameter that the evaluator refused, in a run that takes the place
    of this one."""
    member = access.member_for(request, slug, right="run")
    run = found(member, number)
    return begun(done(lambda: runs.ask_without(run, access.seated(member))))


@extend_schema(
    parameters=[KEY], request=DeriveSerializer, responses={201: WatchedRunSerializer, **DONE_ONCE}
)
@api_view(["POST"])
@once("run")
def derive(request: Request, slug: str) -> Response:
    """Count the votes of runs, or average their scores, without asking anybody."""
    member = access.member_for(request, slug, right="run")
    said = checked(DeriveSerializer(data=request.data))
    sources = [found(member, number) for number in dict.fromkeys(said["runs"])]

    def derived() -> Run:
        strategy = offering.version_of(member.project, said["strategy"])
        by = access.seated(member)
        return deriving.derive(member.project, strategy=strategy, sources=sources, member=by)

    return begun(done(derived))


@extend_schema(request=ParserSerializer, responses={200: ReparsedSerializer, **REFUSED})
@api_view(["POST"])
def preview(request: Request, slug: str, number: int) -> Response:
    """What would change if a run's replies were read by another parser."""
    member = access.member_for(request, slug, right="run")
    run = found(member, number)
    said = checked(ParserSerializer(data=request.data))
    return Response(ReparsedSerializer(done(lambda: reparsing.preview(run, **said))).data)


@extend_schema(request=ParserSerializer, responses={200: WatchedRunSerializer, **REFUSED})
@api_view(["POST"])
def reparse(request: Request, slug: str, number: int) -> Response:
    """Read a run's replies by another parser; its outcomes and derived runs follow."""
    member = access.member_for(request, slug, right="run")
    run = found(member, number)
    said = checked(ParserSerializer(data=request.data))
    done(lambda: reparsing.apply(run, access.seated(member), **said))
    tasks.ring(run.endpoint_id)
    return Response(WatchedRunSerializer(watching.watch(found(member, number))).data)


@extend_schema(methods=["GET"], responses={200: CanarySerializer, **REFUSED})
@extend_schema(
    methods=["POST"],
    parameters=[KEY],
    request=AgainSerializer,
    responses={201: WatchedRunSerializer, **DONE_ONCE},
)
@api_view(["GET", "POST"])
@once("run")
def canary(request: Request, slug: str, number: int) -> Response:
    """How far an evaluator drifted since a canary was first asked, and where to ask it again."""
    asks = request.method == "POST"
    member = access.member_for(request, slug, right="run" if asks else "results")
    run = found(member, number)
    if not asks:
        done(lambda: canaries.check(run))
        return Response(CanarySerializer(canaries.of(run)).data)
    said = checked(AgainSerializer(data=request.data))
    return begun(done(lambda: canaries.ask_again(run, access.seated(member), **said)))


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
        run = found(member, self.kwargs["number"])
        return run.calls.for_list(self.request.query_params.get("item"))

    @extend_schema(parameters=[ITEM_PARAMETER])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


def begun(run: Run) -> Response:
    """The answer to a run that was just made."""
    tasks.ring(run.endpoint_id)
    return Response(WatchedRunSerializer(watching.watch(run)).data, status=201)


urlpatterns = [
    path("projects/<slug:slug>/runs/estimate/", estimate, name="api-runs-estimate"),
    path("projects/<slug:slug>/runs/pilot/", pilot, name="api-runs-pilot"),
    path("projects/<slug:slug>/runs/derive/", derive, name="api-runs-derive"),
    path(RUN + "clone/", clone, name="api-run-clone"),
    path(RUN + "ask-without/", ask_without, name="api-run-ask-without"),
    path(RUN + "canary/", canary, name="api-run-canary"),
    path(RUN + "reparse/", reparse, name="api-run-reparse"),
    path(RUN + "reparse/preview/", preview, name="api-run-reparse-preview"),
    path(RUN + "calls/", CallList.as_view(), name="api-run-calls"),
]
