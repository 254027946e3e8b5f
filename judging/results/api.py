"""The API of figures. It has all tables that the command prints, with the same rows."""

from typing import Any

from django.http import Http404
from django.urls import path
from django.utils.http import http_date
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.responses import PROBLEM_RESPONSES, ProblemSerializer
from annotation.projects import access
from judging import tasks
from judging.results import columns, figures, tables
from judging.results.counted import UnknownField
from judging.results.figures import FigureTable, PendingTable

RUN_PARAMETER = OpenApiParameter(
    "run",
    OpenApiTypes.INT,
    many=True,
    description="Numbers of runs. Default: the finished runs over all items, without canaries and "
    "superseded runs; if there are none, all runs that are not archived.",
)
TABLE_PARAMETER = OpenApiParameter(
    "table", location=OpenApiParameter.PATH, enum=list(tables.RESULT_TABLES)
)
BY_PARAMETER = OpenApiParameter(
    "by",
    description="Fields to group by, separated by commas. "
    f"By table: {figures.describe_grouping()}.",
    default=columns.DEFAULT_BY,
)
# Seconds to wait before asking again for figures that are still being computed.
RETRY_AFTER = 1


class FiguresSerializer(serializers.Serializer[FigureTable]):
    """A table of figures as the command prints it: rates are fractions of 1, unrounded."""

    table = serializers.CharField()
    columns = serializers.ListField(child=serializers.CharField())
    rows = serializers.ListField(child=serializers.DictField())


class MakingSerializer(serializers.Serializer[PendingTable]):
    """The progress of a worker on figures: `done` of `total` parts of a `step` ("" before the
    start).

    `failure` says why computing failed; a worker tries again after a minute. `last` has the figures
    from before the latest change, if they exist.
    """

    table = serializers.CharField()
    columns = serializers.ListField(child=serializers.CharField())
    since = serializers.DateTimeField(allow_null=True)
    step = serializers.CharField(allow_blank=True)
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    failure = serializers.CharField(allow_blank=True)
    last = FiguresSerializer(allow_null=True)


PENDING_RESPONSES = {
    202: OpenApiResponse(MakingSerializer, "Being computed; ask again after `Retry-After`.")
}


@extend_schema(
    parameters=[TABLE_PARAMETER, RUN_PARAMETER, BY_PARAMETER],
    responses={
        200: FiguresSerializer,
        **PENDING_RESPONSES,
        400: ProblemSerializer,
        **PROBLEM_RESPONSES,
    },
)
@api_view(["GET"])
def results(request: Request, slug: str, table: str) -> Response:
    """A table of figures, the same as on the command line.

    Tables over many outcomes are computed by a worker and cached until their data change;
    `Last-Modified` says when they were computed. A parameter with the name of a column, such as
    `ability=factual`, selects the rows with that value.
    """
    member = access.member_for(request, slug, right="results")
    if table not in tables.RESULT_TABLES:
        raise Http404(
            f"There is no table {table[:80]}. Choose one of: {', '.join(tables.RESULT_TABLES)}."
        )
    try:
        asked = figures.request_table(member.project, table, request.query_params)
    except figures.UnknownRun as problem:
        raise Http404(str(problem)) from problem
    except UnknownField as problem:
        raise ParseError(str(problem)) from problem
    tasks.notify_of_figure(asked)
    return respond(asked)


def respond(asked: FigureTable | PendingTable) -> Response:
    """Answer with the table, or 202 with the progress of the worker on it."""
    if isinstance(asked, FigureTable):
        headers = {"Last-Modified": http_date(asked.at.timestamp())} if asked.at else None
        return Response(FiguresSerializer(asked).data, headers=headers)
    said: Any = MakingSerializer(asked).data
    return Response(said, status=202, headers={"Retry-After": str(RETRY_AFTER)})


urlpatterns = [
    path("projects/<slug:slug>/results/<slug:table>/", results, name="api-results"),
]
