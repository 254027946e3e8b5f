"""Lock, load, check and fill the slot that a member works on, and store the member's cursor.

The checks compare what a page sent with the database; each raises the error that the person sees.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection

from annotation.db import sql
from annotation.errors import Refused, Stale
from annotation.items.diffing import difference
from annotation.labelling import blind_names, pair_order, slots, submissions, work_order
from annotation.labelling.models.slots import FILL_SQL, Hold
from annotation.labelling.submissions import Submission, SubmissionToken
from annotation.models import Diff, Event, Item, Label, Membership, Revision, Slot, Stage
from annotation.tasktypes import TaskType

# By so many items, on average, a stored cursor lags behind; in random order by fewer, since some
# searches look at a few slots only.
CURSOR_STRIDE, RANDOM_STRIDE = 32, 8
MAX_POSITION = 2**31 - 1


@dataclass(frozen=True)
class CursorState:
    """The position that a member, whose row is locked, has reached in a stage.

    The member started after the position `start`, and goes round: from there to the last position,
    and then from the first one to `start`. In random order `labelled` has the id and the cluster of
    the item that the member labelled last.
    """

    priority: int = -32768
    position: int = -1
    start: int = -1
    nothing_until: datetime | None = None
    labelled: tuple[int, str] | None = None

    @property
    def last(self) -> int:
        """The last position of the part in which the member is."""
        return self.start if self.position < self.start else MAX_POSITION

    @property
    def wrap_to(self) -> int:
        """The last position of the part that follows; -1 if none does."""
        return -1 if self.position < self.start else self.start


def lock_member(member: Membership, stage: str = Stage.LABEL) -> CursorState:
    """Lock the member's row, so that the member's requests are served one by one; return the
    member's cursor of the stage, with what they labelled last.

    This is a separate statement: combined with the search for a slot, its snapshot would be older
    than the lock. If the cursor moves while this waits for the lock, its old value is read, which
    costs a few extra steps.
    """
    locked = "FOR NO KEY UPDATE OF m" if connection.features.has_select_for_update else ""
    of_last, last = "NULL, NULL", ""
    if stage == Stage.LABEL and member.project.order == work_order.RANDOM:
        of_last, last = "last.id, last.cluster", _LAST_LABELLED
    found = sql.fetch_rows(
        f"""
        SELECT c.priority, c.position, c.nothing_until, {of_last} FROM annotation_membership m
        LEFT JOIN annotation_cursor c ON c.member_id = m.id AND c.stage = %s {last}
        WHERE m.id = %s {locked}
        """,
        [stage, member.pk],
    )
    priority, position, until, *labelled = found[0] if found else (None,) * 5
    turn = build_turn(member, priority, position, sql.parse_time(until))
    return turn if labelled[0] is None else replace(turn, labelled=tuple(labelled))


# In the order of an index: otherwise all labels of the member would be read.
_LAST_LABELLED = """LEFT JOIN annotation_item last ON last.id = (
          SELECT l.item_id FROM annotation_label l
          WHERE l.member_id = m.id AND l.stage = 'label' AND l.current
          ORDER BY l.created_at DESC LIMIT 1)"""


def build_turn(
    member: Membership,
    priority: int | None = None,
    position: int | None = None,
    nothing_until: datetime | None = None,
) -> CursorState:
    """Return the state for a stored cursor; without one, that of a member who begins."""
    start = work_order.start_position(member.project, member.pk)
    if priority is not None and position is not None:
        return CursorState(priority, position, start, nothing_until)
    # What is urgent is found among the returned slots, so who starts anywhere misses nothing.
    return CursorState() if start < 0 else CursorState(0, start, start)


def lock_member_and_item(member: Membership, slot_id: int) -> None:
    """Lock the member's row and then the item of the slot, so that labels and corrections of it
    take turns.

    The member's row is locked before the join that waits for the lock of the item's row.
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


