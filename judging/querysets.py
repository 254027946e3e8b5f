"""Sets of rows of the evaluator half, in the words of the field."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Count, Exists, OuterRef, Q

from annotation.querysets import ERROR_ITEM, SI_ITEM

if TYPE_CHECKING:
    from annotation.models import Item, Project
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

    def numbered(self, numbers: Iterable[int]) -> RunQuerySet:
        return self.filter(number__in=list(numbers))

    def for_results(self) -> RunQuerySet:
        return self.select_related("strategy", "endpoint").order_by("number")

    def for_page(self) -> RunQuerySet:
        return self.select_related("strategy", "endpoint", "member", "project")

    def for_list(self) -> RunQuerySet:
        return (
            self.select_related("strategy", "endpoint", "member")
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

    def idle(self, now: datetime) -> RequestQuerySet:
        """Requests that a worker could take now."""
        expired = Q(state="leased", leased_until__lte=now)
        return self.filter(Q(state="waiting", next_try__lte=now) | expired)

    def words(self) -> models.QuerySet[Any, dict[str, Any]]:
        """Causes and what providers said, with the number of requests, most frequent first."""
        said = self.exclude(message="").values("cause", "message").annotate(n=Count("pk"))
        return said.order_by("-n", "cause", "message")

    def _calls(self) -> models.QuerySet[Any]:
        from judging.models import Call

        return Call.objects.filter(request=OuterRef("pk"))


class OutcomeQuerySet(models.QuerySet["Any"]):
    def settled(self) -> OutcomeQuerySet:
        return self.exclude(result="pending")

    def counted(self) -> OutcomeQuerySet:
        """Settled outcomes that figures count: the item is held for the same thing now, in the
        same texts, as when it was judged."""
        return self.settled().filter(self._held())

    def not_counted(self) -> OutcomeQuerySet:
        """Settled outcomes that figures leave out."""
        return self.settled().filter(~self._held())

    def parsed(self) -> OutcomeQuerySet:
        return self.filter(result__in=["detected", "undetected"])

    def for_list(self) -> OutcomeQuerySet:
        """In the order of the items, without texts."""
        return self.select_related("item").order_by("item__position")

    def of_item(self, item: Item) -> OutcomeQuerySet:
        found = self.filter(item=item).select_related("run__strategy", "run__endpoint", "revision")
        return found.order_by("-run__number")

    def kinds(self) -> models.QuerySet[Any, dict[str, Any]]:
        """Which combinations of group and result there are, with their number."""
        fields = ("ability", "category", "result", "detail", "cause")
        return self.values(*fields).annotate(n=Count("pk")).order_by(*fields)

    def _held(self) -> Q:
        from annotation.models import Resolution

        now = Resolution.objects.current().filter(
            item=OuterRef("item"), revision=OuterRef("revision")
        )
        return Q(Exists(now.filter(value=ERROR_ITEM)), invariant=False) | Q(
            Exists(now.filter(value=SI_ITEM)), invariant=True
        )

    def missing_by_cause(self) -> models.QuerySet[Any, dict[str, Any]]:
        counted = self.filter(result="missing").values("cause").annotate(n=Count("pk"))
        return counted.order_by("-n", "cause")
