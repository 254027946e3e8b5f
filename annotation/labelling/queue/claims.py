"""A member's turn with one slot: locked, read, checked against what the page sent, held, filled.

And how far they have come through a stage. What a page sends is checked here: each check raises
what the person is told.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from annotation.db import sql
from annotation.errors import Refused, Stale
from annotation.items.diffing import difference
from annotation.labelling import blind_names, slots, submissions
from annotation.labelling.models.slots import FILL_SQL, Hold
from annotation.labelling.submissions import ShownItem, SubmissionToken
from annotation.models import Diff, Event, Item, Label, Membership, Revision, Slot, Stage

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
    return load_slot(slot_id)


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


_SLOT = ("id", "project_id", "item_id", "stage", "number", "priority", "position", "state",
         "member_id", "returned", "ahead", "reserved_for_id", "reason")  # fmt: skip
_ITEM = ("id", "project_id", "key", "position", "category", "ability", "source_ability", "cluster",
         "origin", "purpose", "fields", "flags", "revision_number", "first_reply_at",
         "deleted_at")  # fmt: skip
_REVISION = ("id", "item_id", "number", "texts", "digest")
_TEXTLESS = ("id", "item_id", "number", "digest")
_DIFF = ("id", "revision_id", "algorithm", "segments", "edit_size", "place")


LOAD_PARAMETERS = {"algorithm": difference.ALGORITHM}


def _columns(table: str, names: tuple[str, ...]) -> str:
    return ", ".join(f"{table}.{name}" for name in names)


@dataclass(frozen=True)
class Claim:
    """The slot that a label was taken for, the item's current revision, and what is there by now.

    Ids of the label that the same page sent, of the member's label in force, and of the
    guidelines as they are; whether the member saw what others said of the item, and whether
    they have a draft of it. `submission` is the digest of the page's key, `stage` that of the
    label.
    """

    slot: Slot
    revision: Revision
    stage: Stage
    submission: str
    sent: int | None
    label: int | None
    guidelines: int | None
    informed: bool
    drafted: bool

    @property
    def item(self) -> Item:
        return self.slot.item


def load_slot(slot_id: int) -> tuple[Slot, Revision]:
    """The slot with its item, and the item's current revision with its diff, if that is stored."""
    statement = f"{select_slots_sql('annotation_slot')} WHERE s.id = %(slot)s"
    [row] = sql.fetch_rows(statement, LOAD_PARAMETERS | {"slot": slot_id})
    return parse_row(row)


def select_slots_sql(slots: str, *more: str) -> str:
    """A statement's end: what `parse_row` reads, of the slots of a table, and more columns of
    it."""
    more = (_columns("d", _DIFF), *(f"s.{name}" for name in more))
    return _select_sql(_REVISION, ", " + ", ".join(more), slots, join=_DIFF_JOIN)


def parse_row(row: Sequence[Any]) -> tuple[Slot, Revision]:
    """A row of `select_slots_sql`, which is told `LOAD_PARAMETERS`."""
    slot, revision, diff = _split_row(row, _REVISION, _DIFF)
    if diff[0] is not None:
        revision.stored_diff = Diff.from_db("default", _DIFF, diff)
    return slot, revision


def load_claim(member: Membership, slot_id: int, key: str, *, blind: bool) -> Claim:
    """What a label with this key is of; its item is locked. What the member said before is at the
    slot's stage or, if `blind`, at that one. Of the revision the texts are left out."""
    submission = submissions.digest_token(key)
    words = {"slot": slot_id, "member": member.pk, "submission": submission}
    [row] = sql.fetch_rows(_BLIND_CLAIM_SQL if blind else _WORK_CLAIM_SQL, words)
    slot, revision, before = _split_row(row, _TEXTLESS, ("",) * 5)
    sent, label, guidelines, informed, drafted = before
    return Claim(
        slot=slot,
        revision=revision,
        stage=Stage.BLIND if blind else Stage(slot.stage),
        submission=submission,
        sent=sent,
        label=label,
        guidelines=guidelines,
        informed=bool(informed),
        drafted=bool(drafted),
    )


def _select_sql(of_revision: tuple[str, ...], more: str, slots: str, join: str = "") -> str:
    return (
        f"SELECT {_columns('s', _SLOT)}, {_columns('i', _ITEM)}, {_columns('r', of_revision)}"
        f"{more} FROM {slots} s JOIN annotation_item i ON i.id = s.item_id"
        f" JOIN annotation_revision r ON r.item_id = i.id AND r.number = i.revision_number{join}"
    )


