"""Sets of outcomes and of the calls that they rest on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Count, Exists, F, OuterRef, Q
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

if TYPE_CHECKING:
    from annotation.models import Item


# No column takes it, so nothing is found by it.
NUL = "\x00"
# Causes that lie in what the evaluator said: asking again would not mend them.
REPLY_CAUSES = (
    "refused", "filtered", "truncated", "off_scale", "unparsable", "incomplete", "swapped",
    "echoed", "language", "unrelated",
)  # fmt: skip


class OutcomeQuerySet(models.QuerySet[Any]):
    def of_requests(self, ids: Iterable[int]) -> OutcomeQuerySet:
        """Outcomes that hang on any of these requests."""
        return self.filter(calls__request__among=ids).distinct()

    def main(self) -> OutcomeQuerySet:
        """Of several axes those of the items' own abilities."""
        return self.filter(main=True)

    def pending(self) -> OutcomeQuerySet:
        return self.filter(result="pending")

    def mended(self) -> OutcomeQuerySet:
        """Missing for a request that failed, though none of their requests is failed now."""
        failures = ~Q(cause__in=[*REPLY_CAUSES, "one_order"]) | (
            Q(cause="one_order") & ~Q(values__missing__in=REPLY_CAUSES)
        )
        made, failed = self._calls(), self._calls().filter(request__state="failed")
        # Of a call that could not be made, see `Outcome.reject`, no request failed.
        unsent = Q(cause="rejected", values__has_key="reason")
        # Each has a cause; SQLite looks into the index of missing ones only if that is said.
        missing = self.filter(failures & ~unsent, result="missing", cause__gt="")
        return missing.filter(Exists(made), ~Exists(failed))

    def lock_unsure(self) -> list[int]:
        """The ids of those that a retry decides anew, locked in the order in which they are
        decided: missing ones that have calls, and those of which some call failed. Pending ones
        are locked with them."""
        failed = self._calls().filter(request__state="failed")
        unsure = Q(Exists(self._calls()), result="missing") | Q(Exists(failed))
        locked = self.filter(unsure | Q(result="pending")).order_by("pk")
        rows = locked.select_for_update(no_key=True).values_list("pk", "result")
        return [pk for pk, result in rows if result != "pending"]

    def reopen(self) -> int:
        """Let them be decided anew."""
        return self.update(result="pending", detail="", cause="", share=None, values={})

    def settled(self) -> OutcomeQuerySet:
        return self.exclude(result="pending")

    def counted(self) -> OutcomeQuerySet:
        """Settled outcomes that figures count: the item is held for the same thing now, in the
        same texts, as when it was judged; one with any truth only needs to be held for something.
        """
        return self.settled().filter(self._held())

    def not_counted(self) -> OutcomeQuerySet:
        """Settled outcomes that figures leave out."""
        return self.settled().filter(~self._held())

    def parsed(self) -> OutcomeQuerySet:
        return self.filter(result__in=["detected", "undetected"])

    def with_errors(self) -> OutcomeQuerySet:
        """Of items with an error that repeat no other one."""
        return self.filter(invariant=False).exclude(ability="")

    def of_invariant(self) -> OutcomeQuerySet:
        return self.filter(invariant=True)

    def of_repeats(self) -> OutcomeQuerySet:
        """Of items that repeat another one, which are of no ability."""
        return self.filter(ability="")

    def with_moved(self) -> OutcomeQuerySet:
        """With `moved`, by how much the perturbed answer was scored above gold; None unless both
        were scored."""
        of = [Cast(KT(f"values__{name}"), models.FloatField()) for name in ("perturbed", "gold")]
        return self.annotate(moved=of[0] - of[1])

    def for_list(self) -> OutcomeQuerySet:
        """In the order of the items, without texts."""
        found = self.select_related("item", "revision").defer("revision__texts")
        return found.order_by("item__position")

    def for_replies(self) -> OutcomeQuerySet:
        return self.select_related("item", "revision__item__project__task_type")

    def along(self, axis: str) -> OutcomeQuerySet:
        """Those of this axis; without one the items' own come first."""
        if not axis:
            return self.order_by("-main", "axis")
        return self.none() if NUL in axis else self.filter(axis=axis)

    def about(self, key: str) -> OutcomeQuerySet:
        """Those of the item with this key."""
        return self.none() if NUL in key else self.filter(item__key=key)

    def of_item(self, item: Item) -> OutcomeQuerySet:
        found = self.filter(item=item).select_related("run__strategy", "run__endpoint", "revision")
        return found.order_by("-run__number")

    def count_items(self) -> models.QuerySet[Any, dict[str, Any]]:
        """How many items each run has, and how many of them are pending or missing."""

        def items(**such: Any) -> Count:
            return Count("item", distinct=True, filter=Q(**such))

        counted = {
            "pending": items(result="pending"),
            "missing": items(result="missing", main=True),
        }
        return self.values("run").annotate(items=items(), **counted).order_by()

    def kinds(self) -> models.QuerySet[Any, dict[str, Any]]:
        """Which combinations of group and result there are, with their number."""
        fields = ("ability", "category", "source_ability", "result", "detail", "cause")
        return self.values(*fields).annotate(n=Count("pk")).order_by(*fields)

    def _held(self) -> Q:
        from annotation.models import Resolution

        # One condition: of two, PostgreSQL would look up each outcome instead of joining all.
        truth = models.ExpressionWrapper(OuterRef("truth"), output_field=models.CharField())
        now = Resolution.objects.current().filter(
            item=OuterRef("item"), revision=OuterRef("revision")
        )
        return Q(Exists(now.alias(truth=truth).filter(Q(value=F("truth")) | Q(truth=""))))

    def _calls(self) -> models.QuerySet[Any]:
        from judging.models import Call

        return Call.objects.filter(outcome=OuterRef("pk"))

    def missing_by_cause(self) -> models.QuerySet[Any, dict[str, Any]]:
        counted = self.filter(result="missing").values("cause").annotate(n=Count("pk"))
        return counted.order_by("-n", "cause")


class CallQuerySet(models.QuerySet[Any]):
    def for_list(self, key: str | None = None) -> CallQuerySet:
        """With item, request, reply and readings, of the item with this key if one is named."""
        found = self.select_related("outcome__item").for_replies()
        if key is None:
            return found
        return self.none() if NUL in key else found.filter(outcome__item__key=key)

    def for_replies(self) -> CallQuerySet:
        """With request, reply and readings, in the order of asking."""
        return (
            self.select_related("request__reply", "fed_by")
            .prefetch_related("request__reply__readings")
            .order_by("pk")
        )
