"""What people have on the desk beside labels."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Exists, OuterRef

if TYPE_CHECKING:
    from annotation.models import Item, Project


class DraftQuerySet(models.QuerySet[Any]):
    def of(self, member_id: int) -> DraftQuerySet:
        return self.filter(member_id=member_id, item__deleted_at__isnull=True)


class MarkQuerySet(models.QuerySet[Any]):
    def in_force(self) -> MarkQuerySet:
        return self.filter(ended_at__isnull=True)

    def of(self, member_id: int, kind: str) -> MarkQuerySet:
        """The member's marks of a kind that are in force."""
        return self.in_force().filter(member_id=member_id, kind=kind)

    def on(self, item: Item) -> MarkQuerySet:
        return self.filter(item=item)

    def on_any(self, items: Iterable[int]) -> MarkQuerySet:
        return self.filter(item__in=items)

    def for_pile(self) -> MarkQuerySet:
        """With their items, the latest first."""
        return self.filter(item__deleted_at__isnull=True).select_related("item")


class CommentQuerySet(models.QuerySet[Any]):
    def of_item(self, item: Item) -> CommentQuerySet:
        return self.filter(item=item, withdrawn_at__isnull=True).select_related("member", "item")

    def in_project(self, project: Project) -> CommentQuerySet:
        """Those on live items that were not taken back, newest first."""
        shown = self.filter(item__project=project, withdrawn_at=None, item__deleted_at=None)
        return shown.select_related("member", "item").order_by("-created_at", "-pk")

    def on_items_labelled_by(self, member_id: int | None, stages: Iterable[str]) -> CommentQuerySet:
        """Those on items of which a label of the member's at one of the stages is in force."""
        from annotation.models import Label

        labels = Label.objects.current().at_stages(stages).filter(member_id=member_id)
        return self.filter(Exists(labels.filter(item=OuterRef("item"))))

    def of_others_than(self, member_id: int) -> CommentQuerySet:
        return self.exclude(member_id=member_id)

    def for_page(self) -> list[Any]:
        """Oldest first, each with its `number` among all that the item ever had."""
        return number_comments(self.order_by("created_at", "pk"))

    def called(self, item: Item, number: int) -> Any:
        """The item's comment of this number, counted from 1; None if there is none."""
        if number < 1:
            return None
        return self.filter(item=item).select_related("member")[number - 1 : number].first()

    def naming(self, member_id: int) -> CommentQuerySet:
        """Comments on live items that name the member, newest first."""
        shown = self.filter(mentions=member_id, withdrawn_at=None, item__deleted_at=None)
        return shown.select_related("member", "item").order_by("-created_at", "-pk")

    def since(self, time: datetime | None) -> CommentQuerySet:
        return self.filter(created_at__gt=time) if time else self


def number_comments(found: Iterable[Any]) -> list[Any]:
    """The comments with their places among all that their items ever had, counted from 1."""
    from annotation.models import Comment

    comments = list(found)
    items = {comment.item_id for comment in comments}
    every = Comment.objects.filter(item__in=items).order_by("item", "created_at", "pk")
    places: dict[int, int] = {}
    numbers: dict[int, int] = {}
    for pk, item in every.values_list("pk", "item"):
        numbers[pk] = places[item] = places.get(item, 0) + 1
    for comment in comments:
        comment.number = numbers[comment.pk]
    return comments
