"""The API to assign items to annotators and to set their priority; for leads."""

from typing import Any

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.form_bodies import form_error
from annotation.api.responses import PROBLEM_RESPONSES, REFUSED_RESPONSES, validate_body
from annotation.items import taxonomy
from annotation.items.models import ItemQuerySet
from annotation.labelling import assignment, work_order
from annotation.labelling.assignment import AssignmentResult, ReservedCount
from annotation.models import Item, Membership
from annotation.projects import access

# The maximum number of keys per request.
MAX_KEYS = 50_000


class ChosenSerializer(serializers.Serializer[Any]):
    """The items in the normal work that match all given filters; without filters, all items in
    it."""

    keys = serializers.ListField(
        child=serializers.CharField(max_length=200, trim_whitespace=False),
        default=list,
        max_length=MAX_KEYS,
    )
    category = serializers.CharField(default="", allow_blank=True, max_length=80)
    unlabelled = serializers.BooleanField(default=False, help_text="Only items without labels.")
    limit = serializers.IntegerField(
        default=None,
        allow_null=True,
        min_value=1,
        max_value=1_000_000,
        help_text="At most this many items, in order.",
    )

    def validate_category(self, category: str) -> str:
        known = taxonomy.load_taxonomy(self.context["project"])
        if category and known.find(category) is None:
            raise serializers.ValidationError("There is no such category.")
        return category


class AssignSerializer(ChosenSerializer):
    """Reserve one label of each item for every annotator in `people`; with `share_out`, for one
    annotator at a time, in turn."""

    people = serializers.ListField(
        child=serializers.CharField(max_length=80), min_length=1, max_length=1_000
    )
    share_out = serializers.BooleanField(default=False)


class PrioritySerializer(ChosenSerializer):
    """The priority of the items' open slots."""

    priority = serializers.ChoiceField(choices=[*work_order.PRIORITIES])


class AssignedSerializer(serializers.Serializer[AssignmentResult]):
    """The number of labels reserved; `refused` counts labels not reserved because the annotator has
    already worked on the item."""

    reserved = serializers.IntegerField()
    refused = serializers.IntegerField()


class ReservedSerializer(serializers.Serializer[ReservedCount]):
    """The number of open slots reserved for one annotator."""

    annotator = serializers.CharField(source="member.alias")
    places = serializers.IntegerField(source="count")


class BackSerializer(serializers.Serializer[Any]):
    annotator = serializers.CharField(max_length=80)


SLOTS_RESPONSE = inline_serializer("Places", {"places": serializers.IntegerField()})
ITEMS_RESPONSE = inline_serializer("Items", {"items": serializers.IntegerField()})


@extend_schema(methods=["GET"], responses={200: ReservedSerializer(many=True), **PROBLEM_RESPONSES})
@extend_schema(
    methods=["POST"],
    request=AssignSerializer,
    responses={201: AssignedSerializer, **REFUSED_RESPONSES},
)
@api_view(["GET", "POST"])
def assignments(request: Request, slug: str) -> Response:
    """The number of labels reserved for each annotator; a POST reserves labels. Reserving twice has
    no further effect."""
    lead = access.member_for(request, slug, right="manage")
    if request.method == "GET":
        kept: Any = assignment.list_reserved(lead.project)
        return Response(ReservedSerializer(kept, many=True).data)
    body = validate_body(AssignSerializer(data=request.data, context={"project": lead.project}))
    people, items = _people(lead, body["people"]), _items(lead, body)
    made = assignment.reserve_slots(
        access.ensure_membership(lead),
        items,
        people,
        share_out=body["share_out"],
        now=timezone.now(),
    )
    return Response(AssignedSerializer(made).data, status=201)


@extend_schema(request=BackSerializer, responses={200: SLOTS_RESPONSE, **REFUSED_RESPONSES})
@api_view(["POST"])
def take_back(request: Request, slug: str) -> Response:
    """Return the open slots reserved for an annotator to the queue; the response has their
    number."""
    lead = access.member_for(request, slug, right="manage")
    alias = validate_body(BackSerializer(data=request.data))["annotator"]
    member = Membership.objects.in_project(lead.project).named(alias)
    if member is None:
        raise form_error({"annotator": [f"No member is called {alias}."]})
    return Response({"places": assignment.release_reserved(access.ensure_membership(lead), member)})


@extend_schema(request=PrioritySerializer, responses={200: ITEMS_RESPONSE, **REFUSED_RESPONSES})
@api_view(["POST"])
def priorities(request: Request, slug: str) -> Response:
    """Offer items first, last or in normal order; the response has the number of items."""
    lead = access.member_for(request, slug, right="manage")
    body = validate_body(PrioritySerializer(data=request.data, context={"project": lead.project}))
    items = _items(lead, body)
    return Response(
        {"items": assignment.set_priority(access.ensure_membership(lead), items, body["priority"])}
    )


def _items(lead: Membership, body: dict[str, Any]) -> ItemQuerySet:
    names = ("keys", "category", "unlabelled", "limit")
    there = Item.objects.in_project(lead.project).with_keys(body["keys"])
    known = set(there.values_list("key", flat=True)) if body["keys"] else set()
    if unknown := sorted(set(body["keys"]) - known):
        raise form_error({"keys": [f"There is no item {key}." for key in unknown[:20]]})
    return assignment.choose_items(lead.project, **{name: body[name] for name in names})


def _people(lead: Membership, aliases: list[str]) -> list[Membership]:
    who = {one.alias: one for one in Membership.objects.in_project(lead.project).who_label()}
    if unknown := [alias for alias in aliases if alias not in who]:
        raise form_error(
            {"people": [f"The project has no annotator {alias}." for alias in unknown]}
        )
    return [who[alias] for alias in dict.fromkeys(aliases)]


PROJECT_PATH = "projects/<slug:slug>/"

urlpatterns = [
    path(PROJECT_PATH + "assignments/", assignments, name="api-assignments"),
    path(PROJECT_PATH + "assignments/back/", take_back, name="api-assignments-back"),
    path(PROJECT_PATH + "priorities/", priorities, name="api-priorities"),
]
