"""The queue's hot path in SQL: whose turn it is, which slot is next, and all that an offer shows.

Building these queries by hand on each call costs more than the database needs to answer them, so
they stand here as text. Conditions of partial indexes are literal: a plan made for a placeholder
would not use them. Both databases read the same statements; SQLite has no row locks and needs
none, since its write transactions come one after the other (`writing.transact`).
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from annotation import diffing, prepared
from annotation.models import Diff, Item, Membership, Revision, Slot, Stage

_SLOT = ("id", "project_id", "item_id", "stage", "number", "priority", "position", "state",
         "member_id", "returned", "ahead", "reserved_for_id", "reason")  # fmt: skip
_ITEM = ("id", "project_id", "key", "position", "category", "ability", "source_ability", "cluster",
         "origin", "purpose", "fields", "flags", "revision_number", "first_reply_at",
         "deleted_at")  # fmt: skip
_REVISION = ("id", "item_id", "number", "texts", "digest")
_DIFF = ("id", "revision_id", "algorithm", "segments", "edit_size", "place")
# How far a cursor may lag behind, in positions of items.
STRIDE = 32


def _columns(table: str, names: tuple[str, ...]) -> str:
    return ", ".join(f"{table}.{name}" for name in names)


@dataclass(frozen=True)
class Turn:
    """How far a member, whose row is locked, has come through a stage."""

    priority: int = -32768
    position: int = -1
    nothing_until: datetime | None = None


@dataclass(frozen=True)
class Hold:
    """How a slot is to be held: until when, and whether as the one after the current."""

    until: datetime
    ahead: bool = False


@dataclass(frozen=True)
class Held:
    """A slot that the member holds; `ahead` if it is the one after the current."""

    slot_id: int
    stage: str
    ahead: bool


@dataclass(frozen=True)
class Before:
    """Ids of the label that the same page sent, of the member's label in force, and of the
    guidelines as they are; whether the member saw what others said of the item, and whether
    they have a draft of it."""

    sent: int | None
    label: int | None
    guidelines: int | None
    informed: bool
    drafted: bool


@dataclass(frozen=True)
class Picked:
    """A free slot; `fresh` if nobody had it before, so that the cursor moves on to it."""

    slot_id: int
    fresh: bool
    priority: int
    position: int


def lock(member: Membership, stage: str = Stage.WORK) -> Turn:
    """The member's presses are served one after the other, each with a snapshot of its own; how
    far they have come through the stage.

    A statement of its own: in one with the pick the snapshot would be older than the lock. A
    cursor that moved while the lock was waited for is read as it was, which costs a few steps.
    """
    locked = "FOR NO KEY UPDATE OF m" if connection.features.has_select_for_update else ""
    found = rows(
        f"""
        SELECT c.priority, c.position, c.nothing_until FROM annotation_membership m
        LEFT JOIN annotation_cursor c ON c.member_id = m.id AND c.stage = %s
        WHERE m.id = %s {locked}
        """,
        [stage, member.pk],
    )
    priority, position, until = found[0] if found else (None, None, None)
    return Turn() if priority is None else Turn(priority, position, _time(until))


def held(member: Membership, stages: Iterable[str]) -> list[Held]:
    """What the member holds at the stages, also if its time is over and nobody took it."""
    names = ", ".join(f"'{Stage(stage).value}'" for stage in stages)
    found = rows(
        f"""
        SELECT s.id, s.stage, s.ahead FROM annotation_slot s
        JOIN annotation_item i ON i.id = s.item_id
        WHERE s.member_id = %s AND s.state = 'held' AND s.stage IN ({names})
          AND i.deleted_at IS NULL
        ORDER BY s.ahead, s.held_until, s.id {_locked(passing=False)}
        """,
        [member.pk],
    )
    return [Held(slot_id, stage, bool(ahead)) for slot_id, stage, ahead in found]


def pick(
    member: Membership, stage: str, turn: Turn, now: datetime, hold: Hold | None = None
) -> Picked | None:
    """The next slot that is free for the member, locked and, if asked for, held from now on.

    Passes over those that are locked.

    First what is reserved for them, then what came back or is urgent, then what others let
    expire, then the first fresh one after the cursor: four probes of four partial indexes, of
    which a database reads as many as it needs.
    """
    words = {"member": member.pk, "project": member.project_id, "now": _moment(now)}
    words |= {"priority": turn.priority, "position": turn.position}
    searches = {
        "reserved": "s.reserved_for_id = %(member)s AND s.state = 'open'",
        "returned": f"{_SHARED} AND s.state = 'open' AND {_RETURNED}",
        "expired": "s.project_id = %(project)s AND s.state = 'held' AND s.held_until <= %(now)s"
        " AND (s.reserved_for_id IS NULL OR s.reserved_for_id = %(member)s)",
        "fresh": f"{_SHARED} AND s.state = 'open' AND {_FRESH} "
        "AND (s.priority, s.position) > (%(priority)s, %(position)s)",
    }
    return _first(member, stage, searches, words, hold)


def pick_behind(member: Membership, stage: str, hold: Hold) -> Picked | None:
    """A fresh slot anywhere: one that was locked when the cursor passed it by."""
    words = {"member": member.pk, "project": member.project_id}
    return _first(member, stage, _BEHIND, words, hold)


def is_any_behind(member: Membership, stage: str) -> bool:
    """Whether there is such a slot, be it locked by somebody at this moment."""
    words = {"member": member.pk, "project": member.project_id}
    return _first(member, stage, _BEHIND, words, lock=False) is not None


def hold(slot_id: int, member: Membership, until: datetime, *, ahead: bool) -> None:
    """Give the slot, which is locked, to the member until a time."""
    _change(
        "UPDATE annotation_slot SET state = 'held', member_id = %s, held_until = %s, ahead = %s"
        " WHERE id = %s",
        [member.pk, _moment(until), ahead, slot_id],
    )


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
    return bool(_change(filling, values))


def lock_with_item(member: Membership, slot_id: int) -> None:
    """`lock`, and then let whoever labels or corrects the item of the slot take turns.

    The member's row is locked before the join that the lock of the item's row waits for.
    """
    if connection.features.has_select_for_update:
        rows(
            """
            WITH m AS MATERIALIZED (
              SELECT id FROM annotation_membership WHERE id = %s FOR NO KEY UPDATE)
            SELECT i.id FROM m CROSS JOIN annotation_slot s
            JOIN annotation_item i ON i.id = s.item_id
            WHERE s.id = %s FOR NO KEY UPDATE OF i
            """,
            [member.pk, slot_id],
        )


def count_label(member: Membership, change: int) -> None:
    """Keep `Membership.labelled`, in the transaction that holds the member's row anyway."""
    _change(_COUNT, [change, member.pk])
    member.labelled += change


