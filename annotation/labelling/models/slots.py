"""Slots for labels: which members can take a slot, and how a slot changes its state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Case, Count, Exists, OuterRef, Q, When

from annotation.db import sql
from annotation.db.counting import count_by
from annotation.items.models import IN_DATA_SET

if TYPE_CHECKING:
    from annotation.models import Item, Membership


@dataclass(frozen=True)
class Hold:
    """The member who holds a slot, and the end of the hold; `ahead` if the slot is for the member's
    next item."""

    member_id: int
    until: datetime
    ahead: bool = False

    def parameters(self) -> dict[str, Any]:
        """The parameters of a statement that contains `HOLD_SQL`."""
        until = sql.to_database_time(self.until)
        return {"member": self.member_id, "until": until, "ahead": self.ahead}


# How the queue's statements change a slot; the parameters of FILL_SQL are `ahead`, the slot's id
# and the member's id.
HOLD_SQL = "state = 'held', member_id = %(member)s, held_until = %(until)s, ahead = %(ahead)s"
# COALESCE: without it, a planner with statistics from before anybody had a slot would use the index
# of slots by member and read all slots that this member ever had.
FILL_SQL = """UPDATE annotation_slot SET state = 'filled', held_until = NULL, ahead = %s
    WHERE id = %s AND COALESCE(member_id, 0) = %s"""


_IS_BEGUN = """EXISTS (
        SELECT 1 FROM annotation_slot f
        WHERE f.item_id = annotation_slot.item_id AND f.stage = 'label' AND f.state = 'filled')"""
_MARK_BEGUN_SQL = f"""UPDATE annotation_slot SET begun = {_IS_BEGUN}
    WHERE item_id IN ({{ids}}) AND stage = 'label' AND state = 'open'"""
# One statement, since each change of a slot is a change of many indexes.
_SORT_SQL = f"""WITH sorted (item, position) AS (VALUES {{rows}})
    UPDATE annotation_slot SET position = sorted.position,
        begun = CASE WHEN stage = 'label' AND state = 'open' THEN {_IS_BEGUN} ELSE begun END
    FROM sorted WHERE annotation_slot.item_id = sorted.item"""


class SlotQuerySet(models.QuerySet["Slot"]):
    """Find slots by who can take them, and change many slots, or one slot by its id."""

    def held(self, now: datetime) -> SlotQuerySet:
        return self.filter(state="held", held_until__gt=now)

    def beside(self, slot: Slot) -> SlotQuerySet:
        """The slots of the slot's item at its stage, including the slot itself."""
        return self.filter(item=slot.item_id, stage=slot.stage).in_order()

    def of_others_than(self, item: Item) -> SlotQuerySet:
        return self.exclude(item=item)

    def untouched_by(self, member_id: int) -> SlotQuerySet:
        """Slots whose item has no slot at the same stage that the member holds or has filled."""
        mine = self.model.objects.filter(
            item=OuterRef("item"), stage=OuterRef("stage"), member_id=member_id
        )
        return self.filter(~Exists(mine))

    def of_live_items(self) -> SlotQuerySet:
        return self.filter(item__deleted_at__isnull=True)

    def in_data_set(self) -> SlotQuerySet:
        """Leave out slots of excluded items and of items that became qualification or control
        items."""
        return self.filter(IN_DATA_SET)

    def held_by(self, member_id: int) -> SlotQuerySet:
        return self.filter(state="held", member=member_id)

    def free_for(self, member_id: int, now: datetime) -> SlotQuerySet:
        """Open slots and slots whose hold has expired, without those reserved for another
        member."""
        return self.free(now).filter(Q(reserved_for=None) | Q(reserved_for=member_id))

    def free(self, now: datetime) -> SlotQuerySet:
        """Open slots and slots whose hold has expired, whoever they are reserved for."""
        return self.filter(Q(state="open") | Q(state="held", held_until__lte=now))

    def in_project(self, project_id: int) -> SlotQuerySet:
        return self.filter(project_id=project_id)

    def at_any(self, stages: Iterable[str]) -> SlotQuerySet:
        return self.filter(stage__in=stages)

    def in_use(self) -> SlotQuerySet:
        """Slots that are open or held, so that a label is still to come."""
        return self.filter(state__in=["open", "held"])

    def of_member(self, member_id: int) -> SlotQuerySet:
        return self.filter(member=member_id)

    def locked(self, *, passing: bool = False) -> SlotQuerySet:
        """Lock the slots for this transaction. Waits for slots that others have locked; with
        `passing`, skips them."""
        return self.select_for_update(no_key=True, of=("self",), skip_locked=passing)

    def lock_in_turn(self) -> None:
        """Lock the slots item by item, as everybody does who changes slots of several items."""
        list(self.locked().order_by("item_id", "pk").values_list("pk"))

    def in_order(self) -> SlotQuerySet:
        return self.order_by("priority", "position", "number")

    def of_item(self, item: Item) -> SlotQuerySet:
        return self.filter(item=item)

    def at_work(self) -> SlotQuerySet:
        return self.filter(stage="label")

    def at_stage(self, stage: str) -> SlotQuerySet:
        return self.filter(stage=stage)

    def that_all_get(self) -> SlotQuerySet:
        """These slots without the slots that were added after a disagreement or for one member."""
        return self.filter(reason__in=["", "share", "waived"])

    def kept_for(self, member_id: int) -> SlotQuerySet:
        """Open slots of live items that are reserved for the member."""
        return self.filter(reserved_for=member_id, state="open", item__deleted_at=None)

    def kept_counts(self) -> dict[int, int]:
        """The number of open slots that are reserved for each member, by the member's id."""
        kept = self.filter(reserved_for__isnull=False, state="open", item__deleted_at=None)
        return count_by(kept, "reserved_for")

    def of_others(self, member_id: int) -> SlotQuerySet:
        return self.exclude(member=member_id).of_live_items()

    def for_my_items(self) -> SlotQuerySet:
        """These slots with their items, ordered by when the hold ends."""
        return self.select_related("item").defer("item__fields").order_by("held_until", "pk")

    def undecided(self, project_id: int, order: Iterable[str]) -> SlotQuerySet:
        """Slots of items in the data set that wait for adjudication, sorted by reason in this
        order."""
        ranks = [When(reason=reason, then=rank) for rank, reason in enumerate(order)]
        waiting = self.in_project(project_id).at_stage("adjudicate").in_use().in_data_set()
        ranked = waiting.annotate(rank=Case(*ranks, default=len(ranks)))
        # An item may have megabytes of fields.
        shown = ranked.select_related("item", "member").defer("item__fields")
        return shown.order_by("rank", "priority", "position")

    def open_to(self, member_id: int, now: datetime) -> SlotQuerySet:
        """Open slots, slots whose hold has expired, and slots that the member holds."""
        mine = Q(state="held", member=member_id)
        return self.filter(mine | Q(state="open") | Q(state="held", held_until__lte=now))

    def per_reason(self) -> dict[str, int]:
        return count_by(self, "reason")

    def missing_labels(self, items: Iterable[int]) -> dict[int, int]:
        """The number of labels still to come, by the item's id; items without any are left out."""
        return count_by(self.at_work().in_use().filter(item__in=list(items)), "item")

    def count_items_for(self, member: Membership, now: datetime) -> int:
        """Count the live items that the member can label: with a slot that is free for the member
        or held by the member, neither labelled nor skipped by the member."""
        from annotation.models import Mark

        slots = self.in_project(member.project_id).at_work().of_live_items()
        own = Slot.objects.at_work().filter(
            item=OuterRef("item"), member=member.pk, state=Slot.State.FILLED
        )
        skipped = Mark.objects.of_member(member.pk, "skip").filter(item=OuterRef("item"))
        free = slots.free_for(member.pk, now)
        if member.is_in_pilot:
            free = slots.free(now).filter(reserved_for=member.pk)
        free |= slots.held_by(member.pk)
        found = free.filter(~Exists(own), ~Exists(skipped))
        return int(found.aggregate(items=Count("item", distinct=True))["items"])

    def count_baseline_items_for(self, member: Membership, now: datetime) -> int:
        """Count the live items of the human baseline that the member can label: those that the
        member holds, or has neither labelled nor seen and nobody else holds."""
        from annotation.models import Label, Mark

        slots = self.in_project(member.project_id).at_stage("baseline").of_live_items()
        mine = {"item": OuterRef("item"), "member": member.pk}
        marks = Mark.objects.in_force().filter(**mine, kind__in=["skip", "seen"])
        free = slots.free_for(member.pk, now).filter(
            ~Exists(Slot.objects.filter(**mine)),
            ~Exists(Label.objects.filter(**mine, current=True)),
            ~Exists(marks),
        )
        held = slots.held_by(member.pk).values("item")
        found = free.order_by().values("item").union(held.order_by())
        return found.count()

    def count_labels(self, project_id: int) -> tuple[int, int]:
        """Count the labels that live items have, and those that they need."""
        slots = self.in_project(project_id).at_work().in_data_set()
        states = count_by(slots, "state")
        given = states.get(Slot.State.FILLED, 0)
        return given, given + states.get(Slot.State.OPEN, 0) + states.get(Slot.State.HELD, 0)

    def not_closed(self) -> SlotQuerySet:
        return self.exclude(state="closed")

    def hold(self, slot_id: int, hold: Hold) -> None:
        """Let a member hold the slot, which must be locked."""
        statement = f"UPDATE annotation_slot SET {HOLD_SQL} WHERE id = %(slot)s"
        sql.execute_change(statement, hold.parameters() | {"slot": slot_id})

    def hold_longer(self, until: datetime) -> int:
        """Extend the holds to this time, and return the number of slots changed."""
        return self.update(held_until=until)

    def fill(self, slot_id: int, member_id: int) -> bool:
        """Fill the slot if the member holds it or filled it; return False if the slot is somebody
        else's."""
        return bool(sql.execute_change(FILL_SQL, [False, slot_id, member_id]))

    def close_open(self) -> int:
        """Close the open slots, and return their number."""
        return self.filter(state="open").update(state="closed")

    def mark_begun(self, items: Iterable[int]) -> None:
        """Say of the open slots of the items with these ids whether somebody has labelled them."""
        ids = list(items)
        # For one item the text is always the same, so that it is planned once.
        named = "%s" if len(ids) == 1 else ", ".join(f"{item:d}" for item in ids)
        sql.execute_change(_MARK_BEGUN_SQL.format(ids=named), ids if len(ids) == 1 else [])

    def sort(self, positions: Iterable[tuple[int, int]]) -> None:
        """Give the slots of items their positions in the queue, as pairs of the item's id and the
        position, and say of the open ones whether somebody has labelled their item."""
        rows = ", ".join(f"({item:d}, {position:d})" for item, position in positions)
        sql.execute_change(_SORT_SQL.format(rows=rows), [])

    def put_open_first(self) -> int:
        """Offer the open slots first, since cursors may have passed them; return the number of
        these slots."""
        return self.filter(state="open").update(returned=True)


