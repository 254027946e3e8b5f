"""The API of strategies: read, copy, save versions, preview prompts, and parse replies.

Serializers use texts, names and numbers, never database ids.
"""

from typing import Any

from django.http import Http404
from django.urls import path
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
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
from annotation.items import taxonomy
from annotation.models import Membership
from annotation.projects import access
from judging import errors
from judging.models import StrategyVersion
from judging.runs import choices
from judging.strategies import (
    catalogue,
    definitions,
    descriptions,
    editing,
    frames,
    markers,
    preview,
    prompt_files,
    retirement,
)
from judging.strategies.editing import (
    MAX_NOTE_LENGTH,
    MAX_SLUG_LENGTH,
    MAX_SOURCE_LENGTH,
    StrategyDraft,
)
from judging.strategies.preview import CallPreview
from judging.strategies.replies.outputs import ParsedReply

LONGEST_REPLY = 200_000
LONGEST_TITLE = 120


class ListedStrategySerializer(serializers.Serializer[Any]):
    """The newest version of a strategy. `own`: it belongs to the project. `runs` counts the
    project's runs with any version. A strategy that is not `offered` is retired: new runs cannot
    use it."""

    slug = serializers.CharField(source="version.slug")
    title = serializers.CharField(source="strategy.title")
    study = serializers.CharField(source="strategy.study")
    frame = serializers.CharField(source="strategy.frame")
    output = serializers.CharField(source="strategy.output")
    own = serializers.BooleanField(source="is_own")
    version = serializers.IntegerField(source="version.number")
    digest = serializers.CharField(source="version.digest")
    runs = serializers.IntegerField()
    offered = serializers.BooleanField(source="is_offered")


class StrategyVersionSerializer(serializers.Serializer[Any]):
    """One version of a strategy. `made_from` is the version from which it was edited or copied, as
    "slug vN". A built-in strategy that was never used is not stored yet, so its time is null.
    """

    slug = serializers.CharField()
    version = serializers.IntegerField(source="number")
    digest = serializers.CharField()
    created_at = serializers.SerializerMethodField()
    by = serializers.CharField(source="member.alias", default=None, allow_null=True)
    note = serializers.CharField(allow_blank=True)
    made_from = serializers.SerializerMethodField()
    runs = serializers.SerializerMethodField()

    def get_created_at(self, version: StrategyVersion) -> str | None:
        return version.created_at.isoformat() if version.pk else None

    def get_made_from(self, version: StrategyVersion) -> str | None:
        return str(version.parent) if version.parent else None

    def get_runs(self, version: StrategyVersion) -> int:
        return int(getattr(version, "used", 0))


class StrategySerializer(StrategyVersionSerializer):
    """One version of a strategy with its TOML source, its definition, and the calls for
    each item.
    """

    title = serializers.SerializerMethodField()
    study = serializers.SerializerMethodField()
    toml = serializers.SerializerMethodField()
    definition = serializers.JSONField()
    offers = serializers.SerializerMethodField()
    decides = serializers.SerializerMethodField()
    warnings = serializers.SerializerMethodField()
    protection = serializers.SerializerMethodField()
    calls = serializers.SerializerMethodField()

    def get_title(self, version: StrategyVersion) -> str:
        return version.strategy().title

    def get_study(self, version: StrategyVersion) -> str:
        return version.strategy().study

    def get_toml(self, version: StrategyVersion) -> str:
        return catalogue.get_source(version)

    def get_offers(self, version: StrategyVersion) -> str:
        return descriptions.describe_answers(version.strategy())

    def get_decides(self, version: StrategyVersion) -> list[str]:
        return descriptions.describe_decision(version.strategy())

    def get_warnings(self, version: StrategyVersion) -> list[str]:
        return definitions.list_warnings(version.strategy())

    def get_protection(self, version: StrategyVersion) -> dict[str, bool]:
        prompts = version.strategy().prompts
        return {"markers": markers.has_markers(prompts), "guard": markers.has_guard(prompts)}

    def get_calls(self, version: StrategyVersion) -> list[dict[str, str]]:
        strategy = version.strategy()
        return [
            {
                "name": descriptions.format_call_name(spec),
                "title": descriptions.format_call_title(strategy, spec),
            }
            for spec in frames.list_all_calls(strategy)
        ]


class StrategyCopySerializer(serializers.Serializer[Any]):
    """Copy a strategy, by default its newest version, as the project's own."""

    strategy = serializers.CharField(max_length=MAX_SLUG_LENGTH)
    version = serializers.IntegerField(default=None, allow_null=True, min_value=1)
    slug = serializers.CharField(max_length=MAX_SLUG_LENGTH)
    leave_out = serializers.ChoiceField(
        choices=list(editing.LEFT_OUT),
        default="",
        help_text="guard: the sentence against injected instructions; markers: it and the markers",
    )
    title = serializers.CharField(default="", allow_blank=True, max_length=LONGEST_TITLE)
    note = serializers.CharField(default="", allow_blank=True, max_length=MAX_NOTE_LENGTH)


class StrategyImportSerializer(serializers.Serializer[Any]):
    """A file of prompts that becomes the project's own strategy. Lines such as === system ===,
    === prompt === or === step NAME === divide it into parts; without them all of it is the
    prompt."""

    prompts = serializers.CharField(max_length=MAX_SOURCE_LENGTH, trim_whitespace=False)
    slug = serializers.CharField(max_length=MAX_SLUG_LENGTH)
    title = serializers.CharField(max_length=LONGEST_TITLE)
    note = serializers.CharField(default="", allow_blank=True, max_length=MAX_NOTE_LENGTH)


