"""The API of the reports for leads: the same figures as on their pages."""

from typing import Any

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.responses import PROBLEM_RESPONSES, ProblemSerializer
from annotation.models import Project
from annotation.projects import access
from annotation.reports import agreement, agreement_answers, grouping, tables
from annotation.reports import category_board as reports_category_board
from annotation.reports.grouping import Grouping

GROUP_PARAMETER = OpenApiParameter(
    "by", description="Field to group the items by; default: the first that the project has."
)
VALUE_PARAMETER = OpenApiParameter(
    "value",
    description="The answer whose share is computed; as-meant: the answer that is intended for the "
    "item's category.",
)
# The same limits as on the page. Closer to 0 or 1, `items_to_overturn` would search without end.
MIN_THRESHOLD, MAX_THRESHOLD = 0.01, 0.99
THRESHOLD_PARAMETER = OpenApiParameter(
    "bar",
    float,
    description=f"The threshold, from {MIN_THRESHOLD} to {MAX_THRESHOLD}.",
    default=reports_category_board.DEFAULT_THRESHOLD,
)
ROWS_FIELD = serializers.ListField(child=serializers.DictField())


class AgreementRowSerializer(serializers.Serializer[Any]):
    """One figure of agreement; `people` is empty if it is about all annotators."""

    field = serializers.CharField()
    measure = serializers.CharField()
    people = serializers.CharField()
    n_items = serializers.IntegerField()
    n_raters = serializers.IntegerField()
    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    reason = serializers.CharField()


class ConfusionSerializer(serializers.Serializer[Any]):
    """Number of items where `a` gave one answer and `b` another; no pair is left out."""

    field = serializers.CharField()
    a = serializers.CharField()
    b = serializers.CharField()
    choice_a = serializers.CharField()
    choice_b = serializers.CharField()
    n = serializers.IntegerField()


class AgreementSerializer(serializers.Serializer[Any]):
    """Agreement between annotators; values are unrounded, rates are fractions of 1."""

    figures = AgreementRowSerializer(many=True)
    confusion = ConfusionSerializer(many=True)


@extend_schema(
    parameters=[GROUP_PARAMETER],
    responses={
        200: inline_serializer(
            "Pace", dict.fromkeys(("people", "groups", "choices", "dropped"), ROWS_FIELD)
        ),
        400: ProblemSerializer,
        **PROBLEM_RESPONSES,
    },
)
@api_view(["GET"])
def pace(request: Request, slug: str) -> Response:
    """Progress and pace by person and by group, choices by day, and dropped items.

    The first group contains all items, and its name is empty.
    """
    project = access.member_for(request, slug, right="manage").project
    by = _parse_grouping(project, request.query_params.get("by", ""))
    shown = tables.load_progress(project, by=by, now=timezone.now()).value
    groups = (shown.pace.whole, *shown.pace.groups)
    return Response(
        {
            "people": list(tables.to_rows(tables.PACE, shown.pace.people)),
            "groups": list(tables.to_rows(tables.FORECAST, groups)),
            "choices": list(tables.to_rows(tables.CHOICES, shown.chosen)),
            "dropped": list(tables.dropped_rows(shown.dropped)),
        }
    )


@extend_schema(
    parameters=[GROUP_PARAMETER, VALUE_PARAMETER, THRESHOLD_PARAMETER],
    responses={
        200: inline_serializer("Board", {"groups": ROWS_FIELD}),
        400: ProblemSerializer,
        **PROBLEM_RESPONSES,
    },
)
@api_view(["GET"])
def category_board(request: Request, slug: str) -> Response:
    """Share valid per category, its interval, and how many more items it would take to change the
    result."""
    project = access.member_for(request, slug, right="manage").project
    query = request.query_params
    by, value = (
        _parse_grouping(project, query.get("by", "")),
        _parse_value(project, query.get("value", "")),
    )
    bar = _parse_threshold(query.get("bar", str(reports_category_board.DEFAULT_THRESHOLD)))
    rows = tables.load_board(project, by=by, value=value, bar=bar, now=timezone.now()).value
    return Response({"groups": list(tables.to_rows(reports_category_board.IN_FILES, rows))})


@extend_schema(
    parameters=[
        OpenApiParameter(
            "field", description="A question of the task type; default: all questions."
        ),
        OpenApiParameter("category", description="Only items of this category."),
    ],
    responses={200: AgreementSerializer, 400: ProblemSerializer, **PROBLEM_RESPONSES},
)
@api_view(["GET"])
def agreements(request: Request, slug: str) -> Response:
    """Agreement between annotators: figures with their intervals, and confusion counts."""
    member = access.member_for(request, slug, right="manage")
    wanted, category = (request.query_params.get(name, "") for name in ("field", "category"))
    asked = agreement_answers.list_questions(member.project)
    chosen = [one for one in asked if wanted in ("", one.name)]
    if wanted and not chosen:
        known = ", ".join(one.name for one in asked) or "no field for agreement"
        raise ParseError(f"This project does not ask {wanted!r}. It asks {known}.")
    found = [agreement.measure_agreement(member.project, one, category) for one in chosen]
    figures = [agreement.row_as_dict(row) for one in found for row in one.rows]
    cells = [agreement.cell_as_dict(one.question, cell) for one in found for cell in one.cells]
    return Response(AgreementSerializer({"figures": figures, "confusion": cells}).data)


def _parse_grouping(project: Project, name: str) -> Grouping:
    known = grouping.list_groupings(project)
    found = [one for one in known if one.name == name] if name else known
    if not found:
        names = ", ".join(one.name for one in known)
        raise ParseError(f"Items cannot be grouped by {name!r}. Use one of {names}.")
    return found[0]


def _parse_value(project: Project, value: str) -> str:
    known = [one for one, _ in reports_category_board.answer_choices(project)]
    if value and value not in known:
        raise ParseError(f"The share of {value!r} cannot be shown. Use one of {', '.join(known)}.")
    return value or reports_category_board.default_answer(project)


def _parse_threshold(text: str) -> float:
    try:
        bar = float(text)
    except ValueError:
        bar = 0.0
    if not MIN_THRESHOLD <= bar <= MAX_THRESHOLD:
        raise ParseError(
            f"The threshold must be a number from {MIN_THRESHOLD} to {MAX_THRESHOLD}, for example "
            "0.8."
        )
    return bar


urlpatterns = [
    path("projects/<slug:slug>/agreement/", agreements, name="api-agreement"),
    path("projects/<slug:slug>/pace/", pace, name="api-pace"),
    path("projects/<slug:slug>/board/", category_board, name="api-board"),
]
