"""Slots that are given to a member and filled by them, and how many labels that makes."""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from annotation.models import Membership
from annotation.picking import sql


@dataclass(frozen=True)
class Hold:
    """How a slot is to be held: until when, and whether as the one after the current."""

    until: datetime
    ahead: bool = False


def hold(slot_id: int, member: Membership, held: Hold) -> int:
    """Give the slot, which is locked, to the member until a time; its id again."""
    sql.change(
        "UPDATE annotation_slot SET state = 'held', member_id = %s, held_until = %s, ahead = %s"
        " WHERE id = %s",
        [member.pk, sql.moment(held.until), held.ahead, slot_id],
    )
    return slot_id


def fill(slot_id: int, member: Membership, *, counting: int = 0) -> bool:
    """Fill the slot if it is the member's, held or filled before; False if it went to another.

    `counting` is by how much the member's labels in force change with it, be it filled or not.
    """
    filling, values = _FILL, [False, slot_id, member.pk]
    if counting and connection.vendor == "postgresql":
        filling, values = f"WITH counted AS ({_COUNT}) {_FILL}", [counting, member.pk, *values]
        member.labelled += counting
    elif counting:
        count_label(member, counting)
    return bool(sql.change(filling, values))


def count_label(member: Membership, change: int) -> None:
    """Keep `Membership.labelled`, in the transaction that holds the member's row anyway."""
    sql.change(_COUNT, [change, member.pk])
    member.labelled += change


_COUNT = "UPDATE annotation_membership SET labelled = labelled + %s WHERE id = %s"
_FILL = """UPDATE annotation_slot SET state = 'filled', held_until = NULL, ahead = %s
    WHERE id = %s AND member_id = %s"""
