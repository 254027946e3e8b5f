"""Slots that are given to a member and filled by them, and how many labels that makes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from annotation import prepared
from annotation.models import Event, Label, Membership, Revision, Slot
from annotation.picking import showing, sql


@dataclass(frozen=True)
class Hold:
    """How a slot is to be held: until when, and whether as the one after the current."""

    until: datetime
    ahead: bool = False


def words(member: Membership, held: Hold) -> dict[str, Any]:
    """What a statement with `HELD` in it has to be told."""
    return {"member": member.pk, "until": sql.moment(held.until), "ahead": held.ahead}


def hold(slot_id: int, member: Membership, held: Hold) -> tuple[Slot, Revision]:
    """Give the slot, which is locked, to the member until a time; and read what is shown of it."""
    holding = words(member, held) | {"slot": slot_id}
    sql.change(f"UPDATE annotation_slot SET {HELD} WHERE id = %(slot)s", holding)
    return showing.shown(slot_id)


def fill(slot_id: int, member: Membership) -> bool:
    """Fill the slot if it is the member's, held or filled before; False if it went to another."""
    return bool(sql.change(_FILL, [False, slot_id, member.pk]))


def fill_first(slot: Slot, label: Label, event: Event) -> bool:
    """Fill the slot with the first label that its member gives the item, and store that.

    It is counted among the member's, and the event is stored beside it. False, and nothing is
    stored, if the slot went to another.
    """
    member = label.member
    label.slot, label.counted = slot, True
    if connection.vendor != "postgresql":
        if not fill(slot.pk, member):
            return False
        count_label(member, 1)
        prepared.insert(label, event)
        return True
    given = [False, slot.pk, member.pk, 1, member.pk]
    stored = prepared.insert_if(_FILL_AND_COUNT, given, label, event)
    member.labelled += stored
    return stored


def count_label(member: Membership, change: int) -> None:
    """Keep `Membership.labelled`, in the transaction that holds the member's row anyway."""
    sql.change(_COUNT, [change, member.pk])
    member.labelled += change


HELD = "state = 'held', member_id = %(member)s, held_until = %(until)s, ahead = %(ahead)s"
_COUNT = "UPDATE annotation_membership SET labelled = labelled + %s WHERE id = %s"
# COALESCE: with statistics from before anybody had a slot, a planner would else take the index of
# slots by member for the smallest and go through all that this one ever had.
_FILL = """UPDATE annotation_slot SET state = 'filled', held_until = NULL, ahead = %s
    WHERE id = %s AND COALESCE(member_id, 0) = %s"""
_FILL_AND_COUNT = f"""filled AS ({_FILL} RETURNING id),
    changed AS ({_COUNT} AND EXISTS (SELECT FROM filled) RETURNING id)"""
