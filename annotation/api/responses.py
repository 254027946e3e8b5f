"""Responses of the API: problems (RFC 9457), validation of bodies, ETags and shared fields."""

from collections.abc import Mapping
from hashlib import sha256
from http import HTTPStatus
from typing import Any

from django.core.exceptions import RequestDataTooBig
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import exception_handler

from annotation.errors import FieldError, InProgress, Refused, Stale, TooEarly
from annotation.models import Job

PROBLEM_CONTENT_TYPE = "application/problem+json"


class ProblemSerializer(serializers.Serializer[Any]):
    """The reason why a request failed (RFC 9457), and what to do about it."""

    type = serializers.CharField(help_text="Always about:blank: see the status.")
    title = serializers.CharField(help_text="The status in words.")
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="What is wrong and what to do.")

    def get_fields(self) -> dict[str, Any]:
        # Not declared above, since a serializer has an attribute of this name.
        words = "Problems for each field of the body or the query."
        return super().get_fields() | {
            "errors": serializers.DictField(required=False, help_text=words)
        }


class JobFields(serializers.Serializer[Job]):
    """The fields of every job that has a page of its own."""

    number = serializers.IntegerField(source="result.number")
    member = serializers.CharField(source="member.alias", default=None, allow_null=True)
    state = serializers.ChoiceField(choices=Job.State.choices)
    message = serializers.CharField()
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class SharedOutFields(JobFields):
    """The fields of a job that generates items, including how its items are released to
    annotators."""

    share = serializers.IntegerField(source="result.share")
    accept = serializers.BooleanField(source="result.accept")
    aside = serializers.ListField(source="result.aside", child=serializers.CharField())


class BroughtSerializer(serializers.Serializer[Any]):
    """The outcome of generated items. Counts of rows: `new`, `unchanged`, and the rows not
    imported, `bad` and `conflicts`; `problems` describes the first rows not imported. Counts of
    items: `opened` were released to annotators, `accepted` were accepted without review, `waiting`
    are held for review."""

    new = serializers.IntegerField()
    unchanged = serializers.IntegerField()
    bad = serializers.IntegerField()
    conflicts = serializers.IntegerField()
    opened = serializers.IntegerField()
    accepted = serializers.IntegerField()
    waiting = serializers.IntegerField()
    problems = serializers.ListField(child=serializers.CharField())


PROBLEM_RESPONSES: dict[int, Any] = {
    403: OpenApiResponse(ProblemSerializer, "Your role does not allow this."),
    404: OpenApiResponse(ProblemSerializer, "It does not exist, or you may not see it."),
}
REFUSED_RESPONSES = PROBLEM_RESPONSES | {
    422: OpenApiResponse(ProblemSerializer, "Not possible; the detail says why.")
}
CONFLICT_RESPONSES = PROBLEM_RESPONSES | {
    409: OpenApiResponse(ProblemSerializer, "Not possible in the current state.")
}
IF_MATCH_PARAMETER = OpenApiParameter(
    "If-Match",
    location=OpenApiParameter.HEADER,
    description="The ETag that you read. If it is out of date, nothing is changed.",
)
SUBMISSION_RESPONSES = PROBLEM_RESPONSES | {
    409: OpenApiResponse(ProblemSerializer, "The item has changed; nothing was saved."),
    422: OpenApiResponse(ProblemSerializer, "The submission is not valid."),
}


class Unprocessable(APIException):
    """A well-formed request that cannot be processed; `errors` has the errors by field."""

    status_code = 422

    def __init__(self, detail: str, errors: dict[str, Any] | None = None) -> None:
        super().__init__(detail)
        self.errors = errors


class Conflict(APIException):
    """The data that the request refers to has changed. `wait` becomes the header `Retry-After`."""

    status_code = 409

    def __init__(self, detail: str, wait: int | None = None) -> None:
        super().__init__(detail)
        self.wait = wait


class TooLarge(APIException):
    """The body is larger than the maximum that the server reads at once."""

    status_code = 413
    default_detail = "The body is too large. Send less data per request."


