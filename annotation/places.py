"""Which slot is whose: taking, filling and holding again, inside the queue's transactions."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from annotation.models import Cursor, Item, Label, Membership, Slot
from annotation.querysets import SlotQuerySet


def until(member: Membership, now: datetime) -> datetime:
    """Until when a slot that the member takes now stays theirs."""
    return now + timedelta(minutes=member.project.hold_minutes)


def free(member: Membership, stage: str, now: datetime) -> Slot | None:
    """The next slot that is free for the member, locked; passes over those that are locked."""
    cursor, _ = Cursor.objects.get_or_create(member=member, stage=stage)
    for candidates in _searches(member.project_id, stage, cursor, now):
        slot = (
            candidates.untouched_by(member.pk)
            .of_live_items()
            .in_order()
            .select_related("item")
            .locked(passing=True)
            .first()
        )
        if slot:
            if slot.state == Slot.State.OPEN and not slot.returned:
                cursor.move(slot.priority, slot.position)
            return slot
    return None


def _searches(project_id: int, stage: str, cursor: Cursor, now: datetime) -> Iterator[SlotQuerySet]:
    """Where to look for a slot, best first; each is one probe of its own partial index."""
    slots = Slot.objects.at(project_id, stage)
    yield slots.returned()
    yield slots.expired(now)
    yield slots.fresh().filter(priority=cursor.priority, position__gt=cursor.position)
    yield slots.fresh().filter(priority__gt=cursor.priority)
    # Slots behind the cursor: locked when it passed by, or added later with a higher priority.
    yield slots.fresh()


def to_fill(member: Membership, shown: Slot, now: datetime) -> Slot | None:
    """The slot that the member's label fills: the shown one, another of theirs, or a free one."""
    if shown.member_id == member.pk:
        return shown
    slots = Slot.objects.beside(shown)
    mine = slots.filter(member=member).locked().first()
    return mine or slots.free(now).locked(passing=True).first()


def hold_again(member: Membership, withdrawn: Label, item: Item, now: datetime) -> Slot | None:
    """Hold a slot of the withdrawn label's item, and give back what else the member holds.

    If none is free the slot is returned as it is, somebody else's. If the item is deleted its
    slot is given back, for whoever comes when it is restored, and there is none to return.
    """
    give_back_others(member, withdrawn.stage, item)
    slots = Slot.objects.at(member.project_id, withdrawn.stage).filter(item=item)
    last_shown = withdrawn.slot or slots.in_order().first()
    if last_shown is None:
        return None
    slot = to_fill(member, last_shown, now)
    if item.deleted_at:
        if slot and slot.member_id == member.pk:
            slot.give_back()
        return None
    if slot:
        slot.hold(member.pk, until(member, now))
    slot = slot or last_shown
    slot.item = item
    return slot


def give_back_others(member: Membership, stage: str, item: Item) -> None:
    """Give back what the member holds of other items, so that they hold this one alone."""
    held = Slot.objects.at(member.project_id, stage).held_by(member.pk)
    for slot in held.of_others_than(item).locked():
        slot.give_back()
