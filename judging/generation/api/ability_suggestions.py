"""The API to store the abilities that a run suggests for prompts."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.responses import REFUSED_RESPONSES
from annotation.projects import access
from judging.generation import ability_suggestions
from judging.generation.ability_suggestions import SuggestionCounts
from judging.runs.api.responses import RUN_PATH, call_or_422
from judging.runs.choices import get_run_or_404


class TakenSerializer(serializers.Serializer[SuggestionCounts]):
    """The number of prompts that the run suggests an ability for, and how many are new."""

    suggested = serializers.IntegerField()
    new = serializers.IntegerField()


@extend_schema(request=None, responses={200: TakenSerializer, **REFUSED_RESPONSES})
@api_view(["POST"])
def take_suggestions(request: Request, slug: str, number: int) -> Response:
    """Store a run's suggestions with its items. Items keep their abilities. A second request adds
    nothing."""
    lead = access.member_for(request, slug, right="manage")
    run = get_run_or_404(lead, number)
    taken: Any = call_or_422(
        lambda: ability_suggestions.store_suggestions(run, access.ensure_membership(lead))
    )
    return Response(TakenSerializer(taken).data)


urlpatterns = [path(RUN_PATH + "suggestions/", take_suggestions, name="api-run-suggestions")]
