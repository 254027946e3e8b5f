"""Which slot is next: what the member holds already, and the first that is free for them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from annotation.models import Membership, Revision, Slot, Stage
from annotation.picking import holding, showing, sql
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
    """A slot that is the member's from now on, and the item's current revision with its diff.

    `fresh` if nobody had the slot before, so that the cursor moves on to it.
    """

    slot: Slot
    revision: Revision
    fresh: bool


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
    member: Membership,
    stage: str,
    turn: Turn,
    now: datetime,
    hold: Hold,
    held_at: Iterable[str] = (),
) -> Picked | None:
    """The next slot that is free for the member, held from now on.

    Passes over those that are locked.

    First what the member holds at the stages of `held_at` (see `held`), then what is reserved for
    them, then what came back or is urgent, then what others let expire, then the first fresh one
    after the cursor: probes of partial indexes, of which a database reads as many as it needs.
    """
    searches = {"mine": _mine(held_at)} if held_at else {}
    return _kept(member, stage, searches | _free(stage), _words(member, turn, now), hold)


def is_any_free(member: Membership, stage: str, turn: Turn, now: datetime) -> bool:
    """Whether `pick` would find a slot that the member does not hold yet."""
    return _is_any(_free(stage), _words(member, turn, now))


def pick_behind(member: Membership, stage: str, hold: Hold) -> Picked | None:
    """A fresh slot anywhere: one that was locked when the cursor passed it by."""
    return _kept(member, stage, _behind(stage), _words(member), hold)


def is_any_behind(member: Membership, stage: str) -> bool:
    """Whether there is such a slot, be it locked by somebody at this moment."""
    return _is_any(_behind(stage, lock=False), _words(member))


_SHARED = "s.project_id = %(project)s AND s.reserved_for_id IS NULL"
_RETURNED = "s.returned"
_FRESH = "NOT s.returned"
# Stages whose labellers must not have touched the item at these others either.
_APART = {
    Stage.WORK: ("work",),
    Stage.VERIFY: ("verify", "work"),
    Stage.ADJUDICATE: ("adjudicate",),
    Stage.BASELINE: ("baseline", "work", "verify", "adjudicate", "probe", "practice", "blind"),
}


def _words(
    member: Membership, turn: Turn | None = None, now: datetime | None = None
) -> dict[str, Any]:
    words: dict[str, Any] = {"member": member.pk, "project": member.project_id}
    if turn and now:
        words |= {"priority": turn.priority, "position": turn.position, "now": sql.moment(now)}
    return words


def _mine(stages: Iterable[str]) -> str:
    names = sql.names(Stage(stage).value for stage in stages)
    return f"""
        SELECT s.id, s.priority, s.position FROM annotation_slot s
        JOIN annotation_item i ON i.id = s.item_id
        WHERE s.member_id = %(member)s AND s.state = 'held' AND s.stage IN ({names})
          AND i.deleted_at IS NULL
        ORDER BY s.ahead, s.held_until, s.id LIMIT 1 {sql.locked(passing=False)}"""


def _free(stage: str) -> dict[str, str]:
    conditions = {
        "reserved": "s.reserved_for_id = %(member)s AND s.state = 'open'",
        "returned": f"{_SHARED} AND s.state = 'open' AND {_RETURNED}",
        "expired": "s.project_id = %(project)s AND s.state = 'held' AND s.held_until <= %(now)s"
        " AND (s.reserved_for_id IS NULL OR s.reserved_for_id = %(member)s)",
        "fresh": f"{_SHARED} AND s.state = 'open' AND {_FRESH} "
        "AND (s.priority, s.position) > (%(priority)s, %(position)s)",
    }
    return {name: _search(stage, condition) for name, condition in conditions.items()}


def _behind(stage: str, *, lock: bool = True) -> dict[str, str]:
    return {"fresh": _search(stage, f"{_SHARED} AND s.state = 'open' AND {_FRESH}", lock=lock)}


def _first(searches: dict[str, str]) -> str:
    """Tables of a statement: `found`, the first row of the first search that has any, and what
    the search is called; the later ones are then not read."""
    tables = ", ".join(f"{name} AS ({search})" for name, search in searches.items())
    union = " UNION ALL ".join(
        f"SELECT id, priority, position, '{name}' AS search FROM {name}" for name in searches
    )
    return f"WITH {tables}, found AS (SELECT * FROM ({union}) AS u LIMIT 1)"


def _is_any(searches: dict[str, str], words: dict[str, Any]) -> bool:
    return bool(sql.rows(f"{_first(searches)} SELECT id FROM found", words))


def _kept(
    member: Membership, stage: str, searches: dict[str, str], words: dict[str, Any], hold: Hold
) -> Picked | None:
    """What is found first, given to the member, and all that is shown of it.

    PostgreSQL does all of it in one statement: on its way there and back each costs more than the
    search. SQLite is in this process, and cannot change rows in a part of a statement.
    """
    first = _first(searches)
    if connection.vendor != "postgresql":
        found = sql.rows(f"{first} SELECT id, search FROM found", words)
        if not found:
            return None
        slot_id, search = found[0]
        return Picked(*holding.hold(slot_id, member, hold), search == "fresh")
    kept = holding.words(member, hold) | showing.WORDS
    found = sql.rows(f"{first}, {_TAKEN} {showing.selected('taken', 'search')}", words | kept)
    if not found:
        return None
    *row, search = found[0]
    return Picked(*showing.read(row), search == "fresh")


_TAKEN = f"""taken AS (
    UPDATE annotation_slot SET {holding.HELD} FROM found
    WHERE annotation_slot.id = found.id RETURNING annotation_slot.*, found.search)"""


def _search(stage: str, condition: str, *, lock: bool = True) -> str:
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
