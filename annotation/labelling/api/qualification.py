"""The API of practice and silent checks: what the pages show, with the same access."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.responses import PROBLEM_RESPONSES
from annotation.labelling import control_items, qualification
from annotation.labelling.api.qualification_serializers import PracticeSerializer, ProbeSerializer
from annotation.models import Membership
from annotation.projects import access


@extend_schema(responses={200: PracticeSerializer, **PROBLEM_RESPONSES})
@api_view(["GET"])
def own_rounds(request: Request, slug: str) -> Response:
    """Your own rounds of practice, the last one first."""
    member = access.member_for(request, slug, right="label")
    return Response(
        PracticeSerializer(_member_rounds(member, qualification.list_rounds(member))).data
    )


@extend_schema(responses={200: PracticeSerializer(many=True), **PROBLEM_RESPONSES})
@api_view(["GET"])
def all_rounds(request: Request, slug: str) -> Response:
    """Everybody's rounds of practice."""
    lead = access.member_for(request, slug, right="manage")
    members = Membership.objects.in_project(lead.project).who_label()
    rows = [_member_rounds(member, rounds) for member, rounds in qualification.list_people(members)]
    return Response(PracticeSerializer(rows, many=True).data)


@extend_schema(responses={200: ProbeSerializer(many=True), **PROBLEM_RESPONSES})
@api_view(["GET"])
def control_results(request: Request, slug: str) -> Response:
    """How each person did on silent checks; for leads alone."""
    lead = access.member_for(request, slug, right="manage")
    results: Any = control_items.load_results(lead.project)
    return Response(ProbeSerializer(results, many=True).data)


def _member_rounds(
    member: Membership, rounds: list[qualification.QualificationRound]
) -> dict[str, Any]:
    return {
        "annotator": member.alias,
        "due": qualification.is_due(member),
        "waits": qualification.waits_for_lead(member),
        "rounds": rounds,
    }


urlpatterns = [
    path("projects/<slug:slug>/practice/", own_rounds, name="api-practice"),
    path("projects/<slug:slug>/practice/people/", all_rounds, name="api-practice-people"),
    path("projects/<slug:slug>/probes/", control_results, name="api-probes"),
]
