"""A member's turn: taken one after the other, and how far they have come through a stage.

A slot that is given to them, and filled with their first label.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from annotation.db import sql
from annotation.labelling.models.slots import FILL_SQL, Hold
from annotation.labelling.queue import load
from annotation.models import Event, Label, Membership, Revision, Slot, Stage

# How far a cursor may lag behind, in positions of items.
CURSOR_STRIDE = 32


@dataclass(frozen=True)
class CursorState:
    """How far a member, whose row is locked, has come through a stage."""

    priority: int = -32768
    position: int = -1
    nothing_until: datetime | None = None


def lock_member(member: Membership, stage: str = Stage.LABEL) -> CursorState:
    """The member's presses are served one after the other, each with a snapshot of its own; how
    far they have come through the stage.

    A statement of its own: in one with the pick the snapshot would be older than the lock. A
    cursor that moved while the lock was waited for is read as it was, which costs a few steps.
    """
    locked = "FOR NO KEY UPDATE OF m" if connection.features.has_select_for_update else ""
    found = sql.fetch_rows(
        f"""
        SELECT c.priority, c.position, c.nothing_until FROM annotation_membership m
        LEFT JOIN annotation_cursor c ON c.member_id = m.id AND c.stage = %s
        WHERE m.id = %s {locked}
        """,
        [stage, member.pk],
    )
    priority, position, until = found[0] if found else (None, None, None)
    return (
        CursorState()
        if priority is None
        else CursorState(priority, position, sql.parse_time(until))
    )


def lock_member_and_item(member: Membership, slot_id: int) -> None:
    """`lock_member`, and then let whoever labels or corrects the item of the slot take turns.

    The member's row is locked before the join that the lock of the item's row waits for.
    """
    if connection.features.has_select_for_update:
        sql.fetch_rows(
            """
            WITH m AS MATERIALIZED (
              SELECT id FROM annotation_membership WHERE id = %s FOR NO KEY UPDATE)
            SELECT i.id FROM m CROSS JOIN annotation_slot s
            JOIN annotation_item i ON i.id = s.item_id
            WHERE s.id = %s FOR NO KEY UPDATE OF i
            """,
            [member.pk, slot_id],
        )


def advance_cursor(
    member: Membership, stage: str, turn: CursorState, priority: int, position: int
) -> None:
    """Let the member's next searches begin after this place, once it is some way ahead.

    Not after each: a search steps over the few slots since, which are not open any more or the
    member's own.
    """
    if priority == turn.priority and position < turn.position + CURSOR_STRIDE:
        return
    sql.execute_change(
        """
        INSERT INTO annotation_cursor (member_id, stage, priority, position)
        VALUES (%s, %s, %s, %s)
        ON CONFLICT (member_id, stage)
        DO UPDATE SET priority = excluded.priority, position = excluded.position
        """,
        [member.pk, stage, priority, position],
    )


def record_empty_search(member: Membership, stage: str, until: datetime) -> None:
    """Remember that a search of everything found nothing, so that it is not made on each ask."""
    sql.execute_change(
        """
        INSERT INTO annotation_cursor (member_id, stage, priority, position, nothing_until)
        VALUES (%s, %s, -32768, -1, %s)
        ON CONFLICT (member_id, stage) DO UPDATE SET nothing_until = excluded.nothing_until
        """,
        [member.pk, stage, sql.to_database_time(until)],
    )


def hold_slot(slot_id: int, hold: Hold) -> tuple[Slot, Revision]:
    """Give the slot, which is locked, to a member, and read what is shown of it."""
    Slot.objects.hold(slot_id, hold)
    return load.load_slot(slot_id)


def store_first_label(slot: Slot, label: Label, event: Event) -> bool:
    """Fill the slot with the first label that its member gives the item, and store that.

    It is counted among the member's, and the event is stored beside it. False, and nothing is
    stored, if the slot went to another.
    """
    member = label.member
    label.slot, label.counted = slot, True
    if connection.vendor != "postgresql":
        if not Slot.objects.fill(slot.pk, member.pk):
            return False
        adjust_label_count(member, 1)
        sql.insert_rows(label, event)
        return True
    given = [False, slot.pk, member.pk, 1, member.pk]
    stored = sql.insert_if_changed(_FILL_AND_COUNT_SQL, given, label, event)
    member.labelled += stored
    return stored


def adjust_label_count(member: Membership, change: int) -> None:
    """Keep `Membership.labelled`, in the transaction that holds the member's row anyway."""
    sql.execute_change(_COUNT_SQL, [change, member.pk])
    member.labelled += change


_COUNT_SQL = "UPDATE annotation_membership SET labelled = labelled + %s WHERE id = %s"
_FILL_AND_COUNT_SQL = f"""filled AS ({FILL_SQL} RETURNING id),
    changed AS ({_COUNT_SQL} AND EXISTS (SELECT FROM filled) RETURNING id)"""
