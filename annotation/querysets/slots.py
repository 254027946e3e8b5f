"""Places for labels, by who can have them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Exists, OuterRef, Q

if TYPE_CHECKING:
    from annotation.models import Item, Slot


class SlotQuerySet(models.QuerySet["Slot"]):
    def at(self, project_id: int, stage: str) -> SlotQuerySet:
        return self.filter(project_id=project_id, stage=stage)

    def fresh(self) -> SlotQuerySet:
        return self.filter(state="open", returned=False)

    def returned(self) -> SlotQuerySet:
        return self.filter(state="open", returned=True)

    def expired(self, now: datetime) -> SlotQuerySet:
        return self.filter(state="held", held_until__lte=now)

    def held(self, now: datetime) -> SlotQuerySet:
        return self.filter(state="held", held_until__gt=now)

    def beside(self, slot: Slot) -> SlotQuerySet:
        """The slots of the same item at the same stage, this one among them."""
        return self.filter(item=slot.item_id, stage=slot.stage).in_order()

    def of_others_than(self, item: Item) -> SlotQuerySet:
        return self.exclude(item=item)

    def untouched_by(self, member_id: int) -> SlotQuerySet:
        """Slots of items at which the member neither holds nor filled a place of the stage."""
        mine = self.model.objects.filter(
            item=OuterRef("item"), stage=OuterRef("stage"), member_id=member_id
        )
        return self.filter(~Exists(mine))

    def of_live_items(self) -> SlotQuerySet:
        return self.filter(item__deleted_at__isnull=True)

    def held_by(self, member_id: int) -> SlotQuerySet:
        return self.filter(state="held", member=member_id)

    def free(self, now: datetime) -> SlotQuerySet:
        """Nobody's, or held by somebody whose time is over."""
        return self.filter(Q(state="open") | Q(state="held", held_until__lte=now))

    def locked(self, *, passing: bool = False) -> SlotQuerySet:
        """For this transaction alone; waits for slots that others have locked, or passes them."""
        return self.select_for_update(no_key=True, of=("self",), skip_locked=passing)

    def in_order(self) -> SlotQuerySet:
        return self.order_by("priority", "position", "number")
