"""Sets of rows of the evaluator half, in the words of the field."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import models
from django.db.models import Count, Exists, F, OuterRef, Q
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

if TYPE_CHECKING:
    from annotation.models import Item, Membership, Project
    from judging.models import Endpoint, Run, StrategyVersion


# No lease is given for so long: one that lasts longer was given by a clock that was ahead, and
# whoever lives renews what is his by the clock as it is now.
TOO_LONG = timedelta(minutes=1)


def over(until: str, now: datetime) -> Q:
    """Whether a lease that ends at the time in this column has run out."""
    return Q(**{f"{until}__lte": now}) | Q(**{f"{until}__gt": now + TOO_LONG})


class EndpointQuerySet(models.QuerySet["Endpoint"]):
    def named(self, name: str) -> Endpoint | None:
        return self.filter(name=name).first()

    def alike(self, endpoint: Endpoint) -> EndpointQuerySet:
        """Endpoints at the same address: what one of them is asked, all of them are."""
        return self.filter(provider=endpoint.provider, address=endpoint.address)

    def due(self, now: datetime) -> EndpointQuerySet:
        """With a run to plan, to ask for or to finish, or with requests of a dead worker.

        While the pause lasts that its provider asked for, only with a run to plan.
        """
        from judging.models import Request, Run

        runs = Run.objects.filter(endpoint=OuterRef("pk"))
        # Few are leased and all others of an endpoint may be many, so it begins with these.
        expired = Request.objects.expired(now).values("endpoint")
        free = Q(paused_until=None) | Q(paused_until__lte=now)
        to_ask = free & (Exists(runs.running().due(now)) | Q(pk__in=expired))
        return self.filter(to_ask | Exists(runs.filter(state="planning"))).order_by("pk")

    def pause(self, until: datetime) -> int:
        """Ask nothing before this time; a pause that is longer already stays."""
        return self.exclude(paused_until__gte=until).update(paused_until=until)


class StrategyVersionQuerySet(models.QuerySet["StrategyVersion"]):
    def own(self, project: Project) -> StrategyVersionQuerySet:
        """Those that a project wrote itself, and did not delete."""
        return self.filter(project=project, deleted_at=None)

    def deleted(self, project: Project) -> StrategyVersionQuerySet:
        """Those that a project wrote and deleted, which it can take back."""
        return self.filter(project=project, deleted_at__isnull=False)

    def shipped(self) -> StrategyVersionQuerySet:
        return self.filter(project=None)

    def named(self, slug: str) -> StrategyVersionQuerySet:
        """The versions of one strategy, the newest first."""
        return self.filter(slug=slug).order_by("-number")

    def newest(self) -> StrategyVersionQuerySet:
        """Of each of a project's own strategies the last version."""
        later = self.filter(slug=OuterRef("slug"), number__gt=OuterRef("number"))
        return self.filter(~Exists(later))

    def with_runs(self, project: Project) -> StrategyVersionQuerySet:
        """With `used`, how many runs of the project pin each, and who wrote it."""
        mine = Count("runs", filter=Q(runs__project=project))
        return self.annotate(used=mine).select_related("member", "parent")


class RunQuerySet(models.QuerySet["Run"]):
    def in_project(self, project: Project) -> RunQuerySet:
        return self.filter(project=project)

    def planning(self) -> RunQuerySet:
        return self.filter(state="planning").select_related("strategy")

    def running(self) -> RunQuerySet:
        return self.filter(state="running")

    def due(self, now: datetime) -> RunQuerySet:
        """With calls to plan, requests to ask, or nothing left to wait for."""
        calls = self._calls()
        waiting = Q(request__state="waiting", request__next_try__lte=now)
        expired = Q(request__state="leased") & over("request__leased_until", now)
        still_open = calls.filter(request__state__in=["waiting", "leased"])
        running = Q(state="running") & (
            Exists(calls.filter(waiting | expired)) | ~Exists(still_open)
        )
        return self.filter(Q(state="planning") | running)

    def _calls(self) -> models.QuerySet[Any]:
        from judging.models import Call

        return Call.objects.filter(run=OuterRef("pk"))

    def with_strategy(self, version: StrategyVersion) -> RunQuerySet:
        """Those with any version of a strategy, the last run first."""
        owner = Q(strategy__project=version.project_id)
        return self.filter(owner, strategy__slug=version.slug).order_by("-number")

    def shown(self, *, archived: bool = False) -> RunQuerySet:
        """Those that lists and figures show: archived ones only if asked for."""
        return self if archived else self.filter(archived_at=None)

    def numbered(self, numbers: Iterable[int]) -> RunQuerySet:
        # A number that no column could hold is that of no run, and would make a database complain.
        return self.filter(number__in=[one for one in numbers if 0 < one < 2**31])

    def for_results(self) -> RunQuerySet:
        return self.select_related("strategy", "endpoint", "project").order_by("number")

    def for_page(self) -> RunQuerySet:
        return self.select_related("strategy", "endpoint", "member", "project")

    def for_list(self) -> RunQuerySet:
        return self.select_related("strategy", "endpoint", "member").order_by("-number")


