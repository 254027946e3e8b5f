"""The API where the abilities that a run suggests are handed to those who sort prompts."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access
from annotation.api.answering import REFUSED
from judging.api.answering import RUN, done, found
from judging.making import suggesting
from judging.making.suggesting import Taken


class TakenSerializer(serializers.Serializer[Taken]):
    """How many prompts the run suggests an ability for, and for how many that is new."""

    suggested = serializers.IntegerField()
    new = serializers.IntegerField()


@extend_schema(request=None, responses={200: TakenSerializer, **REFUSED})
@api_view(["POST"])
def take(request: Request, slug: str, number: int) -> Response:
    """Keep what a run suggests with its items. Nothing is sorted by it; again is nothing new."""
    lead = access.member_for(request, slug, right="manage")
    run = found(lead, number)
    taken: Any = done(lambda: suggesting.take(run, access.seated(lead)))
    return Response(TakenSerializer(taken).data)


urlpatterns = [path(RUN + "suggestions/", take, name="api-run-suggestions")]
