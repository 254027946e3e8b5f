"""The API of strategies: read, copied, written in versions, tried before anything runs."""

from typing import Any

from django.http import Http404
from django.urls import path
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access
from annotation.api.answering import PROBLEMS, ProblemSerializer, Unprocessable, checked
from annotation.api.repeating import KEY, once
from annotation.models import Membership
from judging import errors
from judging.api.strategy_serializers import (
    ListedStrategySerializer,
    StrategyCopySerializer,
    StrategyParseAskedSerializer,
    StrategyPreviewAskedSerializer,
    StrategyPreviewSerializer,
    StrategyReadingSerializer,
    StrategySerializer,
    StrategyTextSerializer,
    StrategyVersionSerializer,
)
from judging.models import StrategyVersion
from judging.preparing import authoring, catalogue, offering, previewing, retiring
from judging.preparing.authoring import Draft
from judging.prompts import described

REFUSED = PROBLEMS | {422: OpenApiResponse(ProblemSerializer, "This cannot be done; it says why.")}
STALE = {409: OpenApiResponse(ProblemSerializer, "There is a later version; nothing was stored.")}
TWICE = {409: OpenApiResponse(ProblemSerializer, "The same is being answered at this moment.")}
VERSION = OpenApiParameter(
    "version", OpenApiTypes.INT, description="An earlier version; by default the newest."
)


@extend_schema(methods=["GET"], responses={200: ListedStrategySerializer(many=True), **PROBLEMS})
@extend_schema(
    methods=["POST"],
    parameters=[KEY],
    request=StrategyCopySerializer,
    responses={201: StrategySerializer, **REFUSED, **TWICE},
)
@api_view(["GET", "POST"])
@once("run")
def strategy_list(request: Request, slug: str) -> Response:
    """Every strategy that the project can use; a POST copies one, to be the project's own."""
    if request.method == "POST":
        return _copy(request, slug)
    member = access.member_for(request, slug, right="results")
    return Response(ListedStrategySerializer(catalogue.every(member.project), many=True).data)


@extend_schema(parameters=[VERSION], responses={200: StrategySerializer, **PROBLEMS})
@api_view(["GET"])
def strategy(request: Request, slug: str, strategy: str) -> Response:
    """One strategy: its text, what that says, the calls that an item takes."""
    member = access.member_for(request, slug, right="results")
    number = request.query_params.get("version", "")
    return Response(StrategySerializer(_version(member, strategy, number)).data)


@extend_schema(methods=["GET"], responses={200: StrategyVersionSerializer(many=True), **PROBLEMS})
@extend_schema(
    methods=["POST"],
    parameters=[KEY],
    request=StrategyTextSerializer,
    responses={200: StrategySerializer, 201: StrategySerializer, **REFUSED, **STALE},
)
@api_view(["GET", "POST"])
@once("run")
def versions(request: Request, slug: str, strategy: str) -> Response:
    """All versions, the newest first; a POST stores the next one.

    A text that is the newest version's already stores nothing, and answers 200 with that.
    """
    right = "run" if request.method == "POST" else "results"
    member = access.member_for(request, slug, right=right)
    newest = _found(member, strategy)
    if request.method == "POST":
        return _save(request, member, newest)
    rows = catalogue.versions(member.project, newest)
    return Response(StrategyVersionSerializer(rows, many=True).data)


@extend_schema(
    request=StrategyPreviewAskedSerializer, responses={200: StrategyPreviewSerializer, **REFUSED}
)
@api_view(["POST"])
def preview(request: Request, slug: str, strategy: str) -> Response:
    """What one call would send about an item, to the byte if an endpoint is named.

    Nothing is sent, and nothing is stored.
    """
    member = access.member_for(request, slug, right="run")
    newest = _found(member, strategy)
    body = checked(StrategyPreviewAskedSerializer(data=request.data))
    version = _tried(newest, body)
    item = previewing.item_of(member.project, body["item"], version)
    if item is None and body["item"]:
        raise _wrong("item", f"The project has no item {body['item']!r}.")
    try:
        endpoint = offering.endpoint_of(body["endpoint"]) if body["endpoint"] else None
    except errors.Refused as problem:
        raise _wrong("endpoint", str(problem)) from problem
    made = previewing.preview(
        member.project,
        version,
        item=item,
        call=body["call"],
        endpoint=endpoint,
        said=body["said"],
    )
    previewing.note_seen(member, item, made, timezone.now())
    if made.problem:
        raise Unprocessable(made.problem)
    return Response(StrategyPreviewSerializer(made).data)


