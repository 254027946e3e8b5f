"""What people have on the desk beside labels."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    from annotation.models import Item


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

    def for_pile(self) -> MarkQuerySet:
        """With their items, the latest first."""
        return self.filter(item__deleted_at__isnull=True).select_related("item")


class CommentQuerySet(models.QuerySet[Any]):
    def of_item(self, item: Item) -> CommentQuerySet:
        return self.filter(item=item, withdrawn_at__isnull=True).select_related("member")

    def of_others_than(self, member_id: int) -> CommentQuerySet:
        return self.exclude(member_id=member_id)

    def for_page(self) -> list[Any]:
        """Oldest first, each with its `number` among all that the item ever had."""
        from annotation.models import Comment

        comments = list(self.order_by("created_at", "pk"))
        items = {comment.item_id for comment in comments}
        every = Comment.objects.filter(item__in=items).order_by("item", "created_at", "pk")
        places: dict[int, int] = {}
        numbers: dict[int, int] = {}
        for pk, item in every.values_list("pk", "item"):
            numbers[pk] = places[item] = places.get(item, 0) + 1
        for comment in comments:
            comment.number = numbers[comment.pk]
        return comments

    def numbered(self, item: Item, number: int) -> Any:
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