_COUNT = "UPDATE annotation_membership SET labelled = labelled + %s WHERE id = %s"
_FILL = """UPDATE annotation_slot SET state = 'filled', held_until = NULL, ahead = %s
    WHERE id = %s AND member_id = %s"""


def move_cursor(member: Membership, stage: str, turn: Turn, picked: Picked) -> None:
    """Let the member's next searches begin after this slot, once it is some way ahead.

    Not after each: a search steps over the few slots since, which are not open any more or the
    member's own.
    """
    if picked.priority == turn.priority and picked.position < turn.position + STRIDE:
        return
    _change(
        """
        INSERT INTO annotation_cursor (member_id, stage, priority, position)
        VALUES (%s, %s, %s, %s)
        ON CONFLICT (member_id, stage)
        DO UPDATE SET priority = excluded.priority, position = excluded.position
        """,
        [member.pk, stage, picked.priority, picked.position],
    )


def found_nothing(member: Membership, stage: str, until: datetime) -> None:
    """Remember that a search of everything found nothing, so that it is not made on each ask."""
    _change(
        """
        INSERT INTO annotation_cursor (member_id, stage, priority, position, nothing_until)
        VALUES (%s, %s, -32768, -1, %s)
        ON CONFLICT (member_id, stage) DO UPDATE SET nothing_until = excluded.nothing_until
        """,
        [member.pk, stage, _moment(until)],
    )


def shown(slot_id: int) -> tuple[Slot, Revision]:
    """The slot with its item, and the item's current revision with its diff, if that is stored."""
    words = {"slot": slot_id, "algorithm": diffing.ALGORITHM}
    [row] = rows(_SHOWN.format(more=", " + _columns("d", _DIFF), join=_ITS_DIFF), words)
    slot, revision, diff = _parted(row, _DIFF)
    if diff[0] is not None:
        revision.stored_diff = Diff.from_db("default", _DIFF, diff)
    return slot, revision


