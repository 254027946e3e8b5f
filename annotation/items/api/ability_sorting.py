"""The API of abilities: counts of sorted prompts, and sorting one or several prompts."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.responses import PROBLEM_RESPONSES, SUBMISSION_RESPONSES, validate_body
from annotation.items import ability_sorting
from annotation.items.ability_sorting import AbilityChange, SortResult
from annotation.projects import access

# Each one that is wrong is answered with a message of its own.
MOST_CHANGES = 20_000


class AbilitiesSerializer(serializers.Serializer[ability_sorting.PromptCounts]):
    """The number of prompts by ability; `suggested` counts the unsorted prompts that have a
    suggestion. The list of items shows the ability of each item and its suggestion."""

    total = serializers.IntegerField()
    unsorted = serializers.IntegerField()
    suggested = serializers.IntegerField()
    abilities = serializers.DictField(child=serializers.IntegerField())

    def to_representation(self, counts: ability_sorting.PromptCounts) -> dict[str, Any]:
        numbers = {ability.slug: number for ability, number in counts.abilities}
        told = {"total": counts.total, "unsorted": counts.unsorted, "suggested": counts.suggested}
        return {**told, "abilities": numbers}


class WishSerializer(serializers.Serializer[AbilityChange]):
    """The new ability of an item. `shown` is the ability that you last read ("" for none). If the
    item has a different ability by now, it is not changed."""

    item = serializers.CharField(max_length=200, trim_whitespace=False)
    ability = serializers.CharField(max_length=80)
    shown = serializers.CharField(default=None, allow_null=True, allow_blank=True, max_length=80)

    def to_internal_value(self, data: Any) -> Any:
        said = super().to_internal_value(data)
        return AbilityChange(said["item"], said["ability"], said["shown"])


class SortSerializer(serializers.Serializer[Any]):
    items: Any = serializers.ListSerializer(
        child=WishSerializer(), allow_empty=False, max_length=MOST_CHANGES
    )


class SortedSerializer(serializers.Serializer[SortResult]):
    """The keys of the changed items, and of the items that were not changed because their ability
    differs from `shown`."""

    changed = serializers.ListField(child=serializers.CharField())
    missed = serializers.ListField(child=serializers.CharField())

    def to_representation(self, done: SortResult) -> dict[str, list[str]]:
        return {
            "changed": [item.key for item in done.changed],
            "missed": [item.key for item in done.missed],
        }


@extend_schema(methods=["GET"], responses={200: AbilitiesSerializer, **PROBLEM_RESPONSES})
@extend_schema(
    methods=["PATCH"],
    request=SortSerializer,
    responses={200: SortedSerializer, **SUBMISSION_RESPONSES},
)
@api_view(["GET", "PATCH"])
def abilities(request: Request, slug: str) -> Response:
    """The numbers of prompts by ability. A PATCH sets those of at most 20,000 prompts."""
    lead = access.member_for(request, slug, right="manage")
    if request.method == "GET":
        return Response(AbilitiesSerializer(ability_sorting.count_prompts(lead.project)).data)
    body = validate_body(SortSerializer(data=request.data))
    done = ability_sorting.set_abilities(access.ensure_membership(lead), body["items"])
    return Response(SortedSerializer(done).data)


@extend_schema(request=None, responses={200: SortedSerializer, **SUBMISSION_RESPONSES})
@api_view(["POST"])
def undo(request: Request, slug: str) -> Response:
    """Undo your last change of abilities that is not undone yet, if there is one."""
    lead = access.member_for(request, slug, right="manage")
    return Response(
        SortedSerializer(ability_sorting.undo_last(access.ensure_membership(lead))).data
    )


ABILITIES_PATH = "projects/<slug:slug>/abilities/"

urlpatterns = [
    path(ABILITIES_PATH, abilities, name="api-abilities"),
    path(ABILITIES_PATH + "undo/", undo, name="api-abilities-undo"),
]
