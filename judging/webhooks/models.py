"""Webhooks of a project, and what is delivered to them."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

if TYPE_CHECKING:
    from annotation.models import Project

# A killed worker's webhooks are free again after this time. A slice of a worker is much shorter.
LEASE_DURATION = timedelta(seconds=60)
# One refused message is no failing webhook yet.
FAILING_AFTER = timedelta(hours=1)


class WebhookQuerySet(models.QuerySet["Webhook"]):
    def in_project(self, project: Project) -> WebhookQuerySet:
        """Return the project's webhooks, the oldest first."""
        return self.filter(project=project).order_by("pk")

    def at_work(self) -> WebhookQuerySet:
        """Return the webhooks that are switched on, in projects that are not archived."""
        return self.filter(active=True, project__archived_at=None)

    def free(self, now: datetime) -> WebhookQuerySet:
        """Return the webhooks that no worker has leased. A lease that ends too late was set by a
        wrong clock."""
        late = Q(leased_until__gt=now + 2 * LEASE_DURATION)
        return self.filter(Q(leased_until=None) | Q(leased_until__lte=now) | late)


class Webhook(models.Model):
    """An address that is told of what happens in a project.

    The secret that signs its deliveries is derived from `nonce` (`signing.derive_secret`).
    What happened since `read_from` is delivered; `read_until` is how far the audit log has been
    read. While no answer comes, nothing is sent before `wait_until`; `failures` counts the tries
    without any answer since the last answer. `failing_since` is the first try that failed since
    one was accepted.
    """

    project = models.ForeignKey("annotation.Project", models.PROTECT, related_name="webhooks")
    address = models.CharField(max_length=500)
    topics = models.CharField(max_length=100, help_text="Names of topics with spaces between them.")
    active = models.BooleanField(default=True)
    off_reason = models.TextField(blank=True, help_text="Why it was switched off by itself.")
    nonce = models.CharField(max_length=40)
    member = models.ForeignKey("annotation.Membership", models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    read_from = models.DateTimeField(default=timezone.now)
    read_until = models.DateTimeField(default=timezone.now)
    leased_until = models.DateTimeField(null=True, blank=True)
    wait_until = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveSmallIntegerField(default=0)
    failing_since = models.DateTimeField(null=True, blank=True)

    objects = WebhookQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        indexes = [
            # A worker asks every two seconds whether there is any.
            models.Index(fields=["project"], name="webhook_active", condition=Q(active=True))
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        """How the audit log calls it."""
        return f"webhook {self.pk}"

    def is_failing(self, now: datetime) -> bool:
        """True if no answer comes, or none that accepts a message for `FAILING_AFTER`."""
        since = self.failing_since
        return since is not None and (self.failures > 0 or now - since >= FAILING_AFTER)

    @property
    def topic_list(self) -> list[str]:
        """The names of the topics."""
        return self.topics.split()


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def waiting(self) -> DeliveryQuerySet:
        """Return the deliveries that are still to be sent."""
        return self.filter(state=Delivery.State.WAITING)

    def due(self, now: datetime) -> DeliveryQuerySet:
        """Return the deliveries to send now."""
        return self.waiting().filter(next_try_at__lte=now)

    def failed(self) -> DeliveryQuerySet:
        """Return the deliveries that nobody sends again by himself."""
        return self.filter(state=Delivery.State.FAILED)


class Delivery(models.Model):
    """One message to a webhook. `body` is what is sent, in each try the same bytes.

    `source` is what it tells of, such as "event 123"; nothing is delivered to a webhook twice.
    `uid` is the id by which the receiver recognises a message that came before. `status`, `answer`,
    `problem` and `seconds` are of the last try; `answer` is a stranger's text.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        DELIVERED = "delivered"
        FAILED = "failed"

    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries")
    uid = models.UUIDField(default=uuid.uuid4, unique=True)
    source = models.CharField(max_length=80)
    type = models.CharField(max_length=40)
    body = models.TextField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True, blank=True)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    answer = models.TextField(blank=True)
    problem = models.TextField(blank=True)
    seconds = models.FloatField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "deliveries"
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["webhook", "source"], name="delivery_once"),
        ]
        indexes = [
            models.Index(
                fields=["webhook", "next_try_at"],
                name="delivery_waiting",
                condition=Q(state="waiting"),
            ),
            models.Index(fields=["webhook", "finished_at"], name="delivery_finished"),
        ]

    def __str__(self) -> str:
        return f"{self.type} to {self.webhook_id}"

    @property
    def payload(self) -> dict[str, Any]:
        """What the body says."""
        said: dict[str, Any] = json.loads(self.body)
        return said

    @property
    def about(self) -> str:
        """What the message tells of, in words."""
        data = self.payload["data"]
        if "item" in data:
            return str(data["item"])
        if "run" in data:
            return f"run {data['run']}"
        if "job" in data:
            return f"{data['job']['title']} {data['job']['number'] or ''}".strip()
        return "a test"

    @property
    def change(self) -> str:
        """Of a final label, the old and the new one in words; "" for anything else."""
        data = self.payload["data"]
        if "item" not in data:
            return ""
        old, new = ((data[name] or {}).get("resolution") or "none" for name in ("old", "new"))
        return f"{old} → {new}"