def claimed(
    member: Membership, slot_id: int, *, blind: bool, submission: str
) -> tuple[Slot, Revision, Before]:
    """The slot with its item, which is locked, and its current revision; and what the member
    said before of the item at the slot's stage or, if `blind`, at that one."""
    words = {"slot": slot_id, "member": member.pk, "submission": submission}
    [row] = rows(_SHOWN.format(more=_BLIND_BEFORE if blind else _WORK_BEFORE, join=""), words)
    slot, revision, (sent, label, guidelines, informed, drafted) = _parted(row, ("",) * 5)
    return slot, revision, Before(sent, label, guidelines, bool(informed), bool(drafted))


_SHOWN = (
    f"SELECT {_columns('s', _SLOT)}, {_columns('i', _ITEM)}, {_columns('r', _REVISION)}"
    "{more} FROM annotation_slot s"
    " JOIN annotation_item i ON i.id = s.item_id"
    " JOIN annotation_revision r ON r.item_id = i.id AND r.number = i.revision_number"
    "{join} WHERE s.id = %(slot)s"
)
_ITS_DIFF = " LEFT JOIN annotation_diff d ON d.revision_id = r.id AND d.algorithm = %(algorithm)s"
_BEFORE = """,
    (SELECT id FROM annotation_label WHERE submission = %(submission)s),
    (SELECT id FROM annotation_label WHERE member_id = %(member)s AND item_id = i.id
       AND stage = {stage} AND current),
    (SELECT id FROM annotation_guidelinesversion WHERE project_id = i.project_id
       ORDER BY number DESC LIMIT 1),
    EXISTS (SELECT 1 FROM annotation_mark WHERE member_id = %(member)s AND item_id = i.id
       AND kind = 'seen' AND ended_at IS NULL),
    EXISTS (SELECT 1 FROM annotation_draft WHERE member_id = %(member)s AND item_id = i.id)"""
_WORK_BEFORE, _BLIND_BEFORE = _BEFORE.format(stage="s.stage"), _BEFORE.format(stage="'blind'")


_SHARED = "s.project_id = %(project)s AND s.reserved_for_id IS NULL"
_RETURNED = "s.returned"
_FRESH = "NOT s.returned"
_BEHIND = {"fresh": f"{_SHARED} AND s.state = 'open' AND {_FRESH}"}
# Stages whose labellers must not have touched the item at these others either.
_APART = {
    Stage.WORK: ("work",),
    Stage.VERIFY: ("verify", "work"),
    Stage.ADJUDICATE: ("adjudicate",),
    Stage.BASELINE: ("baseline", "work", "verify", "adjudicate", "probe", "practice", "blind"),
}


def _first(
    member: Membership,
    stage: str,
    searches: dict[str, str],
    words: dict[str, Any],
    keep: Hold | None = None,
    *,
    lock: bool = True,
) -> Picked | None:
    """The first row of the first search that has any; the later ones are then not read."""
    tables = ", ".join(
        f"{name} AS ({_search(stage, condition, lock)})" for name, condition in searches.items()
    )
    union = " UNION ALL ".join(
        f"SELECT id, priority, position, '{name}' FROM {name}" for name in searches
    )
    at_once = keep and connection.vendor == "postgresql"
    if keep and at_once:
        words = words | {"until": _moment(keep.until), "ahead": keep.ahead}
    found = rows(
        f"WITH {tables}, found AS (SELECT * FROM ({union}) AS u LIMIT 1)"
        f"{_HELD_AT_ONCE if at_once else ''} SELECT * FROM found",
        words,
    )
    if not found:
        return None
    slot_id, priority, position, name = found[0]
    if keep and not at_once:
        hold(slot_id, member, keep.until, ahead=keep.ahead)
    return Picked(slot_id, name == "fresh", priority, position)


_HELD_AT_ONCE = """, taken AS (
    UPDATE annotation_slot SET state = 'held', member_id = %(member)s, held_until = %(until)s,
      ahead = %(ahead)s FROM found WHERE annotation_slot.id = found.id)"""


