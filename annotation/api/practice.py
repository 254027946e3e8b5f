"""The API of practice and silent checks: what the pages show, with the same access."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access, practising, probing
from annotation.api.answering import PROBLEMS
from annotation.api.practice_serializers import PracticeSerializer, ProbeSerializer
from annotation.models import Membership


@extend_schema(responses={200: PracticeSerializer, **PROBLEMS})
@api_view(["GET"])
def practice(request: Request, slug: str) -> Response:
    """Your own rounds of practice, the last one first."""
    member = access.member_for(request, slug, right="label")
    return Response(PracticeSerializer(_standing(member, practising.rounds(member))).data)


@extend_schema(responses={200: PracticeSerializer(many=True), **PROBLEMS})
@api_view(["GET"])
def people(request: Request, slug: str) -> Response:
    """Everybody's rounds of practice."""
    lead = access.member_for(request, slug, right="manage")
    members = Membership.objects.in_project(lead.project).who_label()
    rows = [_standing(member, rounds) for member, rounds in practising.people(members)]
    return Response(PracticeSerializer(rows, many=True).data)


@extend_schema(responses={200: ProbeSerializer(many=True), **PROBLEMS})
@api_view(["GET"])
def probes(request: Request, slug: str) -> Response:
    """How each person did on silent checks; for leads alone."""
    lead = access.member_for(request, slug, right="manage")
    results: Any = probing.results(lead.project)
    return Response(ProbeSerializer(results, many=True).data)


def _standing(member: Membership, rounds: list[practising.Round]) -> dict[str, Any]:
    return {
        "annotator": member.alias,
        "due": practising.due(member),
        "waits": practising.waits(member),
        "rounds": rounds,
    }


urlpatterns = [
    path("projects/<slug:slug>/practice/", practice, name="api-practice"),
    path("projects/<slug:slug>/practice/people/", people, name="api-practice-people"),
    path("projects/<slug:slug>/probes/", probes, name="api-probes"),
]