class Stage(models.TextChoices):
    """The purpose of a label. A blind label answers the questions that are asked before the change
    is shown; a baseline label answers the task's own questions, to compare humans with evaluators
    (study 001, table 5)."""

    BLIND = "blind"
    LABEL = "label"
    VERIFY = "verify"
    QUALIFICATION = "qualification"
    CONTROL = "control"
    BASELINE = "baseline"
    ADJUDICATE = "adjudicate"


# Former names of stages, which old audit logs, snapshots and archives contain.
FORMER_STAGES = {
    "work": Stage.LABEL.value,
    "practice": Stage.QUALIFICATION.value,
    "probe": Stage.CONTROL.value,
}
# Stages whose slots are created one per member, when the member reaches the stage.
ON_DEMAND_STAGES = frozenset({Stage.QUALIFICATION, Stage.CONTROL, Stage.BLIND})
# Stages that look the same to annotators, so that control items cannot be identified.
WORK_LIKE_STAGES = (Stage.LABEL, Stage.CONTROL, Stage.BASELINE)


class Reason(models.TextChoices):
    """Why a slot exists in addition to those that every item gets."""

    SHARE = "share", "Double-annotated sample"
    DISPUTED = "disputed", "Annotators disagree"
    NAMED = "named", "Reserved for a member"
    EXPERT = "expert", "Needs an expert"
    GOLD_ERROR = "gold-error", "The gold answer looks wrong"
    CONTESTED = "contested", "The label is contested"
    REQUESTED = "requested", "Requested by a lead"
    WAIVED = "waived", "Not waited for any more"


