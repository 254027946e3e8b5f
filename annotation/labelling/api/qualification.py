"""The API of qualification rounds and control items; same access as the pages."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.responses import PROBLEM_RESPONSES
from annotation.api.serializers import LabelSerializer
from annotation.labelling import control_items, qualification
from annotation.models import Label, Membership
from annotation.projects import access


class LessonSerializer(serializers.Serializer[qualification.Lesson]):
    """The feedback on a qualification item: your answer, whether it was right, the known answer,
    and the explanation."""

    item = serializers.CharField(source="item.key")
    right = serializers.BooleanField()
    answers = serializers.DictField(child=serializers.JSONField())
    known = serializers.DictField(child=serializers.JSONField())
    explanation = serializers.CharField()
    answered_at = serializers.DateTimeField()


class RoundSerializer(serializers.Serializer[qualification.QualificationRound]):
    """A qualification round. To pass it, `needed` of `size` answers must be correct."""

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
    """A member's qualification: `due` until the member has passed, `waits` if only a lead can
    help."""

    annotator = serializers.CharField()
    due = serializers.BooleanField()
    waits = serializers.BooleanField()
    rounds = RoundSerializer(many=True)


class ShareSerializer(serializers.Serializer[Any]):
    """A share with its 95 % interval, as fractions of 1; null if it is not defined."""

    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField()
    reason = serializers.CharField()


class WrongSerializer(serializers.Serializer[control_items.WrongAnswer]):
    item = serializers.CharField(source="item.key")
    said = serializers.DictField(child=serializers.JSONField())
    known = serializers.DictField(child=serializers.JSONField())
    said_at = serializers.DateTimeField()


class ProbeSerializer(serializers.Serializer[control_items.ControlResult]):
    """A member's results on control items; `corrected` counts items whose text the member corrected
    before labelling."""

    annotator = serializers.CharField(source="member.alias")
    right = serializers.IntegerField()
    share = ShareSerializer()
    corrected = serializers.IntegerField()
    wrong = WrongSerializer(many=True)


class StoredSerializer(LabelSerializer):
    """A stored label; `lesson` is the explanation of a qualification item, null for any other
    label."""

    lesson = LessonSerializer(allow_null=True)

    def to_representation(self, label: Label) -> dict[str, Any]:
        learnt = qualification.build_lesson(label)
        told = LessonSerializer(learnt).data if learnt else None
        return super().to_representation(label) | {"lesson": told}


@extend_schema(responses={200: PracticeSerializer, **PROBLEM_RESPONSES})
@api_view(["GET"])
def own_rounds(request: Request, slug: str) -> Response:
    """Your own qualification rounds, latest first."""
    member = access.member_for(request, slug, right="label")
    return Response(
        PracticeSerializer(_member_rounds(member, qualification.list_rounds(member))).data
    )


@extend_schema(responses={200: PracticeSerializer(many=True), **PROBLEM_RESPONSES})
@api_view(["GET"])
def all_rounds(request: Request, slug: str) -> Response:
    """The qualification rounds of all annotators."""
    lead = access.member_for(request, slug, right="manage")
    members = Membership.objects.in_project(lead.project).who_label()
    rows = [_member_rounds(member, rounds) for member, rounds in qualification.list_people(members)]
    return Response(PracticeSerializer(rows, many=True).data)


@extend_schema(responses={200: ProbeSerializer(many=True), **PROBLEM_RESPONSES})
@api_view(["GET"])
def control_results(request: Request, slug: str) -> Response:
    """The results of each annotator on control items; only for leads."""
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
