"""Sets of rows of the evaluator half, in the words of the field."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Count, Exists, OuterRef, Q

if TYPE_CHECKING:
    from annotation.models import Project
    from judging.models import Endpoint, Run


class EndpointQuerySet(models.QuerySet["Endpoint"]):
    def named(self, name: str) -> Endpoint | None:
        return self.filter(name=name).first()


class RunQuerySet(models.QuerySet["Run"]):
    def in_project(self, project: Project) -> RunQuerySet:
        return self.filter(project=project)

    def planning(self) -> RunQuerySet:
        return self.filter(state="planning").select_related("strategy")

    def running(self) -> RunQuerySet:
        return self.filter(state="running")

    def for_results(self) -> RunQuerySet:
        return self.select_related("strategy", "endpoint").order_by("number")

    def for_list(self) -> RunQuerySet:
        return (
            self.select_related("strategy", "endpoint")
            .annotate(
                items=Count("outcomes"),
                pending=Count("outcomes", filter=Q(outcomes__result="pending")),
                missing=Count("outcomes", filter=Q(outcomes__result="missing")),
            )
            .order_by("-number")
        )


class RequestQuerySet(models.QuerySet["Any"]):
    def wanted_by(self, run: Run) -> RequestQuerySet:
        return self.filter(Exists(self._calls().filter(run=run)))

    def wanted(self) -> RequestQuerySet:
        """Requests that at least one running run waits for."""
        return self.filter(Exists(self._calls().filter(run__state="running")))

    def due(self, now: datetime) -> RequestQuerySet:
        return self.filter(state="waiting", next_try__lte=now)

    def _calls(self) -> models.QuerySet[Any]:
        from judging.models import Call

        return Call.objects.filter(request=OuterRef("pk"))


class OutcomeQuerySet(models.QuerySet["Any"]):
    def settled(self) -> OutcomeQuerySet:
        return self.exclude(result="pending")

    def missing_by_cause(self) -> models.QuerySet[Any, dict[str, Any]]:
        counted = self.filter(result="missing").values("cause").annotate(n=Count("pk"))
        return counted.order_by("-n", "cause")
