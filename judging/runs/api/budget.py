"""The API of a project's budget."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.responses import (
    IF_MATCH_PARAMETER,
    PROBLEM_RESPONSES,
    REFUSED_RESPONSES,
    check_if_match,
    respond_with_etag,
    validate_body,
)
from annotation.db import transactions
from annotation.models import Project
from annotation.projects import access
from judging.evaluators.api import CurrencyField
from judging.models import Run
from judging.runs import budget as runs_budget
from judging.runs.budget import BudgetStatus, RunSpending
from judging.runs.spending import DECIMAL_PLACES


def _cap_field(**options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=14, decimal_places=6, allow_null=True, **options)


def _money(**options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=20, decimal_places=DECIMAL_PLACES, **options)


class CapSerializer(serializers.Serializer[Any]):
    """The project's spending cap; null for no cap."""

    cap = _cap_field(min_value=0)


class SpendingSerializer(serializers.Serializer[RunSpending]):
    """The cost of a run. `unknown` is the number of its `replies` without a known price; these used
    `unknown_tokens`. `spent` is null if no price is known. `counted` is the amount that counts
    against caps: for a reply that reports no tokens, the reserved amount counts if the endpoint has
    prices."""

    run = serializers.IntegerField(source="run.number")
    endpoint = serializers.CharField(source="run.endpoint.name")
    currency = CurrencyField()
    strategy = serializers.CharField(source="run.strategy.slug")
    cap = _cap_field(source="run.cap")
    spent = _money(allow_null=True)
    counted = _money(source="run.spent")
    reserved = _money(source="run.reserved")
    replies = serializers.IntegerField(source="paid.replies")
    unknown = serializers.IntegerField(source="paid.unknown")
    unknown_tokens = serializers.IntegerField(source="paid.tokens")


class StandingSerializer(serializers.Serializer[BudgetStatus]):
    """Amounts in `currency`. `counted` is the spent amount that counts against the cap, and `left`
    can still be reserved. `unknown` is the number of `replies` without a known price; these used
    `unknown_tokens`. `spent` is null if no price is known."""

    currency = CurrencyField()
    cap = _cap_field()
    spent = _money(source="known", allow_null=True)
    counted = _money()
    reserved = _money()
    left = _money(allow_null=True)
    replies = serializers.IntegerField(source="paid.replies")
    unknown = serializers.IntegerField(source="paid.unknown")
    unknown_tokens = serializers.IntegerField(source="paid.tokens")


class BudgetSerializer(serializers.Serializer[Any]):
    """The budget of the project, and the cost of each run that calls an evaluator."""

    project = StandingSerializer()
    runs = SpendingSerializer(many=True)


@extend_schema(methods=["GET"], responses={200: BudgetSerializer, **PROBLEM_RESPONSES})
@extend_schema(
    methods=["PUT"],
    parameters=[IF_MATCH_PARAMETER],
    request=CapSerializer,
    responses={200: BudgetSerializer, **REFUSED_RESPONSES},
)
@api_view(["GET", "PUT"])
def budget(request: Request, slug: str) -> Response:
    """Return what the project may spend and has spent on evaluators; a lead's PUT sets the cap."""
    sets = request.method == "PUT"
    member = access.member_for(request, slug, right="manage" if sets else "results")
    if sets:
        cap = validate_body(CapSerializer(data=request.data))["cap"]
        with transactions.transact():
            # Locked, so that of two who read the same cap only one changes it.
            Project.objects.select_for_update(no_key=True).only("pk").get(pk=member.project_id)
            check_if_match(request, _get_cap(member.project))
            runs_budget.set_cap(member.project, cap, access.ensure_membership(member))
    return respond_with_etag(_describe_budget(member.project), _get_cap(member.project))


def _get_cap(project: Project) -> Any:
    """The cap as a client sees it. The ETag is computed from the cap alone, since spending changes
    by itself."""
    return StandingSerializer(runs_budget.load_status(project)).data["cap"]


def _describe_budget(project: Project) -> dict[str, Any]:
    asked = Run.objects.in_project(project).filter(kind=Run.Kind.ASKED)
    spendings = runs_budget.list_spending(list(asked.for_page().order_by("number")))
    told = {"project": runs_budget.load_status(project), "runs": spendings}
    return dict(BudgetSerializer(told).data)


urlpatterns = [path("projects/<slug:slug>/budget/", budget, name="api-budget")]