def advance_cursor(member: Membership, stage: str, turn: CursorState, slot: Slot) -> None:
    """Store the position of this slot as the start of the member's next searches, at times.

    The cursor is not stored after each label: a search skips the few slots in between, which are no
    longer open or are the member's own.
    """
    priority, position = slot.priority, slot.position
    is_near = 0 <= position - turn.position < CURSOR_STRIDE or (
        # Positions in random order are far from each other.
        member.project.order == work_order.RANDOM
        and turn.position < position
        and position % RANDOM_STRIDE
    )
    if priority == turn.priority and is_near:
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


def record_empty_search(member: Membership, stage: str, turn: CursorState, until: datetime) -> None:
    """Record that a full search found nothing, so that it is not repeated on each request."""
    sql.execute_change(
        """
        INSERT INTO annotation_cursor (member_id, stage, priority, position, nothing_until)
        VALUES (%s, %s, %s, %s, %s)
        ON CONFLICT (member_id, stage) DO UPDATE SET nothing_until = excluded.nothing_until
        """,
        [member.pk, stage, turn.priority, turn.position, sql.to_database_time(until)],
    )


def hold_slot(slot_id: int, hold: Hold) -> tuple[Slot, Revision]:
    """Let a member hold the slot, which must be locked; returns it with the revision to show."""
    Slot.objects.hold(slot_id, hold)
    return load_slot(slot_id)


def store_first_label(slot: Slot, label: Label, event: Event) -> bool:
    """Fill the slot with the member's first label of the item, and store the label and the event.

    Also counts the label in `Membership.labelled`. Returns False, and stores nothing, if the slot
    belongs to somebody else.
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
    """Update `Membership.labelled`, in the transaction that has locked the member's row."""
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
_DIFF = ("id", "revision_id", "algorithm", "segments", "edit_size", "place", "pinned")


LOAD_PARAMETERS = {"algorithm": difference.ALGORITHM}


def _columns(table: str, names: tuple[str, ...]) -> str:
    return ", ".join(f"{table}.{name}" for name in names)


@dataclass(frozen=True)
class Claim:
    """The slot that a label is meant for, the item's current revision, and related rows.

    sent, label, guidelines: the ids of the label already sent from the same page, of the member's
    current label, and of the guidelines of when the label was given; None if there is none.
    informed: True if the member saw others' labels of the item. drafted: True if the member has a
    draft of it.
    `submission` is the digest of the page's key, `stage` the stage of the label.
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


def load_slot(slot_id: int) -> tuple[Slot, Revision]:
    """Load the slot with its item, and the item's current revision with its diff, if the diff is
    stored."""
    statement = f"{select_slots_sql('annotation_slot')} WHERE s.id = %(slot)s"
    [row] = sql.fetch_rows(statement, LOAD_PARAMETERS | {"slot": slot_id})
    return parse_row(row)


def select_slots_sql(slots: str, *more: str) -> str:
    """Build the SELECT whose rows `parse_row` reads: the slots in a table, and the columns `more`
    of the same table."""
    more = (_columns("d", _DIFF), *(f"s.{name}" for name in more))
    return _select_sql(_REVISION, ", " + ", ".join(more), slots, join=_DIFF_JOIN)


def parse_row(row: Sequence[Any]) -> tuple[Slot, Revision]:
    """Parse a row of `select_slots_sql`, which was executed with `LOAD_PARAMETERS`."""
    slot, revision, diff = _split_row(row, _REVISION, _DIFF)
    if diff[0] is not None:
        revision.stored_diff = Diff.from_db("default", _DIFF, diff)
    return slot, revision


def load_claim(
    member: Membership, slot_id: int, key: str, given_at: datetime, *, blind: bool
) -> Claim:
    """Load the claim of a label with this key; the item must be locked. `label` is looked up at the
    slot's stage or, if `blind`, at the blind stage. The revision is loaded without its texts."""
    submission = submissions.digest_token(key)
    words = {"slot": slot_id, "member": member.pk, "submission": submission}
    words["given_at"] = sql.to_database_time(given_at)
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