class StrategyTextSerializer(serializers.Serializer[Any]):
    """The next version of the project's own strategy. `base` is the number of the version that was
    edited. If a newer version was saved meanwhile, nothing is saved.
    """

    toml = serializers.CharField(max_length=MAX_SOURCE_LENGTH, trim_whitespace=False)
    base = serializers.IntegerField(min_value=1)
    note = serializers.CharField(default="", allow_blank=True, max_length=MAX_NOTE_LENGTH)


class StrategyTriedSerializer(serializers.Serializer[Any]):
    """`toml` is an unsaved source; without it the newest version is used. `call` is the name of one
    of the strategy's calls."""

    toml = serializers.CharField(
        default=None, allow_null=True, max_length=MAX_SOURCE_LENGTH, trim_whitespace=False
    )
    call = serializers.CharField(default="", allow_blank=True, max_length=200)


class StrategyPreviewAskedSerializer(StrategyTriedSerializer):
    """If no item is given, an item that a run would cover is used. `said` gives the texts that
    normally come from a run: replies of earlier steps by step name, or explanation and score.
    """

    item = serializers.CharField(default="", allow_blank=True, max_length=200)
    endpoint = serializers.CharField(default="", allow_blank=True, max_length=80)
    said = serializers.DictField(
        child=serializers.CharField(max_length=MAX_SOURCE_LENGTH), default=dict
    )


class StrategyPromptSerializer(serializers.Serializer[Any]):
    system = serializers.CharField()
    user = serializers.CharField()
    parts = serializers.DictField(help_text="The texts that the baseline compares or counts.")


class StrategySentSerializer(serializers.Serializer[Any]):
    body = serializers.CharField()
    digest = serializers.CharField(help_text="Empty while a placeholder replaces a reply.")
    answered = serializers.BooleanField()


class StrategyPreviewSerializer(serializers.Serializer[CallPreview]):
    """What a call would send. `flags` are possible prompt injections in the shown texts, which are
    sent unchanged. `sent` is null without an endpoint, or if there is a reason in `refused`."""

    call = serializers.CharField()
    title = serializers.CharField()
    prompt = StrategyPromptSerializer()
    replies = serializers.DictField(child=serializers.CharField())
    stand_ins = serializers.ListField(child=serializers.CharField())
    flags = serializers.ListField(child=serializers.CharField())
    notes = serializers.ListField(child=serializers.CharField())
    sent = StrategySentSerializer(allow_null=True)
    refused = serializers.CharField()


class StrategyParseAskedSerializer(StrategyTriedSerializer):
    """A reply to parse as a run would parse it, with its finish reason."""

    text = serializers.CharField(allow_blank=True, max_length=LONGEST_REPLY, trim_whitespace=False)
    finish = serializers.ChoiceField(choices=list(descriptions.FINISH_DESCRIPTIONS), default="stop")


class StrategyReadingSerializer(serializers.Serializer[ParsedReply]):
    """The reading: `value` is a number, a word, a boolean, or one entry for each metric, with the
    cause in place of a missing number; if it is null, `cause` says why."""

    value = serializers.JSONField()
    path = serializers.CharField()
    cause = serializers.CharField()
    explanation = serializers.CharField()


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
    """All strategies that the project can use; POST copies one as the project's own."""
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
    """One strategy: its source, its definition, and the calls for each item."""
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
    """All versions, newest first; POST saves the next one.

    If the source equals that of the newest version, nothing is saved, and the response is 200 with
    the newest version.
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
    """What one call would send about an item; with an endpoint, the exact request body.

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
    """The answer that a run would parse from a reply, with the parsing method, or the cause if
    there is no answer.
    """
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


@extend_schema(
    parameters=[KEY_PARAMETER],
    request=StrategyImportSerializer,
    responses={201: StrategySerializer, **REFUSAL_RESPONSES, **REPEATED_RESPONSE},
)
@api_view(["POST"])
@make_idempotent("run")
def import_strategy(request: Request, slug: str, strategy: str) -> Response:
    """Import a file of prompts as the project's own strategy, in every other respect like this
    one."""
    member = access.member_for(request, slug, right="run")
    like = _get_newest_or_404(member, strategy)
    body = validate_body(StrategyImportSerializer(data=request.data))
    made = prompt_files.import_strategy(
        member.project, like, body.pop("prompts"), **body, member=access.ensure_membership(member)
    )
    return Response(StrategySerializer(made).data, status=201)


@extend_schema(request=None, responses={204: None, **REFUSAL_RESPONSES})
@api_view(["POST"])
def change_strategy(request: Request, slug: str, strategy: str, step: str) -> Response:
    """Retire one of the project's own strategies, delete one that no run uses, or restore it."""
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
    """Return the version in the submitted source, or the newest version; 422 for an
    unknown call.
    """
    source = body["toml"]
    version = newest if source is None else _parse_draft(newest, source).version()
    if body["call"] and descriptions.find_call(version.strategy(), body["call"]) is None:
        raise _field_error("call", f"The strategy has no call {body['call']!r}.")
    return version


def _parse_draft(newest: StrategyVersion, source: str) -> StrategyDraft:
    known = taxonomy.load_taxonomy(newest.project) if newest.project_id else None
    draft = editing.parse_source(source, newest.slug, known)
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
    path(STRATEGY_PATH + "import/", import_strategy, name="api-strategy-import"),
    path(STRATEGY_PATH + "versions/", versions, name="api-strategy-versions"),
    path(STRATEGY_PATH + "preview/", preview_strategy, name="api-strategy-preview"),
    path(STRATEGY_PATH + "parse/", parse_reply, name="api-strategy-parse"),
]
