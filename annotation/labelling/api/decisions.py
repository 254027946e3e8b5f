"""The API of verification, adjudication and the human baseline; same access as the pages."""

from typing import Any

from django.http import Http404
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import (
    PolymorphicProxySerializer,
    extend_schema,
    inline_serializer,
)
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.responses import (
    PROBLEM_RESPONSES,
    SUBMISSION_RESPONSES,
    Conflict,
    validate_body,
)
from annotation.api.serializers import (
    LabelSerializer,
    NamedField,
    NoOfferSerializer,
    OfferSerializer,
    SubmissionSerializer,
)
from annotation.labelling import cases, human_baseline, verification
from annotation.labelling.queue import Waiting, offers
from annotation.models import Item, Membership, Stage
from annotation.projects import access
from stats.estimates import Estimate


class FirstSerializer(serializers.Serializer[Any]):
    """The label to verify; send back its `submission` with your verdict. If the result of the
    labels is the answer of no one, it has the result alone, without `annotator` and `choice`."""

    submission = serializers.CharField()
    annotator = serializers.CharField(source="member.alias")
    choice = serializers.CharField()
    answers = serializers.DictField(child=serializers.JSONField())
    comment = serializers.CharField()


# What the API says of a label besides its `submission` where it does not show it.
HIDDEN_LABEL: dict[str, Any] = {"annotator": "", "choice": "", "answers": {}, "comment": ""}


class SecondSerializer(serializers.Serializer[verification.Verification]):
    """An item to verify. `can_confirm` is false if nobody can give the result as an answer, such as
    a number between two options: then contest it. It is true in a project that verifies blind."""

    offer = OfferSerializer()
    first = FirstSerializer()
    can_confirm = serializers.BooleanField()


class VerdictSerializer(SubmissionSerializer):
    """Confirm, or contest with other answers and a comment; `of` is the `submission` of the shown
    label or result. If the result cannot be confirmed, the same answers in full confirm it."""

    of = serializers.CharField(max_length=64)
    confirm = serializers.BooleanField(default=False)
    answers = NamedField(child=serializers.JSONField(), default=dict)


class WaitingCaseSerializer(serializers.Serializer[Any]):
    """An item that waits for adjudication; `missing` is the number of labels still to come."""

    item = serializers.CharField(source="item.key")
    reason = serializers.CharField(source="slot.reason")
    missing = serializers.IntegerField()
    labelled = serializers.BooleanField(help_text="Whether you have labelled it yourself.")


class SaidSerializer(serializers.Serializer[Any]):
    said = LabelSerializer(source="label")
    first_look = LabelSerializer(source="blind", allow_null=True)


class CaseSerializer(serializers.Serializer[cases.Case]):
    """An item to decide, with everybody's labels; if annotators `disagree`, the decision needs a
    reason (`why`)."""

    offer = OfferSerializer()
    said = SaidSerializer(many=True)
    missing = serializers.IntegerField()
    disagree = serializers.BooleanField()


class DecisionSerializer(SubmissionSerializer):
    why = serializers.ChoiceField(
        choices=[("", ""), *cases.DISAGREEMENT_REASONS.items()], default=""
    )


class ItemBody(serializers.Serializer[Any]):
    item = serializers.CharField(max_length=200, trim_whitespace=False)


class CaseBody(serializers.Serializer[Any]):
    """The item whose case to take; without it, the next case."""

    item = serializers.CharField(
        default="", allow_blank=True, allow_null=True, max_length=200, trim_whitespace=False
    )


def _either_serializer(name: str, serializer: Any) -> PolymorphicProxySerializer:
    return PolymorphicProxySerializer(
        component_name=name,
        serializers=[serializer, NoOfferSerializer],
        resource_type_field_name=None,
    )


# ------------------------------------------------------------------------------------------ verify


@extend_schema(
    request=None,
    responses={200: _either_serializer("NextSecond", SecondSerializer), **PROBLEM_RESPONSES},
)
@api_view(["POST"])
def next_second(request: Request, slug: str) -> Response:
    """Take the next item to verify, with the label to check, which is empty in a project that
    verifies blind. If there is none, the response says why."""
    member = access.member_for(request, slug, right="label")
    case = verification.take_next(member, now=timezone.now())
    if isinstance(case, Waiting):
        return Response(NoOfferSerializer({"waiting": case}).data)
    shown = dict(SecondSerializer(case).data)
    if member.project.verify_blind:
        shown |= {"first": {**HIDDEN_LABEL, "submission": case.of}, "can_confirm": True}
    elif not case.is_label:
        shown["first"] = {**HIDDEN_LABEL, "submission": case.of, "answers": case.decided}
    return Response(shown)


@extend_schema(request=VerdictSerializer, responses={201: LabelSerializer, **SUBMISSION_RESPONSES})
@api_view(["POST"])
def verdict(request: Request, slug: str) -> Response:
    """Confirm the label, or contest it; in a project that verifies blind, give your own answers.
    The same key twice is stored once."""
    member = access.member_for(request, slug, right="label")
    body = VerdictSerializer(data=request.data)
    data = validate_body(body)
    made = verification.answer(
        member,
        body.submission(),
        of=data["of"],
        confirming=data["confirm"],
        now=timezone.now(),
    )
    return Response(LabelSerializer(made).data, status=201)


