"""What people have on the desk beside labels."""

from __future__ import annotations

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


class CommentQuerySet(models.QuerySet[Any]):
    def of_item(self, item: Item) -> CommentQuerySet:
        return self.filter(item=item, withdrawn_at__isnull=True).select_related("member")
