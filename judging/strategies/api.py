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

from annotation.api.idempotency import KEY_PARAMETER, make_idempotent
from annotation.api.responses import (
    PROBLEM_RESPONSES,
    ProblemSerializer,
    Unprocessable,
    validate_body,
)
from annotation.models import Membership
from annotation.projects import access
from judging import errors
from judging.models import StrategyVersion
from judging.runs import choices
from judging.strategies import catalogue, descriptions, editing, preview, retirement
from judging.strategies.editing import StrategyDraft
from judging.strategies.serializers import (
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

REFUSAL_RESPONSES = PROBLEM_RESPONSES | {
    422: OpenApiResponse(ProblemSerializer, "Not possible; the message says why.")
}
STALE_RESPONSE = {
    409: OpenApiResponse(ProblemSerializer, "There is a newer version; nothing was saved.")
}
REPEATED_RESPONSE = {
    409: OpenApiResponse(
        ProblemSerializer, "The same request is being processed right now. Try again in a moment."
    )
}
VERSION_PARAMETER = OpenApiParameter(
    "version", OpenApiTypes.INT, description="An earlier version; by default the newest."
)


@extend_schema(
    methods=["GET"], responses={200: ListedStrategySerializer(many=True), **PROBLEM_RESPONSES}
)
@extend_schema(
    methods=["POST"],
    parameters=[KEY_PARAMETER],
    request=StrategyCopySerializer,
    responses={201: StrategySerializer, **REFUSAL_RESPONSES, **REPEATED_RESPONSE},
)
@api_view(["GET", "POST"])
@make_idempotent("run")
def strategy_list(request: Request, slug: str) -> Response:
    """Every strategy that the project can use; a POST copies one, to be the project's own."""
    if request.method == "POST":
        return _copy_strategy(request, slug)
    member = access.member_for(request, slug, right="results")
    return Response(
        ListedStrategySerializer(catalogue.list_strategies(member.project), many=True).data
    )


@extend_schema(
    parameters=[VERSION_PARAMETER], responses={200: StrategySerializer, **PROBLEM_RESPONSES}
)
@api_view(["GET"])
def strategy(request: Request, slug: str, strategy: str) -> Response:
    """One strategy: its text, what that says, the calls that an item takes."""
    member = access.member_for(request, slug, right="results")
    number = request.query_params.get("version", "")
    return Response(StrategySerializer(_get_version_or_404(member, strategy, number)).data)


@extend_schema(
    methods=["GET"], responses={200: StrategyVersionSerializer(many=True), **PROBLEM_RESPONSES}
)
@extend_schema(
    methods=["POST"],
    parameters=[KEY_PARAMETER],
    request=StrategyTextSerializer,
    responses={
        200: StrategySerializer,
        201: StrategySerializer,
        **REFUSAL_RESPONSES,
        **STALE_RESPONSE,
    },
)
@api_view(["GET", "POST"])
@make_idempotent("run")
def versions(request: Request, slug: str, strategy: str) -> Response:
    """All versions, the newest first; a POST stores the next one.

    A text that is the newest version's already stores nothing, and answers 200 with that.
    """
    right = "run" if request.method == "POST" else "results"
    member = access.member_for(request, slug, right=right)
    newest = _get_newest_or_404(member, strategy)
    if request.method == "POST":
        return _save_version(request, member, newest)
    rows = catalogue.list_versions(member.project, newest)
    return Response(StrategyVersionSerializer(rows, many=True).data)


@extend_schema(
    request=StrategyPreviewAskedSerializer,
    responses={200: StrategyPreviewSerializer, **REFUSAL_RESPONSES},
)
@api_view(["POST"])
def preview_strategy(request: Request, slug: str, strategy: str) -> Response:
    """What one call would send about an item, to the byte if an endpoint is named.

    Nothing is sent, and nothing is stored.
    """
    member = access.member_for(request, slug, right="run")
    newest = _get_newest_or_404(member, strategy)
    body = validate_body(StrategyPreviewAskedSerializer(data=request.data))
    version = _get_tried_version(newest, body)
    item = preview.find_item(member.project, body["item"], version)
    if item is None and body["item"]:
        raise _field_error("item", f"The project has no item {body['item']!r}.")
    try:
        endpoint = choices.get_endpoint(body["endpoint"]) if body["endpoint"] else None
    except errors.Refused as problem:
        raise _field_error("endpoint", str(problem)) from problem
    made = preview.build_preview(
        member.project,
        version,
        item=item,
        call=body["call"],
        endpoint=endpoint,
        said=body["said"],
    )
    preview.record_seen_answers(member, item, made, timezone.now())
    if made.problem:
        raise Unprocessable(made.problem)
    return Response(StrategyPreviewSerializer(made).data)


@extend_schema(
    request=StrategyParseAskedSerializer,
    responses={200: StrategyReadingSerializer, **REFUSAL_RESPONSES},
)
@api_view(["POST"])
def parse_reply(request: Request, slug: str, strategy: str) -> Response:
    """What would be read in a reply, by which way, or why nothing counts."""
    member = access.member_for(request, slug, right="run")
    newest = _get_newest_or_404(member, strategy)
    body = validate_body(StrategyParseAskedSerializer(data=request.data))
    version = _get_tried_version(newest, body)
    try:
        reading = preview.parse_reply(
            member.project, version, text=body["text"], finish=body["finish"], call=body["call"]
        )
    except errors.Refused as problem:
        raise Unprocessable(str(problem)) from problem
    return Response(StrategyReadingSerializer(reading).data)


@extend_schema(request=None, responses={204: None, **REFUSAL_RESPONSES})
@api_view(["POST"])
def change_strategy(request: Request, slug: str, strategy: str, step: str) -> Response:
    """Retire one of the project's own strategies, delete one that no run rests on, or take either
    back."""
    member = access.member_for(request, slug, right="run")
    retirement.STEPS[step](member.project, strategy, access.ensure_membership(member))
    return Response(status=204)


def _copy_strategy(request: Request, slug: str) -> Response:
    member = access.member_for(request, slug, right="run")
    body = validate_body(StrategyCopySerializer(data=request.data))
    parent, number = body.pop("strategy"), body.pop("version")
    try:
        version = _get_version_or_404(member, parent, str(number or ""))
    except Http404 as problem:
        raise _field_error("strategy", f"This version has no strategy {parent!r}.") from problem
    made = editing.copy_strategy(
        member.project, version, **body, member=access.ensure_membership(member)
    )
    return Response(StrategySerializer(made).data, status=201)


def _save_version(request: Request, member: Membership, newest: StrategyVersion) -> Response:
    body = validate_body(StrategyTextSerializer(data=request.data))
    draft = _parse_draft(newest, body["toml"])
    made = editing.save_version(
        member.project,
        draft,
        shown=body["base"],
        note=body["note"],
        member=access.ensure_membership(member),
    )
    return Response(StrategySerializer(made or newest).data, status=201 if made else 200)


def _get_newest_or_404(member: Membership, slug: str) -> StrategyVersion:
    found = catalogue.find_version(member.project, slug)
    if found is None:
        raise Http404
    return found


def _get_version_or_404(member: Membership, slug: str, number: str) -> StrategyVersion:
    newest = _get_newest_or_404(member, slug)
    known = {str(one.number): one for one in catalogue.list_versions(member.project, newest)}
    if number and number not in known:
        raise Http404
    return known[number or str(newest.number)]


def _get_tried_version(newest: StrategyVersion, body: dict[str, Any]) -> StrategyVersion:
    """The text that was sent, or the newest version; 422 for a call that it does not make."""
    source = body["toml"]
    version = newest if source is None else _parse_draft(newest, source).version()
    if body["call"] and descriptions.find_call(version.strategy(), body["call"]) is None:
        raise _field_error("call", f"The strategy has no call {body['call']!r}.")
    return version


def _parse_draft(newest: StrategyVersion, source: str) -> StrategyDraft:
    draft = editing.parse_source(source, newest.slug)
    if draft.strategy is None:
        raise _field_error("toml", *(editing.format_problem(problem) for problem in draft.problems))
    return draft


def _field_error(field: str, *problems: str) -> Unprocessable:
    return Unprocessable("The body cannot be used.", {field: list(problems)})


STRATEGY_PATH = "projects/<slug:slug>/strategies/<slug:strategy>/"

urlpatterns = [
    path("projects/<slug:slug>/strategies/", strategy_list, name="api-strategies"),
    path(STRATEGY_PATH, strategy, name="api-strategy"),
    path(
        STRATEGY_PATH + "retire/", change_strategy, {"step": "retire"}, name="api-strategy-retire"
    ),
    path(
        STRATEGY_PATH + "delete/", change_strategy, {"step": "delete"}, name="api-strategy-delete"
    ),
    path(STRATEGY_PATH + "back/", change_strategy, {"step": "back"}, name="api-strategy-back"),
    path(STRATEGY_PATH + "versions/", versions, name="api-strategy-versions"),
    path(STRATEGY_PATH + "preview/", preview_strategy, name="api-strategy-preview"),
    path(STRATEGY_PATH + "parse/", parse_reply, name="api-strategy-parse"),
]