# No column takes it, so nothing is found by it.
NUL = "\x00"
# What a request has when nobody asks it.
FREE = {"leased_by": "", "leased_until": None, "leased_for": None, "reserved": 0}


class Held(NamedTuple):
    """Who has a request, and what is reserved for it on which run."""

    pk: int
    state: str
    leased_by: str
    leased_for: int | None
    reserved: Decimal


class RequestQuerySet(models.QuerySet["Any"]):
    def wanted_by(self, run: Run) -> RequestQuerySet:
        return self.filter(Exists(self._calls().filter(run=run)))

    def due(self, now: datetime) -> RequestQuerySet:
        return self.filter(state="waiting", next_try__lte=now)

    def still_open(self) -> RequestQuerySet:
        return self.filter(state__in=["waiting", "leased"])

    def leased_by(self, holder: str) -> RequestQuerySet:
        return self.filter(state="leased", leased_by=holder)

    def expired(self, now: datetime) -> RequestQuerySet:
        """Leased by a worker that does not renew its leases any more."""
        return self.filter(over("leased_until", now), state="leased")

    def held(self, *, skip_locked: bool = False) -> list[Held]:
        """Locked for this transaction, always in one order, so that two never wait in a ring."""
        rows = self.order_by("pk").select_for_update(no_key=True, skip_locked=skip_locked)
        return [Held(*row) for row in rows.values_list(*Held._fields)]

    def unanswered(self) -> RequestQuerySet:
        return self.exclude(state="answered")

    def give_back(self) -> int:
        """Let leased requests wait again."""
        return self.update(state="waiting", **FREE)

    def ask_again(self, now: datetime) -> int:
        """Let failed requests wait again, as if they had never been tried."""
        again = {"attempts": 0, "tried": {}, "next_try": now, "cause": "", "message": ""}
        return self.filter(state="failed").update(state="waiting", **again)

    def note_answered(self) -> int:
        tried = {"attempts": F("attempts") + 1, "cause": "", "message": ""}
        return self.update(state="answered", **tried, **FREE)

    def idle(self, now: datetime) -> RequestQuerySet:
        """Requests that a worker could take now."""
        return self.due(now) | self.expired(now)

    def words(self) -> models.QuerySet[Any, dict[str, Any]]:
        """Causes and what providers said, with the number of requests, most frequent first."""
        said = self.exclude(message="").values("cause", "message").annotate(n=Count("pk"))
        return said.order_by("-n", "cause", "message")

    def _calls(self) -> models.QuerySet[Any]:
        from judging.models import Call

        return Call.objects.filter(request=OuterRef("pk"))


# Causes that lie in what the evaluator said: asking again would not mend them.
SAID = ("refused", "filtered", "truncated", "off_scale", "unparsable")


class SavedViewQuerySet(models.QuerySet["Any"]):
    def of(self, member: Membership) -> SavedViewQuerySet:
        """Those that a member saved."""
        return self.filter(member=member.pk)

    def seen_by(self, member: Membership) -> SavedViewQuerySet:
        """A member's own, and those that others of the project share."""
        shared = Q(member__project=member.project, shared=True)
        return self.filter(Q(member=member.pk) | shared).select_related("member")


class OutcomeQuerySet(models.QuerySet["Any"]):
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
        failures = ~Q(cause__in=[*SAID, "one_order"]) | (
            Q(cause="one_order") & ~Q(values__missing__in=SAID)
        )
        made, failed = self._calls(), self._calls().filter(request__state="failed")
        return self.filter(failures, Exists(made), ~Exists(failed), result="missing")

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


class CallQuerySet(models.QuerySet["Any"]):
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


class StoredFigureQuerySet(models.QuerySet["Any"]):
    def due(self, now: datetime) -> StoredFigureQuerySet:
        """Waited for, and in no living worker's hands; what was waited for longest comes first."""
        free = Q(held_until=None) | over("held_until", now)
        return self.filter(free, wanted_at__isnull=False).order_by("wanted_at")

    def spare(self, project: Project, keep: int) -> list[int]:
        """The ids of those that nobody waits for, but for the `keep` that were made last."""
        idle = self.filter(project=project, wanted_at=None).order_by("-made_at", "-pk")
        return list(idle.values_list("pk", flat=True)[keep:])
