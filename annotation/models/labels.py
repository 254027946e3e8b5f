from datetime import datetime

from django.db import models
from django.db.models import Q
from django.utils import timezone

from annotation.models.slots import Slot, Stage
from annotation.querysets import LabelQuerySet, ResolutionQuerySet


class Label(models.Model):
    """What one member said of one revision. A row is never rewritten: a change is a new row.

    `current` turns false when it is superseded or undone, `counted` when its texts are corrected;
    `slot` is empty for an extra label, one that came after its place was given away.
    """

    project = models.ForeignKey("Project", models.PROTECT, related_name="labels")
    item = models.ForeignKey("Item", models.PROTECT, related_name="labels")
    revision = models.ForeignKey("Revision", models.PROTECT, related_name="labels")
    slot = models.ForeignKey(Slot, models.PROTECT, null=True, blank=True, related_name="labels")
    stage = models.CharField(max_length=20, choices=Stage.choices)
    member = models.ForeignKey("Membership", models.PROTECT, related_name="labels")
    choice = models.CharField(max_length=40)
    answers = models.JSONField(default=dict)
    missing = models.JSONField(
        default=dict,
        db_default={},
        blank=True,
        help_text="Answers that were given and are off their scale, by field: cause and value.",
    )
    comment = models.TextField(blank=True)
    submission = models.CharField(max_length=64, unique=True)
    task_type = models.ForeignKey("TaskTypeVersion", models.PROTECT)
    guidelines = models.ForeignKey("GuidelinesVersion", models.PROTECT, null=True, blank=True)
    supersedes = models.OneToOneField("self", models.PROTECT, null=True, blank=True)
    current = models.BooleanField(default=True)
    counted = models.BooleanField(default=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True, help_text="From shown to sent.")
    evaluator_seen = models.BooleanField(
        default=False, help_text="Whether a reply of an evaluator to the item was stored before."
    )
    informed = models.BooleanField(
        default=False,
        help_text="Whether the member could see another's label or a resolution before.",
    )
    created_at = models.DateTimeField(default=timezone.now)

    objects = LabelQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["member", "item", "stage"],
                condition=Q(current=True),
                name="label_one_current",
            ),
            models.UniqueConstraint(
                fields=["slot"], condition=Q(current=True, counted=True), name="label_fills_slot"
            ),
            models.CheckConstraint(
                condition=Q(counted=False) | Q(slot__isnull=False), name="label_counted_has_slot"
            ),
            models.CheckConstraint(
                condition=Q(seconds__isnull=True) | Q(seconds__gte=0), name="label_seconds"
            ),
        ]
        indexes = [
            models.Index(fields=["member", "stage", "-created_at"], name="label_of_member"),
            models.Index(fields=["item", "stage"], condition=Q(current=True), name="label_of_item"),
        ]

    def __str__(self) -> str:
        return f"{self.choice} by {self.member}"

    def give_way(self) -> None:
        """To a later label of the same member, which supersedes it."""
        self.current = False
        self.save(update_fields=["current"])

    def stop_counting(self) -> None:
        """Since it speaks of texts that were corrected; it stays what the member said last."""
        self.counted = False
        self.save(update_fields=["counted"])

    def withdraw(self, now: datetime) -> None:
        self.current, self.withdrawn_at = False, now
        self.save(update_fields=["current", "withdrawn_at"])


class Resolution(models.Model):
    """What the project holds true of a revision of an item, by which rule, from which source."""

    # What is told of it wherever items go out or are kept, in this order.
    TOLD = ("value", "values", "reason", "comment", "source", "rule")

    class Source(models.TextChoices):
        LABELS = "labels"
        ADJUDICATED = "adjudicated"
        IMPORTED = "imported"
        KNOWN = "known"

    item = models.ForeignKey("Item", models.PROTECT, related_name="resolutions")
    revision = models.ForeignKey("Revision", models.PROTECT, related_name="resolutions")
    value = models.CharField(max_length=40)
    values = models.JSONField(
        default=dict, blank=True, help_text="What holds of every field that is resolved, by name."
    )
    reason = models.CharField(max_length=40, blank=True, help_text="Why people had disagreed.")
    comment = models.TextField(blank=True)
    rule = models.CharField(max_length=40)
    source = models.CharField(max_length=20, choices=Source.choices)
    member = models.ForeignKey("Membership", models.PROTECT, null=True, blank=True)
    current = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = ResolutionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["item"], condition=Q(current=True), name="resolution_one_current"
            )
        ]
        indexes = [
            models.Index(fields=["value"], condition=Q(current=True), name="resolution_value")
        ]

    def __str__(self) -> str:
        return f"{self.item.key}: {self.value}"

    def explain(self, reason: str) -> None:
        """Say why people had disagreed; by who decides, in the transaction that makes it."""
        self.reason = reason
        self.save(update_fields=["reason"])

    def end(self, now: datetime) -> None:
        self.current, self.ended_at = False, now
        self.save(update_fields=["current", "ended_at"])