class Slot(models.Model):
    """A place for one counted label of an item at one stage.

    open (nobody's), held (by a member until a time), filled (by a counted label), closed.

    hold      open, or held with the time expired -> held
    fill      held, or open if the label was already written -> filled
    release   held or filled -> open; if it was created for the member -> closed
    close     open, held or filled -> closed, as no label is needed
    reopen    filled or closed -> open

    These are methods of a loaded slot, and of the queryset. A slot whose hold has expired counts as
    open: the next person takes over the row, so no cleanup job is needed. An open slot that
    somebody had before is marked as `returned` and offered first.
    """

    class State(models.TextChoices):
        OPEN = "open"
        HELD = "held"
        FILLED = "filled"
        CLOSED = "closed"

    project = models.ForeignKey("Project", models.PROTECT, related_name="slots")
    # The indexes below replace the default ones of item, member and reserved_for.
    item = models.ForeignKey("Item", models.PROTECT, related_name="slots", db_index=False)
    stage = models.CharField(max_length=20, choices=Stage.choices, default=Stage.LABEL)
    number = models.PositiveSmallIntegerField()
    priority = models.SmallIntegerField(default=0, help_text="Lower values come first.")
    position = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    member = models.ForeignKey(
        "Membership", models.PROTECT, null=True, blank=True, related_name="slots", db_index=False
    )
    held_until = models.DateTimeField(null=True, blank=True)
    returned = models.BooleanField(
        default=False, help_text="Offered first, because it was released or is urgent."
    )
    ahead = models.BooleanField(default=False, help_text="Reserved as the member's next item.")
    begun = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Open, and somebody has labelled the item: offered before items without a label.",
    )
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
                fields=["project", "stage", "priority", "position"],
                condition=Q(state="open", begun=True, returned=False, reserved_for__isnull=True),
                name="slot_begun",
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
        """Return the slot to the queue, where it is offered first; close it if it was created for
        the member."""
        own = self.stage in ON_DEMAND_STAGES
        self.state = self.State.CLOSED if own else self.State.OPEN
        self.member, self.held_until, self.ahead, self.returned = None, None, False, True
        self.save(update_fields=["state", "member", "held_until", "ahead", "returned"])

    def close(self) -> None:
        """Close the slot: no label is needed any more."""
        self.state, self.member, self.held_until = self.State.CLOSED, None, None
        self.save(update_fields=["state", "member", "held_until"])

    def is_free(self, now: datetime) -> bool:
        """True if the slot is open, or held by somebody whose time is over."""
        is_over = self.held_until is not None and self.held_until <= now
        return self.state == self.State.OPEN or (self.state == self.State.HELD and is_over)

    def waive(self) -> None:
        """Close the slot for good: its label is not waited for any more."""
        if self.reason != Reason.DISPUTED:
            self.reason = Reason.WAIVED
        self.returned, self.reserved_for, self.ahead = False, None, False
        self.state, self.member, self.held_until = self.State.CLOSED, None, None
        self.save()

    def reopen(self, *, urgent: bool = True) -> None:
        """Open the slot again; if urgent it is offered first, since all cursors may have passed
        it."""
        self.state, self.member, self.held_until = self.State.OPEN, None, None
        self.returned = urgent
        self.save(update_fields=["state", "member", "held_until", "returned"])

    def unreserve(self) -> None:
        """Return the slot to everybody; close it if it was created for the member."""
        self.reserved_for, self.returned = None, True
        if self.reason == Reason.NAMED:
            self.state = self.State.CLOSED
        self.save(update_fields=["reserved_for", "returned", "state"])

    def stop_reserving(self) -> None:
        """Leave the slot to who holds it, and after that to everybody."""
        self.reserved_for = None
        self.save(update_fields=["reserved_for"])

    def give_reason(self, reason: str) -> None:
        self.reason = reason
        self.save(update_fields=["reason"])


class Cursor(models.Model):
    """The position that a member has reached in the open slots of a stage.

    The slots before this position were taken by the member or by others; returned slots have a
    separate index. So finding the next slot costs one index lookup, however much the member has
    done.
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
