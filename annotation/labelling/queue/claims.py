"""Slots that are given to a member and filled by them, and how many labels that makes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from annotation.db import prepared_statements, sql
from annotation.labelling.queue import load
from annotation.models import Event, Label, Membership, Revision, Slot


@dataclass(frozen=True)
class HoldTerms:
    """How a slot is to be held: until when, and whether as the one after the current."""

    until: datetime
    ahead: bool = False


def hold_parameters(member: Membership, held: HoldTerms) -> dict[str, Any]:
    """What a statement with `SET_HELD_SQL` in it has to be told."""
    return {"member": member.pk, "until": sql.to_database_time(held.until), "ahead": held.ahead}


def hold_slot(slot_id: int, member: Membership, held: HoldTerms) -> tuple[Slot, Revision]:
    """Give the slot, which is locked, to the member until a time; and read what is shown of it."""
    holding = hold_parameters(member, held) | {"slot": slot_id}
    sql.execute_change(f"UPDATE annotation_slot SET {SET_HELD_SQL} WHERE id = %(slot)s", holding)
    return load.load_slot(slot_id)


def fill_slot(slot_id: int, member: Membership) -> bool:
    """Fill the slot if it is the member's, held or filled before; False if it went to another."""
    return bool(sql.execute_change(_FILL_SQL, [False, slot_id, member.pk]))


def store_first_label(slot: Slot, label: Label, event: Event) -> bool:
    """Fill the slot with the first label that its member gives the item, and store that.

    It is counted among the member's, and the event is stored beside it. False, and nothing is
    stored, if the slot went to another.
    """
    member = label.member
    label.slot, label.counted = slot, True
    if connection.vendor != "postgresql":
        if not fill_slot(slot.pk, member):
            return False
        adjust_label_count(member, 1)
        prepared_statements.insert_rows(label, event)
        return True
    given = [False, slot.pk, member.pk, 1, member.pk]
    stored = prepared_statements.insert_if_changed(_FILL_AND_COUNT_SQL, given, label, event)
    member.labelled += stored
    return stored


def adjust_label_count(member: Membership, change: int) -> None:
    """Keep `Membership.labelled`, in the transaction that holds the member's row anyway."""
    sql.execute_change(_COUNT_SQL, [change, member.pk])
    member.labelled += change


SET_HELD_SQL = "state = 'held', member_id = %(member)s, held_until = %(until)s, ahead = %(ahead)s"
_COUNT_SQL = "UPDATE annotation_membership SET labelled = labelled + %s WHERE id = %s"
# COALESCE: with statistics from before anybody had a slot, a planner would else take the index of
# slots by member for the smallest and go through all that this one ever had.
_FILL_SQL = """UPDATE annotation_slot SET state = 'filled', held_until = NULL, ahead = %s
    WHERE id = %s AND COALESCE(member_id, 0) = %s"""
_FILL_AND_COUNT_SQL = f"""filled AS ({_FILL_SQL} RETURNING id),
    changed AS ({_COUNT_SQL} AND EXISTS (SELECT FROM filled) RETURNING id)"""