def _search(stage: str, condition: str, lock: bool) -> str:
    names = _names(_APART[Stage(stage)])
    apart = "" if stage == Stage.WORK else _NOT_SAID.format(names=_names(_SAID[Stage(stage)]))
    apart += _NOT_TOLD if stage == Stage.BASELINE else ""
    return f"""
        SELECT s.id, s.priority, s.position FROM annotation_slot s
        JOIN annotation_item i ON i.id = s.item_id
        WHERE {condition} AND s.stage = '{Stage(stage).value}' AND i.deleted_at IS NULL
          AND NOT EXISTS (
            SELECT 1 FROM annotation_slot mine
            WHERE mine.member_id = %(member)s AND mine.item_id = s.item_id
              AND mine.stage IN ({names}) {_ALONE})
          AND NOT EXISTS (
            SELECT 1 FROM annotation_mark skipped
            WHERE skipped.member_id = %(member)s AND skipped.item_id = s.item_id
              AND skipped.kind = 'skip' AND skipped.ended_at IS NULL {_ALONE})
          {apart}
        ORDER BY s.priority, s.position LIMIT 1 {_locked(passing=True) if lock else ""}"""


# Asked of one row after the other, by index. As joins, which PostgreSQL would else make of them,
# they read all that a person has ever done.
_ALONE = "LIMIT 1 OFFSET 0"
# A label without a slot (an extra one) counts as well; at stages whose work is to see labels, one
# that does not count any more lets its author look again.
_SAID = _APART | {Stage.VERIFY: ("work",), Stage.ADJUDICATE: ("",)}
_NOT_SAID = """AND NOT EXISTS (
            SELECT 1 FROM annotation_label own
            WHERE own.member_id = %(member)s AND own.item_id = s.item_id
              AND own.current AND own.stage IN ({names}) LIMIT 1 OFFSET 0)"""
_NOT_TOLD = """
          AND NOT EXISTS (
            SELECT 1 FROM annotation_mark seen
            WHERE seen.member_id = %(member)s AND seen.item_id = s.item_id
              AND seen.kind = 'seen' AND seen.ended_at IS NULL LIMIT 1 OFFSET 0)"""


def _names(stages: Iterable[str]) -> str:
    return ", ".join(f"'{stage}'" for stage in stages)


def _locked(*, passing: bool) -> str:
    if not connection.features.has_select_for_update:
        return ""
    return "FOR NO KEY UPDATE OF s" + (" SKIP LOCKED" if passing else "")


def _parted(row: tuple[Any, ...], more: tuple[str, ...]) -> tuple[Slot, Revision, list[Any]]:
    """A row of `_SHOWN`: the slot with its item, the revision, and the values behind them."""
    of_item, of_revision = len(_SLOT), len(_SLOT) + len(_ITEM)
    behind = of_revision + len(_REVISION)
    slot = Slot.from_db("default", _SLOT, row[:of_item])
    item = Item.from_db("default", _ITEM, _read(_ITEM, row[of_item:of_revision]))
    texts = _read(_REVISION, row[of_revision:behind])
    revision = Revision.from_db("default", _REVISION, texts)
    slot.item = revision.item = item
    return slot, revision, _read(more, row[behind:])


def _read(names: tuple[str, ...], values: tuple[Any, ...]) -> list[Any]:
    """The values with their JSON and their times read, as they come from both databases."""
    return [
        _READ[name](value) if name in _READ and value is not None else value
        for name, value in zip(names, values, strict=True)
    ]


def _time(value: Any) -> datetime | None:
    """A time as the database gives it to a statement of which it knows no model."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.replace(tzinfo=UTC) if value and value.tzinfo is None else value


_READ: dict[str, Callable[[Any], Any]] = {
    "fields": json.loads,
    "flags": json.loads,
    "texts": json.loads,
    "segments": json.loads,
    "first_reply_at": _time,
    "deleted_at": _time,
}


def rows(statement: str, words: Any) -> list[tuple[Any, ...]]:
    with prepared.planned() as cursor:
        cursor.execute(statement, words)
        return cursor.fetchall()


def _change(statement: str, words: Any) -> int:
    with prepared.planned() as cursor:
        cursor.execute(statement, words)
        return cursor.rowcount


def _moment(time: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(time)