@extend_schema(
    request=StrategyParseAskedSerializer, responses={200: StrategyReadingSerializer, **REFUSED}
)
@api_view(["POST"])
def parse(request: Request, slug: str, strategy: str) -> Response:
    """What would be read in a reply, by which way, or why nothing counts."""
    member = access.member_for(request, slug, right="run")
    newest = _found(member, strategy)
    body = checked(StrategyParseAskedSerializer(data=request.data))
    version = _tried(newest, body)
    try:
        reading = previewing.read(
            member.project, version, text=body["text"], finish=body["finish"], call=body["call"]
        )
    except errors.Refused as problem:
        raise Unprocessable(str(problem)) from problem
    return Response(StrategyReadingSerializer(reading).data)


@extend_schema(request=None, responses={204: None, **REFUSED})
@api_view(["POST"])
def put_away(request: Request, slug: str, strategy: str, step: str) -> Response:
    """Retire one of the project's own strategies, delete one that no run rests on, or take either
    back."""
    member = access.member_for(request, slug, right="run")
    retiring.STEPS[step](member.project, strategy, access.seated(member))
    return Response(status=204)


def _copy(request: Request, slug: str) -> Response:
    member = access.member_for(request, slug, right="run")
    body = checked(StrategyCopySerializer(data=request.data))
    parent, number = body.pop("strategy"), body.pop("version")
    try:
        version = _version(member, parent, str(number or ""))
    except Http404 as problem:
        raise _wrong("strategy", f"There is no strategy {parent!r} of this version.") from problem
    made = authoring.copy(member.project, version, **body, member=access.seated(member))
    return Response(StrategySerializer(made).data, status=201)


def _save(request: Request, member: Membership, newest: StrategyVersion) -> Response:
    body = checked(StrategyTextSerializer(data=request.data))
    draft = _read(newest, body["toml"])
    made = authoring.save(
        member.project,
        draft,
        shown=body["base"],
        note=body["note"],
        member=access.seated(member),
    )
    return Response(StrategySerializer(made or newest).data, status=201 if made else 200)


def _found(member: Membership, slug: str) -> StrategyVersion:
    found = catalogue.find(member.project, slug)
    if found is None:
        raise Http404
    return found


def _version(member: Membership, slug: str, number: str) -> StrategyVersion:
    newest = _found(member, slug)
    known = {str(one.number): one for one in catalogue.versions(member.project, newest)}
    if number and number not in known:
        raise Http404
    return known[number or str(newest.number)]


def _tried(newest: StrategyVersion, body: dict[str, Any]) -> StrategyVersion:
    """The text that was sent, or the newest version; 422 for a call that it does not make."""
    source = body["toml"]
    version = newest if source is None else _read(newest, source).version()
    if body["call"] and described.named(version.strategy(), body["call"]) is None:
        raise _wrong("call", f"The strategy makes no call {body['call']!r}.")
    return version


def _read(newest: StrategyVersion, source: str) -> Draft:
    draft = authoring.read(source, newest.slug)
    if draft.strategy is None:
        raise _wrong("toml", *(authoring.said(problem) for problem in draft.problems))
    return draft


def _wrong(field: str, *problems: str) -> Unprocessable:
    return Unprocessable("The body cannot be used.", {field: list(problems)})


STRATEGY = "projects/<slug:slug>/strategies/<slug:strategy>/"

urlpatterns = [
    path("projects/<slug:slug>/strategies/", strategy_list, name="api-strategies"),
    path(STRATEGY, strategy, name="api-strategy"),
    path(STRATEGY + "retire/", put_away, {"step": "retire"}, name="api-strategy-retire"),
    path(STRATEGY + "delete/", put_away, {"step": "delete"}, name="api-strategy-delete"),
    path(STRATEGY + "back/", put_away, {"step": "back"}, name="api-strategy-back"),
    path(STRATEGY + "versions/", versions, name="api-strategy-versions"),
    path(STRATEGY + "preview/", preview, name="api-strategy-preview"),
    path(STRATEGY + "parse/", parse, name="api-strategy-parse"),
]
