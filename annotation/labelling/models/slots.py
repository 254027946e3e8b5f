"""Places for labels: who can have them, and how they go from one person to the next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Case, Exists, OuterRef, Q, When

from annotation.db import sql
from annotation.db.counting import count_by

if TYPE_CHECKING:
    from annotation.models import Item


@dataclass(frozen=True)
class Hold:
    """Whose a slot is to be until when; `ahead` if it comes after the member's current one."""

    member_id: int
    until: datetime
    ahead: bool = False

    def parameters(self) -> dict[str, Any]:
        """What a statement with `HOLD_SQL` in it has to be told."""
        until = sql.to_database_time(self.until)
        return {"member": self.member_id, "until": until, "ahead": self.ahead}


# What the queue's statements do to a slot; the latter takes `ahead`, the slot and its member.
HOLD_SQL = "state = 'held', member_id = %(member)s, held_until = %(until)s, ahead = %(ahead)s"
# COALESCE: with statistics from before anybody had a slot, a planner would else take the index of
# slots by member for the smallest and go through all that this one ever had.
FILL_SQL = """UPDATE annotation_slot SET state = 'filled', held_until = NULL, ahead = %s
    WHERE id = %s AND COALESCE(member_id, 0) = %s"""


class SlotQuerySet(models.QuerySet["Slot"]):
    """Slots by who can have them, and what is done to many or to one that was not read."""

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
        return self.filter(stage="label")

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

    def for_my_items(self) -> SlotQuerySet:
        """With their items, what is free first in front."""
        return self.select_related("item").order_by("held_until", "pk")

    def undecided(self, project_id: int, order: Iterable[str]) -> SlotQuerySet:
        """Where live items wait for a person's decision, by reason in this order."""
        ranks = [When(reason=reason, then=rank) for rank, reason in enumerate(order)]
        waiting = self.in_project(project_id).at_stage("adjudicate").in_use().of_live_items()
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

    def hold(self, slot_id: int, hold: Hold) -> None:
        """Give the slot, which is locked, to a member."""
        statement = f"UPDATE annotation_slot SET {HOLD_SQL} WHERE id = %(slot)s"
        sql.execute_change(statement, hold.parameters() | {"slot": slot_id})

    def hold_longer(self, until: datetime) -> int:
        """Let those that are held stay so until a later time."""
        return self.update(held_until=until)

    def fill(self, slot_id: int, member_id: int) -> bool:
        """Fill the slot if it is the member's, held or filled before; False if it is another's."""
        return bool(sql.execute_change(FILL_SQL, [False, slot_id, member_id]))

    def close_open(self) -> int:
        """Close those that nobody has; how many they were."""
        return self.filter(state="open").update(state="closed")

    def put_open_first(self) -> int:
        """Let the open ones be looked at first, for some may be past them."""
        return self.filter(state="open").update(returned=True)


class Stage(models.TextChoices):
    """What a label is for. A blind label answers the blind-first questions of an item; a baseline
    label answers the task's own, as a human to compare evaluators with (study 001, table 5)."""

    BLIND = "blind"
    LABEL = "label"
    VERIFY = "verify"
    QUALIFICATION = "qualification"
    CONTROL = "control"
    BASELINE = "baseline"
    ADJUDICATE = "adjudicate"


# What stages were called before, as the audit, snapshots and archives from then have them.
FORMER_STAGES = {
    "work": Stage.LABEL.value,
    "practice": Stage.QUALIFICATION.value,
    "probe": Stage.CONTROL.value,
}
# Stages whose slots are made when a member gets to them, one for each who does.
ON_DEMAND_STAGES = frozenset({Stage.QUALIFICATION, Stage.CONTROL, Stage.BLIND})
# Stages that look alike to the person who labels, so that a silent check looks like work.
WORK_LIKE_STAGES = (Stage.LABEL, Stage.CONTROL, Stage.BASELINE)


class Reason(models.TextChoices):
    """Why there is a slot beside those that every item gets."""

    SHARE = "share", "Double-annotated sample"
    DISPUTED = "disputed", "Annotators disagree"
    NAMED = "named", "Reserved for a member"
    EXPERT = "expert", "Needs an expert"
    GOLD_ERROR = "gold-error", "The gold answer looks wrong"
    CONTESTED = "contested", "The label is contested"
    REQUESTED = "requested", "Requested by a lead"


