"""Find, hold, add and close slots of an item; inside the caller's transaction.

The states and their transitions are described at `Slot`.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Max

from annotation.labelling import work_order
from annotation.models import WORK_LIKE_STAGES, Item, Membership, Reason, Slot, Stage

# The stages of the items on the label screen; the page does not reveal the stage of an item.
WORKBENCH_STAGES = (*WORK_LIKE_STAGES, Stage.QUALIFICATION)


def hold_until(member: Membership, now: datetime) -> datetime:
    """The end of a hold that the member takes now."""
    return now + timedelta(minutes=member.project.hold_minutes)


def related_stages(stage: str) -> tuple[str, ...]:
    """The stages that are requested together: all stages of the label screen, or only this
    stage."""
    return WORKBENCH_STAGES if stage in WORKBENCH_STAGES else (stage,)


def find_slot_to_fill(member: Membership, shown: Slot, now: datetime) -> Slot | None:
    """Find the slot for the member's label: the shown slot, another slot of the member, or a free
    slot; otherwise None."""
    if shown.member_id == member.pk:
        return shown
    slots = Slot.objects.beside(shown)
    mine = slots.filter(member=member).locked().first()
    return mine or slots.free_for(member.pk, now).locked(passing=True).first()


def hold_again(
    member: Membership, item: Item, stage: str, last_shown: Slot | None, now: datetime
) -> Slot | None:
    """Make a slot of the item the member's current slot; the previous current slot follows it.

    If no slot is free, returns somebody else's slot unchanged: a label is then an extra label. If
    the item is deleted, releases the member's slot, so that it is free if the item is restored, and
    returns None. Also returns None if the item has no slot at the stage.
    """
    slots = Slot.objects.in_project(member.project_id).at_stage(stage).filter(item=item)
    last_shown = last_shown or slots.in_order().first()
    if last_shown is None:
        return None
    slot = find_slot_to_fill(member, last_shown, now)
    if item.deleted_at:
        if slot and slot.member_id == member.pk:
            slot.release()
        return None
    if slot:
        move_held_behind(member, item, now, related_stages(stage))
        slot.hold(member.pk, hold_until(member, now))
    slot = slot or last_shown
    slot.item = item
    return slot


def move_held_behind(
    member: Membership,
    item: Item,
    now: datetime,
    stages: tuple[str, ...] = WORKBENCH_STAGES,
) -> None:
    """Keep one of the slots that the member holds of other items at these stages, as the slot after
    this one, and release the rest."""
    held = Slot.objects.in_project(member.project_id).held_by(member.pk)
    locked = held.at_any(stages).of_others_than(item).locked().order_by("item_id", "pk")
    others = sorted(locked, key=lambda slot: (slot.ahead, slot.pk))
    for slot in others[:1]:
        slot.hold(member.pk, hold_until(member, now), ahead=True)
    for slot in others[1:]:
        slot.release()


def add_slots(
    item: Item,
    stage: str,
    count: int,
    *,
    reason: str = "",
    urgent: bool = True,
) -> list[Slot]:
    """Add slots to the item, which must be locked, at a stage; urgent slots are offered first."""
    last = Slot.objects.filter(item=item, stage=stage).aggregate(last=Max("number"))["last"] or 0
    beside = Slot.objects.filter(item=item, stage=stage).order_by("priority").first()
    any_stage = beside or Slot.objects.filter(item=item).first()
    position = (
        any_stage.position if any_stage else work_order.queue_position(item.project, item.position)
    )
    return Slot.objects.bulk_create(
        Slot(
            project_id=item.project_id,
            item=item,
            stage=stage,
            number=number,
            position=position,
            priority=beside.priority if beside else 0,
            returned=urgent,
            reason=reason,
        )
        for number in range(last + 1, last + 1 + count)
    )


def build_named(item: Item, own: Sequence[Slot], members: Sequence[Membership]) -> list[Slot]:
    """Build slots of the item for these members, without storing them; `own` are its slots at the
    stage label, in order."""
    last = max((slot.number for slot in own), default=0)
    position = own[0].position if own else work_order.queue_position(item.project, item.position)
    return [
        Slot(
            project_id=item.project_id,
            item=item,
            number=number,
            position=position,
            priority=own[0].priority if own else 0,
            returned=True,
            reason=Reason.NAMED,
            reserved_for=member,
        )
        for number, member in enumerate(members, last + 1)
    ]


def create_held_slot(
    member: Membership, item: Item, stage: str, until: datetime | None = None
) -> Slot:
    """Create a slot for the member, held until a time, or filled if `until` is None."""
    [slot] = add_slots(item, stage, 1, urgent=False)
    if until:
        slot.hold(member.pk, until)
    else:
        slot.fill(member.pk)
    return slot


def close_open(item: Item, stage: str, reason: str | None = None) -> int:
    """Close the item's open slots at a stage (with `reason`, only slots with this reason), and
    return their number."""
    slots = Slot.objects.of_item(item).at_stage(stage)
    if reason is not None:
        slots = slots.filter(reason=reason)
    return slots.close_open()
