"""The API of items that perturbers make: ask for some, see how far it is and what came of it."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import path
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.idempotency import KEY_PARAMETER, make_idempotent
from annotation.api.pagination import CursorPages
from annotation.api.responses import (
    PROBLEM_RESPONSES,
    BroughtSerializer,
    ProblemSerializer,
    SharedOutFields,
    Unprocessable,
    validate_body,
)
from annotation.errors import FieldError, Refused
from annotation.generation import perturber_jobs
from annotation.generation import perturbers as generation_perturbers
from annotation.generation.perturbers import PerturbRequest
from annotation.generation.release import ReleasePolicy
from annotation.importing import flags
from annotation.labelling import correct_answers
from annotation.models import Job
from annotation.projects import access
from perturbers.registry import PERTURBERS

GENERATIONS_PATH = "projects/<slug:slug>/generations/"
PERTURBER_CHOICES = [(slug, one.does) for slug, one in PERTURBERS.items()]
PURPOSE_CHOICES = [generation_perturbers.TEST_PURPOSE, *correct_answers.PURPOSES]
FLAG_CHOICES = [*flags.FLAG_TITLES.items()]
# As a service calls what the body calls otherwise.
BODY_NAMES = {"number": "each", "errors": "doses"}


class GenerationBody(serializers.Serializer[Any]):
    """Each of the `perturbers` makes `each` perturbed answers of a gold answer with as many errors
    as each of `doses` says, of the first `limit` gold answers; null: of all. The same `seed` makes
    the same errors; empty: a new one. `share` percent of each category people see at once; the
    rest waits, or with `accept` is taken for what it was made for. What is flagged as in `aside`
    waits. The `purpose` is test, for people to vet; what is for practice or probes has a known
    answer: what its category is made for."""

    perturbers = serializers.ListField(
        child=serializers.ChoiceField(choices=PERTURBER_CHOICES),
        min_length=1,
        max_length=len(PERTURBER_CHOICES),
    )
    each = serializers.IntegerField(
        default=1, min_value=1, max_value=generation_perturbers.MAX_PER_GOLD
    )
    doses = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=generation_perturbers.MAX_ERRORS),
        default=[1],
        min_length=1,
        max_length=generation_perturbers.MAX_ERRORS,
    )
    limit = serializers.IntegerField(
        default=None, allow_null=True, min_value=1, max_value=1_000_000_000
    )
    seed = serializers.RegexField(
        rf"^{generation_perturbers.SEED_PATTERN.pattern}\Z",
        default="",
        allow_blank=True,
        max_length=20,
    )
    purpose = serializers.ChoiceField(
        choices=PURPOSE_CHOICES, default=generation_perturbers.TEST_PURPOSE
    )
    share = serializers.IntegerField(default=100, min_value=0, max_value=100)
    accept = serializers.BooleanField(default=False)
    aside = serializers.ListField(
        child=serializers.ChoiceField(choices=FLAG_CHOICES),
        default=[],
        max_length=len(FLAG_CHOICES),
    )


class MadeSerializer(BroughtSerializer):
    """What came of it. By perturber, how many answers were `made`, and how many gold answers were
    `lacking` places for; by rule, how many items are `flagged`. The rest is said of the items."""

    made = serializers.DictField(child=serializers.IntegerField())
    lacking = serializers.DictField(child=serializers.IntegerField())
    flagged = serializers.DictField(child=serializers.IntegerField())


class GenerationSerializer(SharedOutFields):
    """Items that were asked for: `done` of `total` gold answers so far; `made` is null until it
    ended. A job like others, it is cancelled or done again among them."""

    by = serializers.CharField(source="result.by")
    perturbers = serializers.ListField(source="result.perturbers", child=serializers.CharField())
    each = serializers.IntegerField(source="result.each")
    doses = serializers.ListField(source="result.errors", child=serializers.IntegerField())
    limit = serializers.IntegerField(source="result.limit", allow_null=True)
    seed = serializers.CharField(source="result.seed")
    purpose = serializers.CharField(source="result.purpose")
    done = serializers.IntegerField()
    total = serializers.IntegerField(allow_null=True)
    made = MadeSerializer(source="result.made", default=None, allow_null=True)


class GenerationList(ListAPIView[Job]):
    """The times that items were made, the last first; a POST asks for some."""

    serializer_class = GenerationSerializer
    pagination_class = CursorPages
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Job]:
        if getattr(self, "swagger_fake_view", False):
            return Job.objects.none()
        member = access.member_for(self.request, self.kwargs["slug"], right="manage")
        return perturber_jobs.list_jobs(member.project).order_by("-pk")

    @extend_schema(
        parameters=[KEY_PARAMETER],
        request=GenerationBody,
        responses={
            202: GenerationSerializer,
            409: OpenApiResponse(ProblemSerializer, "The same request is being processed now."),
            422: OpenApiResponse(
                ProblemSerializer, ("This cannot be generated here; the detail says why.")
            ),
            **PROBLEM_RESPONSES,
        },
    )
    @make_idempotent("manage")
    def post(self, request: Request, slug: str) -> Response:
        """Have a worker make items of the project's gold answers, without a model."""
        member = access.member_for(request, slug, right="manage")
        said = validate_body(GenerationBody(data=request.data))
        try:
            job = perturber_jobs.enqueue(
                member.project,
                _parse_request(said),
                ReleasePolicy.of(said),
                access.ensure_membership(member),
            )
        except Refused as problem:
            named = isinstance(problem, FieldError) and problem.field
            errors = {BODY_NAMES.get(named, named): [str(problem)]} if named else None
            raise Unprocessable(str(problem), errors) from problem
        return Response(GenerationSerializer(job).data, status=202)


@extend_schema(responses={200: GenerationSerializer, **PROBLEM_RESPONSES})
@api_view(["GET"])
def generation(request: Request, slug: str, number: int) -> Response:
    """What was asked for under a number, how far it is, and what came of it."""
    member = access.member_for(request, slug, right="manage")
    job = perturber_jobs.find_job(member.project, number)
    if job is None:
        raise Http404
    return Response(GenerationSerializer(job).data)


def _parse_request(said: dict[str, Any]) -> PerturbRequest:
    return PerturbRequest(
        perturbers=tuple(dict.fromkeys(said["perturbers"])),
        seed=said["seed"] or generation_perturbers.new_seed(),
        number=said["each"],
        doses=tuple(dict.fromkeys(said["doses"])),
        limit=said["limit"],
        purpose=said["purpose"],
    )


urlpatterns = [
    path(GENERATIONS_PATH, GenerationList.as_view(), name="api-generations"),
    path(GENERATIONS_PATH + "<int:number>/", generation, name="api-generation"),
]
