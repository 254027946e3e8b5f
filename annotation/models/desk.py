"""What a person has on the desk beside labels: drafts, marks, comments, practice."""

from datetime import datetime

from django.db import models
from django.db.models import Q
from django.utils import timezone

from annotation.models.people import Membership
from annotation.querysets import CommentQuerySet, DraftQuerySet, MarkQuerySet


class Draft(models.Model):
    """What a member has begun to write on an item and not sent; gone once it is sent."""

    member = models.ForeignKey("Membership", models.PROTECT, related_name="drafts")
    item = models.ForeignKey("Item", models.PROTECT, related_name="drafts")
    revision = models.PositiveIntegerField(help_text="The revision that was on the screen.")
    data = models.JSONField(default=dict, help_text="Answers, comment, correction and its note.")
    updated_at = models.DateTimeField(default=timezone.now)

    objects = DraftQuerySet.as_manager()

    class Meta:
        ordering = ["-updated_at"]
        constraints = [models.UniqueConstraint(fields=["member", "item"], name="draft_one")]

    def __str__(self) -> str:
        return f"draft of {self.member} on {self.item.key}"

    def sent(self) -> None:
        """The label is stored: only a correction that was begun and not sent is left, if any."""
        left = {name: self.data[name] for name in ("text", "note") if name in self.data}
        if "text" not in left:
            self.delete()
            return
        self.data = left
        self.save(update_fields=["data"])


class Mark(models.Model):
    """What a member did with an item beside labelling it; ended, never deleted.

    skip: not now; the queue brings it no more until the member takes it back.
    flag: a lead should look at it.
    seen: the member saw others' labels or a resolution of it (rule 6 of the design).
    """

    class Kind(models.TextChoices):
        SKIP = "skip"
        FLAG = "flag"
        SEEN = "seen"

    member = models.ForeignKey("Membership", models.PROTECT, related_name="marks")
    item = models.ForeignKey("Item", models.PROTECT, related_name="marks")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = MarkQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["member", "item", "kind"],
                condition=Q(ended_at__isnull=True),
                name="mark_one",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.item.key} by {self.member}"

    def end(self, now: datetime) -> None:
        self.ended_at = now
        self.save(update_fields=["ended_at"])


class Comment(models.Model):
    """What a member tells the others about an item; seen once one's own label is in."""

    item = models.ForeignKey("Item", models.PROTECT, related_name="comments")
    member = models.ForeignKey("Membership", models.PROTECT, related_name="comments")
    text = models.TextField()
    mentions: "models.ManyToManyField[Membership, models.Model]" = models.ManyToManyField(
        Membership, related_name="mentioned_in", blank=True
    )
    created_at = models.DateTimeField(default=timezone.now)
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    objects = CommentQuerySet.as_manager()

    class Meta:
        ordering = ["created_at", "pk"]
        indexes = [models.Index(fields=["item", "created_at"], name="comment_of_item")]

    def __str__(self) -> str:
        return f"{self.member} on {self.item.key}"

    def withdraw(self, now: datetime) -> None:
        self.withdrawn_at = now
        self.save(update_fields=["withdrawn_at"])


class PracticeRound(models.Model):
    """A few items with known answers; who passes one gets work (study 001, appendix C).

    A round that is not finished has no result; its labels are those of stage practice that the
    member gave since it was started.
    """

    member = models.ForeignKey("Membership", models.PROTECT, related_name="practice_rounds")
    number = models.PositiveSmallIntegerField()
    size = models.PositiveSmallIntegerField()
    needed = models.PositiveSmallIntegerField(help_text="Right answers that pass.")
    right = models.PositiveSmallIntegerField(default=0)
    answered = models.PositiveSmallIntegerField(default=0)
    feedback = models.TextField(blank=True, help_text="What a lead tells the member about it.")
    feedback_by = models.ForeignKey(
        "Membership", models.PROTECT, null=True, blank=True, related_name="+"
    )
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["member_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["member", "number"], name="practice_round_number"),
            models.CheckConstraint(
                condition=Q(right__lte=models.F("answered"), answered__lte=models.F("size")),
                name="practice_counts",
            ),
        ]

    def __str__(self) -> str:
        return f"practice {self.number} of {self.member}"

    @property
    def passed(self) -> bool:
        return self.finished_at is not None and self.right >= self.needed
