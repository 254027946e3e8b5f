"""Sets of evaluators, of runs and of the requests that these make."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import models
from django.db.models import Count, Exists, F, OuterRef, Q

from judging.querysets.leases import lease_expired

if TYPE_CHECKING:
    from annotation.models import Project
    from judging.models import Endpoint, Run, StrategyVersion


class EndpointQuerySet(models.QuerySet["Endpoint"]):
    def named(self, name: str) -> Endpoint | None:
        if "\0" in name:  # which PostgreSQL refuses to look for
            return None
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


# Why a run is paused that a person paused.
PAUSED_BY_HAND = "Paused by hand."


class RunQuerySet(models.QuerySet["Run"]):
    def in_project(self, project: Project) -> RunQuerySet:
        return self.filter(project=project)

    def planning(self) -> RunQuerySet:
        return self.filter(state="planning").select_related("strategy")

    def running(self) -> RunQuerySet:
        return self.filter(state="running")

    def going_on(self) -> RunQuerySet:
        return self.filter(state__in=["planning", "running"])

    def stopped(self) -> RunQuerySet:
        """Those that a person cancelled or paused. Where the program paused one by itself, for its
        cap or for a key that is refused, calls in flight are paid for, and end."""
        return self.filter(Q(state="cancelled") | Q(state="paused", reason=PAUSED_BY_HAND))

    def due(self, now: datetime) -> RunQuerySet:
        """With calls to plan, requests to ask, or nothing left to wait for."""
        calls = self._calls()
        waiting = Q(request__state="waiting", request__next_try__lte=now)
        expired = Q(request__state="leased") & lease_expired("request__leased_until", now)
        still_open = calls.filter(request__state__in=["waiting", "leased"])
        running = Q(state="running") & (
            Exists(calls.filter(waiting | expired)) | ~Exists(still_open)
        )
        return self.filter(Q(state="planning") | running)

    def to_retry(self) -> RunQuerySet:
        """Those in which something failed that can be asked again, or that another run's retry has
        mended."""
        from judging.models import Call, Outcome, Request

        # Few requests failed, and a run may have many: so it begins with these.
        failed = Call.objects.filter(request__in=Request.objects.filter(state="failed"))
        mended = Outcome.objects.filter(run=OuterRef("pk")).mended()
        retried = self.filter(kind="asked", state__in=["running", "paused", "finished"])
        return retried.filter(Q(pk__in=failed.values("run")) | Exists(mended))

    def _calls(self) -> models.QuerySet[Any]:
        from judging.models import Call

        return Call.objects.filter(run=OuterRef("pk"))

    def with_strategy(self, version: StrategyVersion) -> RunQuerySet:
        """Those with any version of a strategy, the last run first."""
        owner = Q(strategy__project=version.project_id)
        return self.filter(owner, strategy__slug=version.slug).order_by("-number")

    def judging(self) -> RunQuerySet:
        """Those that figures can be made of: without generators, which judge nothing."""
        return self.filter(generates=False)

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


# What a request has when nobody asks it.
UNLEASED = {"leased_by": "", "leased_until": None, "leased_for": None, "reserved": 0}


class RequestLease(NamedTuple):
    """Who has a request, and what is reserved for it on which run."""

    pk: int
    state: str
    leased_by: str
    leased_for: int | None
    reserved: Decimal


class RequestQuerySet(models.QuerySet[Any]):
    def wanted_by(self, run: Run) -> RequestQuerySet:
        return self.filter(Exists(self._calls().filter(run=run)))

    def wanted_by_none(self, runs: RunQuerySet) -> RequestQuerySet:
        return self.exclude(Exists(self._calls().filter(run__in=runs)))

    def due(self, now: datetime) -> RequestQuerySet:
        return self.filter(state="waiting", next_try__lte=now)

    def still_open(self) -> RequestQuerySet:
        return self.filter(state__in=["waiting", "leased"])

    def leased_by(self, holder: str) -> RequestQuerySet:
        return self.filter(state="leased", leased_by=holder)

    def expired(self, now: datetime) -> RequestQuerySet:
        """Leased by a worker that does not renew its leases any more."""
        return self.filter(lease_expired("leased_until", now), state="leased")

    def held(self, *, skip_locked: bool = False) -> list[RequestLease]:
        """Locked for this transaction, always in one order, so that two never wait in a ring."""
        rows = self.order_by("pk").select_for_update(no_key=True, skip_locked=skip_locked)
        return [RequestLease(*row) for row in rows.values_list(*RequestLease._fields)]

    def unanswered(self) -> RequestQuerySet:
        return self.exclude(state="answered")

    def give_back(self) -> int:
        """Let leased requests wait again."""
        return self.update(state="waiting", **UNLEASED)

    def ask_again(self, now: datetime) -> int:
        """Let failed requests wait again, as if they had never been tried."""
        again = {"attempts": 0, "tried": {}, "next_try": now, "cause": "", "message": ""}
        return self.filter(state="failed").update(state="waiting", **again)

    def try_afresh(self, now: datetime) -> int:
        """Let what timed out and waits for another try have all of its tries again, now."""
        slow = self.filter(state="waiting", tried__has_key="timed_out")
        return slow.update(tried={}, next_try=now)

    def note_answered(self) -> int:
        tried = {"attempts": F("attempts") + 1, "cause": "", "message": ""}
        return self.update(state="answered", **tried, **UNLEASED)

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