class Slot(models.Model):
    """One place for one counted label of an item at one stage.

    open (nobody's), held (by a member until a time), filled (by a counted label), closed.

    hold      open, or held until a time that is over -> held
    fill      held, or open to a label that was already written -> filled
    release   held or filled -> open; one that was made for the member -> closed
    close     open, held or filled -> closed, as no label is asked for
    reopen    filled or closed -> open

    These are methods here, of a slot that was read, and of the queryset. A held slot whose time is
    over is as good as open: the next person takes the row over, so nothing has to sweep. An open
    slot that somebody had before is `returned` and looked at first.
    """

    class State(models.TextChoices):
        OPEN = "open"
        HELD = "held"
        FILLED = "filled"
        CLOSED = "closed"

    project = models.ForeignKey("Project", models.PROTECT, related_name="slots")
    # Of item, member and whom it is kept for, indexes below do what theirs would.
    item = models.ForeignKey("Item", models.PROTECT, related_name="slots", db_index=False)
    stage = models.CharField(max_length=20, choices=Stage.choices, default=Stage.LABEL)
    number = models.PositiveSmallIntegerField()
    priority = models.SmallIntegerField(default=0, help_text="Lower comes first.")
    position = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    member = models.ForeignKey(
        "Membership", models.PROTECT, null=True, blank=True, related_name="slots", db_index=False
    )
    held_until = models.DateTimeField(null=True, blank=True)
    returned = models.BooleanField(
        default=False, help_text="Offered first: it was released, or it is urgent."
    )
    ahead = models.BooleanField(default=False, help_text="Reserved as the member's next item.")
    reserved_for = models.ForeignKey(
        "Membership",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="reserved_slots",
        db_index=False,
    )
    reason = models.CharField(max_length=20, choices=Reason.choices, blank=True)

    objects = SlotQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "stage", "number"], name="slot_number"),
            models.UniqueConstraint(
                fields=["item", "stage", "member"],
                condition=Q(member__isnull=False),
                name="slot_one_a_member",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["held", "filled"], member__isnull=False)
                | Q(state__in=["open", "closed"], member__isnull=True),
                name="slot_member_by_state",
            ),
            models.CheckConstraint(
                condition=Q(state="held", held_until__isnull=False)
                | (~Q(state="held") & Q(held_until__isnull=True)),
                name="slot_time_by_state",
            ),
        ]
        indexes = [
            models.Index(
                fields=["project", "stage", "priority", "position"],
                condition=Q(state="open", returned=False, reserved_for__isnull=True),
                name="slot_open",
            ),
            models.Index(
                fields=["project", "stage", "priority", "position"],
                condition=Q(state="open", returned=True, reserved_for__isnull=True),
                name="slot_returned",
            ),
            models.Index(
                fields=["reserved_for", "stage", "priority", "position"],
                condition=Q(state="open", reserved_for__isnull=False),
                name="slot_reserved",
            ),
            models.Index(
                fields=["project", "stage", "held_until"],
                condition=Q(state="held"),
                name="slot_held",
            ),
            models.Index(
                fields=["member", "stage"], condition=Q(state="held"), name="slot_held_by"
            ),
            models.Index(
                fields=["member", "item"],
                condition=Q(member__isnull=False),
                name="slot_of_member",
            ),
            models.Index(
                fields=["reserved_for"],
                condition=Q(reserved_for__isnull=False),
                name="slot_reserved_for",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.item.key} {self.stage} {self.number}: {self.state}"

    def hold(self, member_id: int, until: datetime, *, ahead: bool = False) -> None:
        self.state, self.member_id, self.held_until = self.State.HELD, member_id, until
        self.ahead = ahead
        self.save(update_fields=["state", "member", "held_until", "ahead"])

    def fill(self, member_id: int) -> None:
        self.state, self.member_id, self.held_until = self.State.FILLED, member_id, None
        self.ahead = False
        self.save(update_fields=["state", "member", "held_until", "ahead"])

    def release(self) -> None:
        """To the queue, where it is looked at first; one that was made for a person is closed."""
        own = self.stage in ON_DEMAND_STAGES
        self.state = self.State.CLOSED if own else self.State.OPEN
        self.member, self.held_until, self.ahead, self.returned = None, None, False, True
        self.save(update_fields=["state", "member", "held_until", "ahead", "returned"])

    def close(self) -> None:
        """Nobody's any more, and no label is asked for."""
        self.state, self.member, self.held_until = self.State.CLOSED, None, None
        self.save(update_fields=["state", "member", "held_until"])

    def reopen(self) -> None:
        """Ask for a label again; the slot is looked at first, for all may be past it."""
        self.state, self.member, self.held_until, self.returned = self.State.OPEN, None, None, True
        self.save(update_fields=["state", "member", "held_until", "returned"])

    def reserve(self, member_id: int) -> None:
        self.reserved_for_id = member_id
        self.save(update_fields=["reserved_for"])

    def unreserve(self) -> None:
        """For everybody now; a place that was made for the person is not needed any more."""
        self.reserved_for, self.returned = None, True
        if self.reason == Reason.NAMED:
            self.state = self.State.CLOSED
        self.save(update_fields=["reserved_for", "returned", "state"])

    def give_reason(self, reason: str) -> None:
        self.reason = reason
        self.save(update_fields=["reason"])


class Cursor(models.Model):
    """How far a member has come through the open slots of a stage.

    Slots before it were taken by the member or by others; returned ones have an index of their
    own. So the next slot costs one index probe, however much the member has done (design 3.4).
    """

    member = models.ForeignKey("Membership", models.CASCADE, related_name="cursors")
    stage = models.CharField(max_length=20, choices=Stage.choices)
    priority = models.SmallIntegerField(default=-32768)
    position = models.BigIntegerField(default=-1)
    nothing_until = models.DateTimeField(
        null=True, help_text="Nothing was found; do not search again before this time."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["member", "stage"], name="cursor_stage")]

    def __str__(self) -> str:
        return f"{self.member} at {self.position} of {self.stage}"