_DIFF_JOIN = " LEFT JOIN annotation_diff d ON d.revision_id = r.id AND d.algorithm = %(algorithm)s"
_LABEL_COLUMNS_SQL = """,
    (SELECT id FROM annotation_label WHERE submission = %(submission)s),
    (SELECT id FROM annotation_label WHERE member_id = %(member)s AND item_id = i.id
       AND stage = {stage} AND current),
    (SELECT id FROM annotation_guidelinesversion WHERE project_id = i.project_id
       ORDER BY number DESC LIMIT 1),
    EXISTS (SELECT 1 FROM annotation_mark WHERE member_id = %(member)s AND item_id = i.id
       AND kind = 'seen' AND ended_at IS NULL),
    EXISTS (SELECT 1 FROM annotation_draft WHERE member_id = %(member)s AND item_id = i.id)"""
_WORK_CLAIM_SQL, _BLIND_CLAIM_SQL = (
    _select_sql(_TEXTLESS, _LABEL_COLUMNS_SQL.format(stage=stage), "annotation_slot")
    + " WHERE s.id = %(slot)s"
    for stage in ("s.stage", "'blind'")
)


def _split_row(
    row: Sequence[Any], names: tuple[str, ...], more: tuple[str, ...]
) -> tuple[Slot, Revision, list[Any]]:
    """A row of `_select_sql`: the slot with its item, the revision, and the values behind them."""
    of_item, of_revision = len(_SLOT), len(_SLOT) + len(_ITEM)
    behind = of_revision + len(names)
    slot = Slot.from_db("default", _SLOT, row[:of_item])
    item = Item.from_db("default", _ITEM, _convert_values(_ITEM, row[of_item:of_revision]))
    revision = Revision.from_db("default", names, _convert_values(names, row[of_revision:behind]))
    slot.item = revision.item = item
    return slot, revision, _convert_values(more, row[behind:])


def _convert_values(names: tuple[str, ...], values: Sequence[Any]) -> list[Any]:
    """The values with their JSON and their times read, as they come from both databases."""
    return [
        _CONVERTERS[name](value) if name in _CONVERTERS and value is not None else value
        for name, value in zip(names, values, strict=True)
    ]


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "fields": json.loads,
    "flags": json.loads,
    "texts": json.loads,
    "segments": json.loads,
    "first_reply_at": sql.parse_time,
    "deleted_at": sql.parse_time,
}


def read_own_token(member: Membership, shown: ShownItem) -> SubmissionToken:
    """What the page's key was made for."""
    read = submissions.read_token(shown.key)
    if read.member_id != member.pk:
        raise Refused("This page belongs to another user. Reload the page.")
    return read


def lock_shown(
    member: Membership, made: SubmissionToken, shown: ShownItem
) -> tuple[Slot, Revision]:
    """The workbench's slot that the key was made for and the item's current texts; member and
    item are locked."""
    lock_member_and_item(member, made.slot_id)
    slot, revision = load_slot(made.slot_id)
    check_stage(slot, Stage.LABEL)
    check_item(member, slot.item, shown)
    return slot, revision


def check_stage(slot: Slot, stage: str) -> None:
    if slot.stage not in slots.related_stages(stage):
        raise Refused("This page belongs to another member. Reload the page.")


def check_item(member: Membership, item: Item, shown: ShownItem) -> None:
    if item.project_id != member.project_id or not blind_names.matches_name(
        shown.item_key, member, item
    ):
        raise Refused("The page showed another item. Reload the page.")
    item.project = member.project  # so that nobody reads it again
    if item.deleted_at:
        raise Refused("This item was removed from the project. Continue with the next one.")


def check_revision(made: SubmissionToken, shown: ShownItem) -> None:
    """The key was made with the revision that is said to have been shown, so there is one."""
    if made.revision != shown.revision:
        raise Refused("The page showed another item. Reload the page.")


def check_fresh(item: Item, made: SubmissionToken, shown: ShownItem) -> None:
    check_revision(made, shown)
    if item.revision_number != shown.revision:
        raise Stale("The texts have been corrected. Read the new ones and label again.")
