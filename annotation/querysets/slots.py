"""Places for labels, by who can have them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Case, Exists, OuterRef, Q, When

from annotation.db.counting import count_by

if TYPE_CHECKING:
    from annotation.models import Item, Slot


class SlotQuerySet(models.QuerySet["Slot"]):
    def at(self, project_id: int, stage: str) -> SlotQuerySet:
        return self.filter(project_id=project_id, stage=stage)

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

    def free_for(self, member_id: int, now: datetime) -> SlotQuerySet:
        """Nobody's, or held by somebody whose time is over; none that is reserved for another."""
        free = Q(state="open") | Q(state="held", held_until__lte=now)
        return self.filter(free, Q(reserved_for=None) | Q(reserved_for=member_id))

    def in_project(self, project_id: int) -> SlotQuerySet:
        return self.filter(project_id=project_id)

    def at_any(self, stages: Iterable[str]) -> SlotQuerySet:
        return self.filter(stage__in=stages)

    def in_use(self) -> SlotQuerySet:
        """Open or held: a label is still to come."""
        return self.filter(state__in=["open", "held"])

    def of_member(self, member_id: int) -> SlotQuerySet:
        return self.filter(member=member_id)

    def locked(self, *, passing: bool = False) -> SlotQuerySet:
        """For this transaction alone; waits for slots that others have locked, or passes them."""
        return self.select_for_update(no_key=True, of=("self",), skip_locked=passing)

    def in_order(self) -> SlotQuerySet:
        return self.order_by("priority", "position", "number")

    def of_item(self, item: Item) -> SlotQuerySet:
        return self.filter(item=item)

    def at_work(self) -> SlotQuerySet:
        return self.filter(stage="work")

    def at_stage(self, stage: str) -> SlotQuerySet:
        return self.filter(stage=stage)

    def that_all_get(self) -> SlotQuerySet:
        """Not those that an item got since people disagree, or for one person."""
        return self.filter(reason__in=["", "share"])

    def kept_for(self, member_id: int) -> SlotQuerySet:
        """Open places that only this member can have."""
        return self.filter(reserved_for=member_id, state="open", item__deleted_at=None)

    def kept_counts(self) -> dict[int, int]:
        """How many open places are kept for whom, by the member's id."""
        kept = self.filter(reserved_for__isnull=False, state="open", item__deleted_at=None)
        return count_by(kept, "reserved_for")

    def of_others(self, member_id: int) -> SlotQuerySet:
        return self.exclude(member=member_id).of_live_items()

    def for_pile(self) -> SlotQuerySet:
        """With their items, what is free first in front."""
        return self.select_related("item").order_by("held_until", "pk")

    def undecided(self, project_id: int, order: Iterable[str]) -> SlotQuerySet:
        """Where live items wait for a person's decision, by reason in this order."""
        ranks = [When(reason=reason, then=rank) for rank, reason in enumerate(order)]
        waiting = self.at(project_id, "adjudicate").in_use().of_live_items()
        ranked = waiting.annotate(rank=Case(*ranks, default=len(ranks)))
        return ranked.select_related("item", "member").order_by("rank", "priority", "position")

    def open_to(self, member_id: int, now: datetime) -> SlotQuerySet:
        """Free ones, and those that the member holds."""
        mine = Q(state="held", member=member_id)
        return self.filter(mine | Q(state="open") | Q(state="held", held_until__lte=now))

    def per_reason(self) -> dict[str, int]:
        return count_by(self, "reason")

    def missing_labels(self, items: Iterable[int]) -> dict[int, int]:
        """How many labels are still to come, by the item's id; items without any are left out."""
        return count_by(self.at_work().in_use().filter(item__in=list(items)), "item")

    def not_closed(self) -> SlotQuerySet:
        return self.exclude(state="closed")
