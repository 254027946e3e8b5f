"""Which slot is next: what the member holds already, and the first that is free for them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from annotation.models import Membership, Stage
from annotation.picking import holding, sql
from annotation.picking.holding import Hold
from annotation.picking.turns import Turn


@dataclass(frozen=True)
class Held:
    """A slot that the member holds; `ahead` if it is the one after the current."""

    slot_id: int
    stage: str
    ahead: bool


@dataclass(frozen=True)
class Picked:
    """A free slot; `fresh` if nobody had it before, so that the cursor moves on to it."""

    slot_id: int
    fresh: bool
    priority: int
    position: int


def held(member: Membership, stages: Iterable[str]) -> list[Held]:
    """What the member holds at the stages, also if its time is over and nobody took it."""
    names = sql.names(Stage(stage).value for stage in stages)
    found = sql.rows(
        f"""
        SELECT s.id, s.stage, s.ahead FROM annotation_slot s
        JOIN annotation_item i ON i.id = s.item_id
        WHERE s.member_id = %s AND s.state = 'held' AND s.stage IN ({names})
          AND i.deleted_at IS NULL
        ORDER BY s.ahead, s.held_until, s.id {sql.locked(passing=False)}
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
    words = {"member": member.pk, "project": member.project_id, "now": sql.moment(now)}
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
        words = words | {"until": sql.moment(keep.until), "ahead": keep.ahead}
    found = sql.rows(
        f"WITH {tables}, found AS (SELECT * FROM ({union}) AS u LIMIT 1)"
        f"{_HELD_AT_ONCE if at_once else ''} SELECT * FROM found",
        words,
    )
    if not found:
        return None
    slot_id, priority, position, name = found[0]
    if keep and not at_once:
        holding.hold(slot_id, member, keep)
    return Picked(slot_id, name == "fresh", priority, position)


_HELD_AT_ONCE = """, taken AS (
    UPDATE annotation_slot SET state = 'held', member_id = %(member)s, held_until = %(until)s,
      ahead = %(ahead)s FROM found WHERE annotation_slot.id = found.id)"""


def _search(stage: str, condition: str, lock: bool) -> str:
    names = sql.names(_APART[Stage(stage)])
    apart = "" if stage == Stage.WORK else _NOT_SAID.format(names=sql.names(_SAID[Stage(stage)]))
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
        ORDER BY s.priority, s.position LIMIT 1 {sql.locked(passing=True) if lock else ""}"""


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
