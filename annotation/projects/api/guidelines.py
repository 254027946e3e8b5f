"""The API of guidelines: read all versions, publish a new one, and acknowledge."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.project_rows import ProjectRowList
from annotation.api.responses import (
    IF_MATCH_PARAMETER,
    PROBLEM_RESPONSES,
    REFUSED_RESPONSES,
    PreconditionFailed,
    check_if_match,
    validate_body,
)
from annotation.api.serializers import NamedField
from annotation.errors import Stale
from annotation.models import GuidelinesVersion, Membership
from annotation.projects import access, guidelines

# The response for a project without guidelines.
EMPTY_GUIDELINES = {
    "number": 0, "note": "", "author": None, "created_at": None, "text": "", "variants": {},
}  # fmt: skip
VERSION_PARAMETER = OpenApiParameter(
    "version", int, description="Version number; default: the latest."
)


class ListedGuidelinesSerializer(serializers.Serializer[GuidelinesVersion]):
    """A version of the guidelines without its texts; `note` says what changed in it."""

    number = serializers.IntegerField()
    note = serializers.CharField(allow_blank=True)
    author = serializers.CharField(source="author.alias", default=None, allow_null=True)
    created_at = serializers.DateTimeField(allow_null=True)


class GuidelinesVersionSerializer(ListedGuidelinesSerializer):
    """The guidelines as Markdown. `text` applies to every item, `variants` to items with a certain
    value of the project's guidelines field. Without guidelines, the number is 0 and the texts are
    empty."""

    text = serializers.CharField(allow_blank=True)
    variants = serializers.DictField(child=serializers.CharField())


class GuidelinesBody(serializers.Serializer[Any]):
    """The next version. Parts that are not sent are empty. `note` is shown to everybody who
    labels."""

    text = serializers.CharField(
        default="", allow_blank=True, trim_whitespace=False, max_length=guidelines.MAX_LENGTH
    )
    variants = NamedField(
        child=serializers.CharField(
            allow_blank=True, trim_whitespace=False, max_length=guidelines.MAX_LENGTH
        ),
        default=dict,
    )
    note = serializers.CharField(default="", allow_blank=True, max_length=500)

    def validate_variants(self, variants: dict[str, str]) -> dict[str, str]:
        if any("\0" in kind for kind in variants):
            raise serializers.ValidationError("A name contains a NUL character. Remove it.")
        return variants


class ReadBody(serializers.Serializer[Any]):
    number = serializers.IntegerField(min_value=1, max_value=2_147_483_647)


@extend_schema(
    methods=["GET"],
    parameters=[VERSION_PARAMETER],
    responses={200: GuidelinesVersionSerializer, **PROBLEM_RESPONSES},
)
@extend_schema(
    methods=["PUT"],
    parameters=[IF_MATCH_PARAMETER],
    request=GuidelinesBody,
    responses={200: GuidelinesVersionSerializer, **REFUSED_RESPONSES},
)
@api_view(["GET", "PUT"])
def current_guidelines(request: Request, slug: str) -> Response:
    """Return the guidelines for annotators. A PUT by a lead publishes the next version and
    announces it.

    A PUT without a change publishes nothing.
    """
    if request.method == "PUT":
        lead = access.member_for(request, slug, right="manage")
        return _respond(_publish(request, lead))
    member = access.member_for(request, slug, right="enter")
    number = request.query_params.get("version", "")
    if not number:
        return _respond(guidelines.current_version(member.project))
    is_number = number.isdecimal() and len(number) < 10
    version = member.project.guidelines.filter(number=number).first() if is_number else None
    if version is None:
        raise Http404(f"There is no version {number[:20]} of the guidelines.")
    return _respond(version)


class VersionList(ProjectRowList[GuidelinesVersion]):
    """All versions of the guidelines without their texts, the latest first."""

    model = GuidelinesVersion
    right = "enter"
    serializer_class = ListedGuidelinesSerializer

    def list_rows(self) -> QuerySet[GuidelinesVersion]:
        return self.member.project.guidelines.select_related("author").order_by("-number")


@extend_schema(request=ReadBody, responses={204: None, **REFUSED_RESPONSES})
@api_view(["POST"])
def acknowledge(request: Request, slug: str) -> Response:
    """Record that you have read the guidelines up to this number."""
    member = access.member_for(request, slug, right="enter")
    number = validate_body(ReadBody(data=request.data))["number"]
    guidelines.acknowledge(access.ensure_membership(member), number)
    return Response(status=204)


def _publish(request: Request, lead: Membership) -> GuidelinesVersion:
    last = guidelines.current_version(lead.project)
    check_if_match(request, _respond(last).data)
    body = validate_body(GuidelinesBody(data=request.data))
    base = last.number if last else 0
    try:
        return guidelines.publish(
            lead.project, **body, author=access.ensure_membership(lead), base=base
        )
    except Stale as stale:
        raise PreconditionFailed from stale


def _respond(version: GuidelinesVersion | None) -> Response:
    return Response(GuidelinesVersionSerializer(version).data if version else EMPTY_GUIDELINES)


GUIDELINES_PATH = "projects/<slug:slug>/guidelines/"

urlpatterns = [
    path(GUIDELINES_PATH, current_guidelines, name="api-guidelines"),
    path(GUIDELINES_PATH + "versions/", VersionList.as_view(), name="api-guidelines-versions"),
    path(GUIDELINES_PATH + "read/", acknowledge, name="api-guidelines-read"),
]
