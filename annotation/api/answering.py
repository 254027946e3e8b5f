"""How the API answers: lists by pages, what a body lacks, and what a service refuses."""

from typing import Any

from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import exception_handler

from annotation.errors import Refused, Stale, TooEarly


class ProblemSerializer(serializers.Serializer[Any]):
    """Why a request was not answered, in words that say what to do."""

    detail = serializers.CharField()
    problems = serializers.DictField(required=False, help_text="By field of the body.")


PROBLEMS: dict[int, Any] = {
    403: OpenApiResponse(ProblemSerializer, "Your role does not allow this."),
    404: OpenApiResponse(ProblemSerializer, "Not there, or not yours to see."),
}
SUBMISSION_PROBLEMS = PROBLEMS | {
    409: OpenApiResponse(ProblemSerializer, "The item changed; nothing was stored."),
    422: OpenApiResponse(ProblemSerializer, "The submission cannot be taken."),
}


class Unprocessable(APIException):
    """A request that is well formed and cannot be taken all the same."""

    status_code = 422


class Conflict(APIException):
    """What the request speaks of is no longer so."""

    status_code = 409


class Pages(LimitOffsetPagination):
    default_limit = 100
    max_limit = 1000


def checked(body: BaseSerializer[Any]) -> dict[str, Any]:
    if not body.is_valid():
        raise Unprocessable({"detail": "The body cannot be used.", "problems": dict(body.errors)})
    data: dict[str, Any] = body.validated_data
    return data


def explained(problem: Exception, context: dict[str, Any]) -> Response | None:
    """The answer to what went wrong in any view; what a service refuses is 409 if things changed
    or it is too early, else 422."""
    if isinstance(problem, Refused):
        later = isinstance(problem, Stale | TooEarly)
        problem = (Conflict if later else Unprocessable)(str(problem))
    return exception_handler(problem, context)