# The diff that is shown: the pinned one, otherwise that of the current algorithm.
_DIFF_JOIN = """ LEFT JOIN annotation_diff d ON d.id = (
    SELECT id FROM annotation_diff
    WHERE revision_id = r.id AND (pinned OR algorithm = %(algorithm)s)
    ORDER BY pinned DESC LIMIT 1)"""
_LABEL_COLUMNS_SQL = """,
    (SELECT id FROM annotation_label WHERE submission = %(submission)s),
    (SELECT id FROM annotation_label WHERE member_id = %(member)s AND item_id = i.id
       AND stage = {stage} AND current),
    (SELECT id FROM annotation_guidelinesversion WHERE project_id = i.project_id
       AND created_at <= %(given_at)s ORDER BY number DESC LIMIT 1),
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
    """Split a row of `_select_sql` into the slot with its item, the revision, and the further
    values."""
    of_item, of_revision = len(_SLOT), len(_SLOT) + len(_ITEM)
    behind = of_revision + len(names)
    slot = Slot.from_db("default", _SLOT, row[:of_item])
    item = Item.from_db("default", _ITEM, _convert_values(_ITEM, row[of_item:of_revision]))
    revision = Revision.from_db("default", names, _convert_values(names, row[of_revision:behind]))
    slot.item = revision.item = item
    return slot, revision, _convert_values(more, row[behind:])


def _convert_values(names: tuple[str, ...], values: Sequence[Any]) -> list[Any]:
    """Parse the JSON and times among the values, in the forms that the two databases return."""
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


def lock_shown(
    member: Membership, made: SubmissionToken, shown: Submission
) -> tuple[Slot, Revision]:
    """Lock the member and the item; return the slot that the key was issued for, and the item's
    current revision.

    Raises `Refused` if the slot is not for labelling or the page showed another item.
    """
    lock_member_and_item(member, made.slot_id)
    slot, revision = load_slot(made.slot_id)
    check_stage(slot, Stage.LABEL)
    check_item(member, slot.item, made, shown)
    return slot, revision


def check_stage(slot: Slot, stage: str) -> None:
    if slot.stage not in slots.related_stages(stage):
        raise Refused("This page belongs to another member. Reload the page.")


def check_item(member: Membership, item: Item, made: SubmissionToken, shown: Submission) -> None:
    if item.project_id != member.project_id or not blind_names.matches_name(
        shown.item_key, member, item, blind=made.blind
    ):
        raise Refused("The page showed another item. Reload the page.")
    item.project = member.project  # saves a query
    if item.deleted_at:
        raise Refused("This item was removed from the project. Continue with the next one.")


def check_latest(claim: Claim, given_at: datetime | None) -> None:
    """Raise `Refused` if the member's current label was stored after this one was given."""
    if given_at is None or claim.label is None:
        return
    if Label.objects.filter(pk=claim.label, created_at__gt=given_at).exists():
        raise Refused("You have labelled this item again since, on another page. That label stays.")


def check_revision(made: SubmissionToken, shown: Submission) -> None:
    """Raise `Refused` if the key was issued for a revision other than the revision sent as
    shown."""
    if made.revision != shown.revision:
        raise Refused("The page showed another item. Reload the page.")


def check_order(task: TaskType, member: Membership, slot: Slot, made: SubmissionToken) -> None:
    """Raise `Stale` if the page showed the two texts of a pair in another order than the one drawn
    for this item and member."""
    if made.first != pair_order.draw_first(task, member, slot):
        raise Stale("The page showed the texts in another order. Read them again and label again.")


def check_fresh(item: Item, made: SubmissionToken, shown: Submission) -> None:
    check_revision(made, shown)
    if item.revision_number != shown.revision:
        raise Stale("The texts have been corrected. Read the new ones and label again.")