class PreconditionFailed(APIException):
    """The data changed after the sender read it."""

    status_code = 412
    default_detail = "This has changed since you read it. Read it again and send the new ETag."


def validate_body(body: BaseSerializer[Any]) -> dict[str, Any]:
    """Validate a body and return its data. Raises `Unprocessable`, also for unknown names: a
    misspelt name would otherwise be ignored unnoticed."""
    _check_names(body)
    if not body.is_valid():
        raise Unprocessable("The body cannot be used.", dict(body.errors))
    data: dict[str, Any] = body.validated_data
    return data


def _check_names(body: BaseSerializer[Any]) -> None:
    sent: Any = getattr(body, "initial_data", None)
    if not isinstance(body, serializers.Serializer) or not isinstance(sent, Mapping):
        return
    known = [name for name, field in body.fields.items() if not field.read_only]
    if unknown := [name for name in sent if name not in known]:
        words = f"There is no {', '.join(map(ascii, unknown))}. There are {', '.join(known)}."
        raise Unprocessable("The body cannot be used.", {"body": [words]})


def make_etag(content: bytes) -> str:
    """The ETag of a response."""
    return f'"{_digest(content)}"'


def respond_with_etag(told: Any, steady: Any) -> Response:
    """Build a response with an ETag although a part of the response changes by itself: the ETag
    starts with a digest of the `steady` part, and `check_if_match` compares this digest."""
    tag = f'"{_digest(JSONRenderer().render(steady))}-{_digest(JSONRenderer().render(told))}"'
    return Response(told, headers={"ETag": tag})


def check_if_match(request: Request, shown: Any) -> None:
    """Raise `PreconditionFailed` if no ETag in the request's `If-Match` matches the current data
    `shown`. If a part of the data changes by itself, `shown` is the steady part."""
    tags = request.headers.get("If-Match", "*")
    known = [one.strip().strip('"').partition("-")[0] for one in tags.split(",")]
    if tags.strip() != "*" and _digest(JSONRenderer().render(shown)) not in known:
        raise PreconditionFailed


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:32]


def build_problem(status: int, detail: str, errors: dict[str, Any] | None = None) -> dict[str, Any]:
    """Build the body of a problem response (RFC 9457)."""
    title = HTTPStatus(status).phrase
    said = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return said if errors is None else said | {"errors": errors}


def handle_exception(raised: Exception, context: dict[str, Any]) -> Response | None:
    """Build the response to an exception in a view; None for an unexpected exception. The status
    for errors of services is 409 for `Stale` and `TooEarly`, otherwise 422."""
    if isinstance(raised, Refused):
        field = raised.field if isinstance(raised, FieldError) else ""
        errors = {field: [str(raised)]} if field else None
        wait = raised.wait if isinstance(raised, InProgress) else None
        later = isinstance(raised, Stale | TooEarly)
        raised = Conflict(str(raised), wait) if later else Unprocessable(str(raised), errors)
    if isinstance(raised, RequestDataTooBig):
        raised = TooLarge()
    answer = exception_handler(raised, context)
    if answer is not None:
        answer.data = _escape_unsendable(
            build_problem(answer.status_code, *_problem_detail(raised, answer.data))
        )
        answer.content_type = PROBLEM_CONTENT_TYPE
    return answer


def _escape_unsendable(said: Any) -> Any:
    """Escape lone surrogates in the data: a response cannot contain them, but messages repeat text
    from the request."""
    if isinstance(said, dict):
        return {_escape_unsendable(name): _escape_unsendable(one) for name, one in said.items()}
    if isinstance(said, list | tuple):
        return [_escape_unsendable(one) for one in said]
    return said.encode(errors="backslashreplace").decode() if isinstance(said, str) else said


def _problem_detail(raised: Exception, data: Any) -> tuple[str, dict[str, Any] | None]:
    """The message and the errors by field; REST framework has no message for query parameters."""
    if isinstance(raised, ValidationError):
        errors = data if isinstance(data, dict) else {"query": data}
        return "The query cannot be used.", errors
    return str(data["detail"]), getattr(raised, "errors", None)
