"""What members store besides labels: drafts, marks, comments and qualification rounds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from annotation.projects.models import RIGHTS, Membership

if TYPE_CHECKING:
    from annotation.models import Item, Project

# An item may have megabytes of fields, and there may be many notes on one item.
_BULKY = "item__fields"


class DraftQuerySet(models.QuerySet[Any]):
    def of_member(self, member_id: int) -> DraftQuerySet:
        return self.filter(member_id=member_id, item__deleted_at__isnull=True)


class MarkQuerySet(models.QuerySet[Any]):
    def in_force(self) -> MarkQuerySet:
        return self.filter(ended_at__isnull=True)

    def of_member(self, member_id: int, kind: str) -> MarkQuerySet:
        """The marks of this kind that the member has set and that are in force."""
        return self.in_force().filter(member_id=member_id, kind=kind)

    def of_item(self, item: Item) -> MarkQuerySet:
        return self.filter(item=item)

    def of_items(self, items: Iterable[int]) -> MarkQuerySet:
        return self.filter(item__in=items)

    def for_my_items(self) -> MarkQuerySet:
        """Marks of live items, with their items, the latest first."""
        return self.filter(item__deleted_at__isnull=True).select_related("item").defer(_BULKY)


class CommentQuerySet(models.QuerySet[Any]):
    def of_item(self, item: Item) -> CommentQuerySet:
        shown = self.filter(item=item, withdrawn_at__isnull=True)
        return shown.select_related("member", "item").defer(_BULKY)

    def in_project(self, project: Project) -> CommentQuerySet:
        """Comments on live items that were not withdrawn, newest first."""
        shown = self.filter(item__project=project, withdrawn_at=None, item__deleted_at=None)
        return shown.select_related("member", "item").defer(_BULKY).order_by("-created_at", "-pk")

    def on_items_labelled_by(self, member_id: int | None, stages: Iterable[str]) -> CommentQuerySet:
        """Comments on items that have a current label of the member at one of the stages."""
        from annotation.models import Label

        labels = Label.objects.current().at_stages(stages).filter(member_id=member_id)
        return self.filter(Exists(labels.filter(item=OuterRef("item"))))

    def of_others_than(self, member_id: int) -> CommentQuerySet:
        return self.exclude(member_id=member_id)

    def for_page(self, member: Membership) -> list[Any]:
        """These comments, oldest first, each with its `number` among the comments on the item that
        the member may see, withdrawn ones included."""
        every = Comment.objects.shown_to(member)
        return number_comments(self.order_by("created_at", "pk"), every)

    def called(self, item: Item, number: int) -> Any:
        """The comment of this number among these comments on the item, counted from 1; None if
        there is none."""
        if number < 1:
            return None
        return self.filter(item=item).select_related("member")[number - 1 : number].first()

    def shown_to(self, member: Membership) -> CommentQuerySet:
        """These comments; where one person labels each item, for annotators without those of other
        annotators on control items, which would tell that others have labelled this one too."""
        if member.can_see_items or member.project.overlap > 1:
            return self
        told = Q(member=member.pk) | Q(member__role__in=RIGHTS["items"])
        return self.filter(told | ~Q(item__purpose="probe"))

    def naming(self, member: Membership) -> CommentQuerySet:
        """Comments on live items that name the member, newest first."""
        shown = self.filter(mentions=member.pk, withdrawn_at=None, item__deleted_at=None)
        found = shown.shown_to(member).select_related("member", "item").defer(_BULKY)
        return found.order_by("-created_at", "-pk")

    def unread_by(self, member: Membership) -> CommentQuerySet:
        """Comments that name the member and that the member has not seen yet."""
        if member.pk is None:
            return self.none()
        seen = member.mentions_seen_at
        return self.naming(member).filter(**({"created_at__gt": seen} if seen else {}))


def number_comments(found: Iterable[Any], every: CommentQuerySet) -> list[Any]:
    """Set the comments' `number`: their position among `every` comment on their items, from 1. A
    number that counts comments which somebody may not see would tell them of these."""

    comments = list(found)
    items = {comment.item_id for comment in comments}
    ordered = every.filter(item__in=items).order_by("item", "created_at", "pk")
    places: dict[int, int] = {}
    numbers: dict[int, int] = {}
    for pk, item in ordered.values_list("pk", "item"):
        numbers[pk] = places[item] = places.get(item, 0) + 1
    for comment in comments:
        comment.number = numbers[comment.pk]
    return comments


class Draft(models.Model):
    """A member's unsent answers and texts for an item; deleted when they are sent."""

    member = models.ForeignKey("Membership", models.PROTECT, related_name="drafts")
    item = models.ForeignKey("Item", models.PROTECT, related_name="drafts")
    revision = models.PositiveIntegerField(help_text="The revision that the screen showed.")
    data = models.JSONField(default=dict, help_text="Answers, comment, correction and its note.")
    updated_at = models.DateTimeField(default=timezone.now)

    objects = DraftQuerySet.as_manager()

    class Meta:
        ordering = ["-updated_at"]
        constraints = [models.UniqueConstraint(fields=["member", "item"], name="draft_one")]

    def __str__(self) -> str:
        return f"draft of {self.member} on {self.item.key}"

    @property
    def version(self) -> str:
        """Differs after each change of what is begun."""
        return self.updated_at.isoformat()

    def sent(self) -> None:
        """Delete the draft after its label is stored, but keep an unsent correction."""
        left = {name: self.data[name] for name in ("text", "note") if name in self.data}
        if "text" not in left:
            self.delete()
            return
        self.data = left
        self.save(update_fields=["data"])


class Mark(models.Model):
    """A member's action on an item other than labelling it; ended, never deleted.

    skip: the queue does not offer the item again until the member takes it back.
    flag: a lead should look at it.
    seen: the member saw others' labels or a resolution of the item (rule 6 of the design).
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
    """A member's comment on an item; others can read it once they have labelled the item."""

    item = models.ForeignKey("Item", models.PROTECT, related_name="comments")
    member = models.ForeignKey("Membership", models.PROTECT, related_name="comments")
    text = models.TextField()
    mentions: models.ManyToManyField[Membership, models.Model] = models.ManyToManyField(
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
    """A qualification round: items with known answers (study 001, appendix C).

    Members get work once they have passed a round. An unfinished round has no result. The labels of
    a round are the member's labels at stage qualification since the round started.
    """

    member = models.ForeignKey("Membership", models.PROTECT, related_name="practice_rounds")
    number = models.PositiveSmallIntegerField()
    size = models.PositiveSmallIntegerField()
    needed = models.PositiveSmallIntegerField(help_text="Pass mark: right answers needed to pass.")
    right = models.PositiveSmallIntegerField(default=0)
    answered = models.PositiveSmallIntegerField(default=0)
    feedback = models.TextField(blank=True, help_text="Feedback of a lead to the member.")
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
