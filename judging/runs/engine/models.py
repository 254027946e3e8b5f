"""Models of the engine: requests, replies, readings, dispatcher rows and workers, and their
leases."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import models
from django.db.models import Count, Exists, F, OuterRef, Q
from django.db.models.functions import Round

if TYPE_CHECKING:
    from judging.models import Run
    from judging.runs.models import RunQuerySet
from datetime import UTC

from django.utils import timezone

# No lease lasts this long. A longer lease was set by a clock that was ahead; a holder that is alive
# renews its leases by the current clock.
MAX_LEASE = timedelta(minutes=1)


def lease_expired(until: str, now: datetime) -> Q:
    """True if a lease that ends at the time in the column `until` has expired."""
    return Q(**{f"{until}__lte": now}) | Q(**{f"{until}__gt": now + MAX_LEASE})


class WorkerQuerySet(models.QuerySet[Any]):
    def alive(self, now: datetime) -> WorkerQuerySet:
        """Workers whose last heartbeat is still valid."""
        return self.filter(alive_until__gt=now)


# The values of a request that is not leased.
UNLEASED = {"leased_by": "", "leased_until": None, "leased_for": None, "reserved": 0}
# The values of a request that has just been answered.
ANSWERED = {
    "state": "answered",
    "attempts": F("attempts") + 1,
    "cause": "",
    "message": "",
    **UNLEASED,
}


class RequestLease(NamedTuple):
    """The lease of a request: its holder, its run, and the amount reserved for it."""

    pk: int
    state: str
    leased_by: str
    leased_for: int | None
    reserved: Decimal


class RequestQuerySet(models.QuerySet[Any]):
    def wanted_by(self, run: Run) -> RequestQuerySet:
        """Requests that calls of this run need. Other runs may need the same requests."""
        return self.filter(Exists(self._calls().filter(run=run)))

    def wanted_by_none(self, runs: RunQuerySet) -> RequestQuerySet:
        """Requests that no call of these runs needs."""
        return self.exclude(Exists(self._calls().filter(run__in=runs)))

    def due(self, now: datetime) -> RequestQuerySet:
        """Waiting requests whose next try may be made now."""
        return self.filter(state="waiting", next_try__lte=now)

    def still_open(self) -> RequestQuerySet:
        """Requests that wait or are leased: neither answered nor failed."""
        return self.filter(state__in=["waiting", "leased"])

    def leased_by(self, holder: str) -> RequestQuerySet:
        """Requests that this holder has leased, expired leases included."""
        return self.filter(state="leased", leased_by=holder)

    def expired(self, now: datetime) -> RequestQuerySet:
        """Requests leased by a worker that no longer renews its leases."""
        return self.filter(lease_expired("leased_until", now), state="leased")

    def lock_leases(self, *, skip_locked: bool = False) -> list[RequestLease]:
        """Lock the rows for this transaction."""
        return [RequestLease(*row) for row in self.with_lock(skip_locked=skip_locked)]

    def with_lock(self, *, skip_locked: bool = False) -> models.QuerySet[Any, Any]:
        """The columns of `RequestLease`. Reading them locks the rows for this transaction, always
        in the same order, so that transactions do not deadlock."""
        rows = self.order_by("pk").select_for_update(no_key=True, skip_locked=skip_locked)
        return rows.values_list(*RequestLease._fields)

    def unanswered(self) -> RequestQuerySet:
        """Requests without an answer, including failed requests."""
        return self.exclude(state="answered")

    def give_back(self) -> int:
        """Return leased requests to the queue."""
        return self.update(state="waiting", **UNLEASED)

    def charge(self) -> int:
        """Add what is reserved for leased requests to what their tries without a reply cost."""
        # SQLite adds binary fractions.
        return self.update(charged=Round(F("charged") + F("reserved"), precision=12))

    def ask_again(self, now: datetime) -> int:
        """Return failed requests to the queue, as if they had never been tried."""
        again = {"attempts": 0, "tried": {}, "next_try": now, "cause": "", "message": ""}
        return self.filter(state="failed").update(state="waiting", **again)

    def try_afresh(self, now: datetime) -> int:
        """Reset the tries of waiting requests that failed before, and make them due now."""
        return self.filter(state="waiting").exclude(tried={}).update(tried={}, next_try=now)

    def idle(self, now: datetime) -> RequestQuerySet:
        """Requests that a worker could take now."""
        return self.due(now) | self.expired(now)

    def failure_messages(self) -> models.QuerySet[Any, dict[str, Any]]:
        """Causes and messages of the providers with the number of requests, most frequent first."""
        said = self.exclude(message="").values("cause", "message").annotate(n=Count("pk"))
        return said.order_by("-n", "cause", "message")

    def _calls(self) -> models.QuerySet[Any]:
        from judging.models import Call

        return Call.objects.filter(request=OuterRef("pk"))


# `next_try` of a request that was never tried. It is earlier than the time of any clock, even a
# clock that is set back.
DUE_NOW = datetime(1970, 1, 1, tzinfo=UTC)


class Request(models.Model):
    """The exact body for one provider, unique by digest, so that no request is paid for twice.

    The body itself is not stored. It is rendered again from what a run pins, and the digest proves
    that it is unchanged. Calls of many runs may point at the same request.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        LEASED = "leased"
        ANSWERED = "answered"
        FAILED = "failed"

    digest = models.CharField(max_length=64, unique=True)
    endpoint = models.ForeignKey("Endpoint", models.PROTECT, related_name="requests")
    sample = models.PositiveSmallIntegerField(default=0)
    occasion = models.CharField(max_length=40, blank=True)
    place = models.BigIntegerField(help_text="Random position, so that a part is a fair sample.")
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    tried = models.JSONField(
        default=dict, help_text="Failed attempts by cause; each cause has its own limit."
    )
    next_try = models.DateTimeField(default=DUE_NOW)
    leased_by = models.CharField(max_length=64, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    leased_for = models.ForeignKey("Run", models.PROTECT, null=True, blank=True)
    reserved = models.DecimalField(max_digits=20, decimal_places=12, default=0)
    charged = models.DecimalField(
        max_digits=20,
        decimal_places=12,
        default=0,
        db_default=0,
        help_text="What tries without a reply may have cost, as it was booked.",
    )
    cause = models.CharField(max_length=20, blank=True)
    message = models.TextField(blank=True, help_text="The provider's error message.")
    created_at = models.DateTimeField(default=timezone.now)

    objects = RequestQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state="leased", leased_until__isnull=False)
                | (~Q(state="leased") & Q(leased_until__isnull=True)),
                name="request_lease",
            ),
            models.CheckConstraint(
                condition=~Q(state="failed") | ~Q(cause=""), name="request_failure_has_cause"
            ),
        ]
        indexes = [
            models.Index(
                fields=["endpoint", "place"], condition=Q(state="waiting"), name="request_waiting"
            ),
            models.Index(
                fields=["leased_until"], condition=Q(state="leased"), name="request_leased"
            ),
            # An index on few rows, used by every view of a run.
            models.Index(fields=["endpoint"], condition=Q(state="failed"), name="request_failed"),
            models.Index(
                fields=["endpoint"],
                condition=Q(state="waiting") & ~Q(message=""),
                name="request_tried",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.digest[:12]} {self.state}"


class Reply(models.Model):
    """The raw answer to a request. Inserted once, never updated."""

    request = models.OneToOneField(Request, models.PROTECT, related_name="reply")
    text = models.TextField()
    finish = models.CharField(max_length=20)
    model = models.CharField(
        max_length=200, blank=True, help_text="The model named by the provider."
    )
    tokens_in = models.PositiveIntegerField(null=True)
    tokens_out = models.PositiveIntegerField(null=True)
    # These columns are younger than many replies. They have no check, which would read all rows.
    tokens_cached = models.IntegerField(
        null=True, help_text="The input tokens that were read from the provider's cache."
    )
    tokens_reasoning = models.IntegerField(
        null=True, help_text="The output tokens that were spent on thinking."
    )
    thinking = models.TextField(  # noqa: DJ001
        null=True, help_text="What the model wrote before its reply. It is never parsed."
    )
    bytes_sent = models.IntegerField(null=True, help_text="The length of the request's body.")
    cost = models.DecimalField(max_digits=20, decimal_places=12, null=True)
    asked_at = models.DateTimeField()
    seconds = models.FloatField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "replies"

    def __str__(self) -> str:
        return f"reply to {self.request_id}"


class Reading(models.Model):
    """The value that a parser read in a reply. Parsing again adds rows and changes no existing row.

    `parser` names the parser's version and the output type, since two strategies may share a
    request and still use different scales.
    """

    reply = models.ForeignKey(Reply, models.PROTECT, related_name="readings")
    parser = models.CharField(max_length=80)
    value = models.JSONField(null=True)
    path = models.CharField(max_length=20, blank=True)
    cause = models.CharField(max_length=20, blank=True)
    explanation = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["reply", "parser"], name="reading_parser"),
            models.CheckConstraint(
                condition=Q(value__isnull=False, cause="") | (Q(value__isnull=True) & ~Q(cause="")),
                name="reading_value_or_cause",
            ),
        ]
        indexes = [models.Index(fields=["parser"], condition=~Q(cause=""), name="reading_useless")]

    def __str__(self) -> str:
        return self.cause or str(self.value)


class Dispatcher(models.Model):
    """A lock row. If limits are in memory, only the process that holds an endpoint's row may call
    the endpoint."""

    name = models.CharField(max_length=40, unique=True)
    holder = models.CharField(max_length=64, blank=True)
    held_until = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"


class Worker(models.Model):
    """A worker process that looks for due work, with its heartbeat and counters."""

    name = models.CharField(max_length=64, unique=True)
    host = models.CharField(max_length=200)
    process = models.PositiveIntegerField()
    started_at = models.DateTimeField(default=timezone.now)
    alive_until = models.DateTimeField()
    looked_at = models.DateTimeField(null=True, help_text="When it last looked for due work.")
    progressed_at = models.DateTimeField(
        null=True, help_text="When it last finished a slice, or found nothing to do."
    )
    slices = models.PositiveBigIntegerField(default=0, help_text="Finished slices.")
    failures = models.PositiveBigIntegerField(default=0, help_text="Failed slices.")

    objects = WorkerQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.host} {self.process}"
