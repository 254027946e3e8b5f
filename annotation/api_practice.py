"""The API of practice and silent checks: what the pages show, with the same access."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access, practising, probing
from annotation.api import PROBLEMS
from annotation.models import Membership


class LessonSerializer(serializers.Serializer[practising.Lesson]):
    """What was said of an item of practice, whether it was right, what is, and why."""

    item = serializers.CharField(source="item.key")
    right = serializers.BooleanField()
    answers = serializers.DictField(child=serializers.JSONField())
    known = serializers.DictField(child=serializers.JSONField())
    explanation = serializers.CharField()
    answered_at = serializers.DateTimeField()


class RoundSerializer(serializers.Serializer[practising.Round]):
    """A round of practice; it is passed by `needed` right answers of `size`."""

    number = serializers.IntegerField(source="row.number")
    size = serializers.IntegerField(source="row.size")
    needed = serializers.IntegerField(source="row.needed")
    answered = serializers.IntegerField(source="row.answered")
    right = serializers.IntegerField(source="row.right")
    passed = serializers.BooleanField(source="row.passed")
    feedback = serializers.CharField(source="row.feedback")
    started_at = serializers.DateTimeField(source="row.started_at")
    finished_at = serializers.DateTimeField(source="row.finished_at", allow_null=True)
    lessons = LessonSerializer(many=True)


class PracticeSerializer(serializers.Serializer[Any]):
    """How a member stands: `due` until they have passed, `waits` if only a lead can help."""

    annotator = serializers.CharField()
    due = serializers.BooleanField()
    waits = serializers.BooleanField()
    rounds = RoundSerializer(many=True)


class ShareSerializer(serializers.Serializer[Any]):
    """A share with its interval of 95 %, fractions of 1; null where it is not defined."""

    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField()
    reason = serializers.CharField()


class WrongSerializer(serializers.Serializer[probing.Wrong]):
    item = serializers.CharField(source="item.key")
    said = serializers.DictField(child=serializers.JSONField())
    known = serializers.DictField(child=serializers.JSONField())
    said_at = serializers.DateTimeField()


class ProbeSerializer(serializers.Serializer[probing.Result]):
    """How a member did on silent checks; `corrected` are those whose text they corrected first."""

    annotator = serializers.CharField(source="member.alias")
    right = serializers.IntegerField()
    share = ShareSerializer()
    corrected = serializers.IntegerField()
    wrong = WrongSerializer(many=True)


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