@extend_schema(
    responses={
        200: inline_serializer(
            "ContestRate",
            {
                "verified": serializers.IntegerField(),
                "contested": serializers.IntegerField(),
                "share": serializers.DictField(),
            },
        ),
        **PROBLEM_RESPONSES,
    }
)
@api_view(["GET"])
def contest_rate(request: Request, slug: str) -> Response:
    """The number of items verified, the number of labels contested, and the share contested with
    its interval."""
    member = access.member_for(request, slug, right="adjudicate")
    rate = verification.measure_contest_rate(member.project)
    numbers = {"verified": rate.verified, "contested": rate.contested}
    return Response({**numbers, "share": _estimate(rate.share)})


# --------------------------------------------------------------------------------------- decisions


@extend_schema(responses={200: WaitingCaseSerializer(many=True), **PROBLEM_RESPONSES})
@api_view(["GET"])
def waiting_cases(request: Request, slug: str) -> Response:
    """The first thousand items that wait for adjudication, disputed ones first."""
    member = access.member_for(request, slug, right="adjudicate")
    rows = cases.list_waiting(member, cases.waiting_slots(member.project)[:1000])
    return Response(WaitingCaseSerializer(rows, many=True).data)


@extend_schema(
    request=CaseBody,
    responses={200: _either_serializer("NextCase", CaseSerializer), **SUBMISSION_RESPONSES},
)
@api_view(["POST"])
def next_case(request: Request, slug: str) -> Response:
    """Take the next case, or the case of `item`. If there is none for you, the response says
    why."""
    member, now = access.member_for(request, slug, right="adjudicate"), timezone.now()
    named = validate_body(CaseBody(data=request.data))["item"]
    key = named or cases.next_case_key(member, now)
    if key is None:
        waits = offers.explain_waiting(member, Stage.ADJUDICATE, now)
        return Response(NoOfferSerializer({"waiting": waits}).data)
    case = cases.open_case(member, find_item(member, key), now=now)
    if case.offer is None:
        raise Conflict(case.barred)
    return Response(CaseSerializer(case).data)


@extend_schema(request=DecisionSerializer, responses={201: LabelSerializer, **SUBMISSION_RESPONSES})
@api_view(["POST"])
def decide(request: Request, slug: str) -> Response:
    """Decide the shown case; your decision becomes the final label. The same key twice is stored
    once."""
    member = access.member_for(request, slug, right="adjudicate")
    body = DecisionSerializer(data=request.data)
    data = validate_body(body)
    why, now = data["why"], timezone.now()
    made = cases.decide(member, body.submission(), why=why, now=now)
    return Response(LabelSerializer(made).data, status=201)


@extend_schema(request=ItemBody, responses={201: ItemBody, **SUBMISSION_RESPONSES})
@api_view(["POST"])
def request_decision(request: Request, slug: str) -> Response:
    """Send an item to adjudication, even if it was decided before; the earlier decision stays in
    force until the new decision."""
    member = access.member_for(request, slug, right="adjudicate")
    item = find_item(member, validate_body(ItemBody(data=request.data))["item"])
    cases.request_decision(access.ensure_membership(member), item, now=timezone.now())
    return Response({"item": item.key}, status=201)


# ---------------------------------------------------------------------------------------- baseline


@extend_schema(
    responses={
        200: inline_serializer(
            "Baseline",
            {
                "items": serializers.IntegerField(),
                "places": serializers.IntegerField(),
                "filled": serializers.IntegerField(),
                "people": serializers.ListField(child=serializers.DictField()),
            },
        ),
        **PROBLEM_RESPONSES,
    }
)
@api_view(["GET"])
def baseline(request: Request, slug: str) -> Response:
    """The progress of the human baseline, and how often annotators agree with the final label."""
    project = access.member_for(request, slug, right="manage").project
    far = human_baseline.load_progress(project)
    return Response(
        {
            "items": far.items,
            "places": far.places,
            "filled": far.filled,
            "people": [_person(person) for person in human_baseline.agreement_by_person(project)],
        }
    )


def find_item(member: Membership, key: str) -> Item:
    found = Item.objects.in_project(member.project).with_keys([key]).first()
    if found is None:
        raise Http404
    found.project = member.project
    return found


def _person(person: human_baseline.BaselinePerson) -> dict[str, Any]:
    numbers = {"labels": person.labels, "agreeing": person.agreeing}
    return {"annotator": person.member.alias, **numbers, "share": _estimate(person.share)}


def _estimate(estimate: Estimate) -> dict[str, Any]:
    bounds = {"low": estimate.low, "high": estimate.high, "reason": estimate.reason}
    return {"value": estimate.value, **bounds}


PROJECT_PATH = "projects/<slug:slug>/"
urlpatterns = [
    path(PROJECT_PATH + "verify/", contest_rate, name="api-contest-rate"),
    path(PROJECT_PATH + "verify/next/", next_second, name="api-verify-next"),
    path(PROJECT_PATH + "verify/labels/", verdict, name="api-verify-labels"),
    path(PROJECT_PATH + "adjudications/", waiting_cases, name="api-cases"),
    path(PROJECT_PATH + "adjudications/next/", next_case, name="api-case-next"),
    path(PROJECT_PATH + "adjudications/labels/", decide, name="api-case-labels"),
    path(PROJECT_PATH + "adjudications/requests/", request_decision, name="api-case-requests"),
    path(PROJECT_PATH + "baseline/", baseline, name="api-baseline"),
]
