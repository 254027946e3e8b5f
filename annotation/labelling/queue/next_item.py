"""Which slot is next for whom: the current one, the one after it, and new ones.

What the member holds already, and the first that is free for them.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from annotation.db import sql, transactions
from annotation.labelling import control_items, qualification, slots
from annotation.labelling.models.slots import HOLD_SQL, Hold
from annotation.labelling.queue import claims, offers
from annotation.labelling.queue.claims import CursorState
from annotation.labelling.queue.offers import Offer, Waiting
from annotation.models import Membership, Revision, Slot, Stage

# How long a search that found nothing is believed. Slots that come back or are added are urgent
# and have an index of their own, so what is missed meanwhile is only what others pass by.
EMPTY_SEARCH_PAUSE = timedelta(seconds=5)
# A slot that is the member's, with its item, and the revision to show.
SlotAndRevision = tuple[Slot, Revision]


@dataclass(frozen=True)
class OfferRequest:
    """What a member asks for; `draw`, in [0, 1), decides whether it may be a control item."""

    stage: str
    turn: CursorState
    now: datetime
    draw: float


def next_offer(
    member: Membership,
    *,
    stage: str = Stage.LABEL,
    ahead: bool = False,
    now: datetime | None = None,
    draw: float | None = None,
) -> Offer | Waiting:
    """The item that the member holds or takes now, or why there is none.

    `ahead` asks for the item after that one, which is held as well. Stage.LABEL offers everything
    of
    the label screen. `draw`, in [0, 1), decides whether a new item is a control item.
    """
    now = now or timezone.now()
    draw = random.random() if draw is None else draw
    choose = _hold_next if ahead else _hold_current
    with transactions.transact():
        taken = choose(member, OfferRequest(stage, claims.lock_member(member, stage), now, draw))
    return (
        offers.build_offer(member, *taken) if taken else offers.explain_waiting(member, stage, now)
    )


def _hold_current(member: Membership, asked: OfferRequest) -> SlotAndRevision | None:
    """The slot that the member works on, held from now on; None if there is none.

    It is the one they hold, else the one that was held ahead, else a newly taken one.
    """
    hold = Hold(member.pk, slots.hold_until(member, asked.now))
    stages = slots.related_stages(asked.stage)
    if not _may_have_answer(member, asked):
        return _take_slot(member, asked, hold, held_at=stages)
    held = held_slots(member, stages)
    return claims.hold_slot(held[0].slot_id, hold) if held else _take_slot(member, asked, hold)


def _hold_next(member: Membership, asked: OfferRequest) -> SlotAndRevision | None:
    """The slot that comes after the current one, held as well; None if there is none.

    Nothing is held ahead of practice, where an explanation comes in between, or of nothing.
    """
    hold = Hold(member.pk, slots.hold_until(member, asked.now), ahead=True)
    held = held_slots(member, slots.related_stages(asked.stage))
    if not held or held[0].stage == Stage.QUALIFICATION:
        return None
    if held[0].ahead:  # the page is past what the member held before
        claims.hold_slot(held[0].slot_id, Hold(member.pk, hold.until))
    if len(held) > 1:
        return claims.hold_slot(held[1].slot_id, hold)
    return _take_slot(member, asked, hold)


def _may_have_answer(member: Membership, asked: OfferRequest) -> bool:
    """Whether the item may be one whose answer is known, which comes before the work there is."""
    at_work = asked.stage == Stage.LABEL
    return at_work and (qualification.is_due(member) or control_items.is_due(member, asked.draw))


def _take_slot(
    member: Membership, asked: OfferRequest, hold: Hold, held_at: Iterable[str] = ()
) -> SlotAndRevision | None:
    """A newly held slot, or first one that the member holds at a stage of `held_at`."""
    stage, turn, now, draw = asked.stage, asked.turn, asked.now, asked.draw
    if stage != Stage.LABEL:
        return _pick_slot(member, stage, turn, now, hold, held_at)
    if qualification.is_due(member):
        return _hold_created(qualification.take_slot(member, now), hold)
    if control_items.is_due(member, draw) and is_any_free(member, stage, turn, now):
        # Only beside work: an item that comes when all is done is known for a check.
        probe = _hold_created(control_items.take_slot(member, draw, now), hold)
        if probe is not None:
            return probe
    work = _pick_slot(member, stage, turn, now, hold, held_at)
    if work is not None:
        return work
    return _pick_slot(member, Stage.BASELINE, claims.lock_member(member, Stage.BASELINE), now, hold)


def _pick_slot(
    member: Membership,
    stage: str,
    turn: CursorState,
    now: datetime,
    hold: Hold,
    held_at: Iterable[str] = (),
) -> SlotAndRevision | None:
    picked = pick_slot(member, stage, turn, now, hold, held_at)
    if picked is None and (turn.nothing_until is None or turn.nothing_until <= now):
        picked = pick_behind_cursor(member, stage, hold)
        if picked is None and not is_any_behind_cursor(member, stage):
            claims.record_empty_search(member, stage, now + EMPTY_SEARCH_PAUSE)
    if picked is None:
        return None
    if picked.fresh:
        claims.advance_cursor(member, stage, turn, picked.slot.priority, picked.slot.position)
    return picked.slot, picked.revision


def _hold_created(slot: Slot | None, hold: Hold) -> SlotAndRevision | None:
    """A slot that was made on the spot, held like any other."""
    return claims.hold_slot(slot.pk, hold) if slot else None


@dataclass(frozen=True)
class HeldSlot:
    """A slot that the member holds; `ahead` if it is the one after the current."""

    slot_id: int
    stage: str
    ahead: bool


@dataclass(frozen=True)
class PickedSlot:
    """A slot that is the member's from now on, and the item's current revision with its diff.

    `fresh` if nobody had the slot before, so that the cursor moves on to it.
    """

    slot: Slot
    revision: Revision
    fresh: bool


def held_slots(member: Membership, stages: Iterable[str]) -> list[HeldSlot]:
    """What the member holds at the stages, also if its time is over and nobody took it."""
    names = sql.quote_names(Stage(stage).value for stage in stages)
    found = sql.fetch_rows(
        f"""
        SELECT s.id, s.stage, s.ahead FROM annotation_slot s
        JOIN annotation_item i ON i.id = s.item_id
        WHERE s.member_id = %s AND s.state = 'held' AND s.stage IN ({names})
          AND i.deleted_at IS NULL
        ORDER BY s.ahead, s.held_until, s.id {sql.lock_clause(passing=False)}
        """,
        [member.pk],
    )
    return [HeldSlot(slot_id, stage, bool(ahead)) for slot_id, stage, ahead in found]


def pick_slot(
    member: Membership,
    stage: str,
    turn: CursorState,
    now: datetime,
    hold: Hold,
    held_at: Iterable[str] = (),
) -> PickedSlot | None:
    """The next free slot for the member, which is held from now on. Skips locked slots.

    In this order: slots that the member holds at the stages of `held_at` (see `held_slots`), slots
    reserved for them, returned or urgent ones, expired ones of others, then the first fresh one
    after the cursor. Each is a lookup in a partial index that reads no more rows than it needs.
    """
    searches = {"mine": _held_search(held_at)} if held_at else {}
    return _find_and_hold(
        member, stage, searches | _free_searches(stage), _search_parameters(member, turn, now), hold
    )


def is_any_free(member: Membership, stage: str, turn: CursorState, now: datetime) -> bool:
    """Whether `pick_slot` would find a slot that the member does not hold yet."""
    return _finds_any(_free_searches(stage), _search_parameters(member, turn, now))


def pick_behind_cursor(member: Membership, stage: str, hold: Hold) -> PickedSlot | None:
    """A fresh slot anywhere: one that was locked when the cursor passed it by."""
    return _find_and_hold(member, stage, _behind_searches(stage), _search_parameters(member), hold)


def is_any_behind_cursor(member: Membership, stage: str) -> bool:
    """Whether there is such a slot, be it locked by somebody at this moment."""
    return _finds_any(_behind_searches(stage, lock=False), _search_parameters(member))


_SHARED = "s.project_id = %(project)s AND s.reserved_for_id IS NULL"
_RETURNED = "s.returned"
_FRESH = "NOT s.returned"
# Stages whose labellers must not have touched the item at these others either.
_EXCLUDED_STAGES = {
    Stage.LABEL: ("label",),
    Stage.VERIFY: ("verify", "label"),
    Stage.ADJUDICATE: ("adjudicate",),
    Stage.BASELINE: (
        "baseline",
        "label",
        "verify",
        "adjudicate",
        "control",
        "qualification",
        "blind",
    ),
}


def _search_parameters(
    member: Membership, turn: CursorState | None = None, now: datetime | None = None
) -> dict[str, Any]:
    words: dict[str, Any] = {"member": member.pk, "project": member.project_id}
    if turn and now:
        words |= {
            "priority": turn.priority,
            "position": turn.position,
            "now": sql.to_database_time(now),
        }
    return words


def _held_search(stages: Iterable[str]) -> str:
    names = sql.quote_names(Stage(stage).value for stage in stages)
    return f"""
        SELECT s.id, s.priority, s.position FROM annotation_slot s
        JOIN annotation_item i ON i.id = s.item_id
        WHERE s.member_id = %(member)s AND s.state = 'held' AND s.stage IN ({names})
          AND i.deleted_at IS NULL
        ORDER BY s.ahead, s.held_until, s.id LIMIT 1 {sql.lock_clause(passing=False)}"""


def _free_searches(stage: str) -> dict[str, str]:
    conditions = {
        "reserved": "s.reserved_for_id = %(member)s AND s.state = 'open'",
        "returned": f"{_SHARED} AND s.state = 'open' AND {_RETURNED}",
        "expired": "s.project_id = %(project)s AND s.state = 'held' AND s.held_until <= %(now)s"
        " AND (s.reserved_for_id IS NULL OR s.reserved_for_id = %(member)s)",
        "fresh": f"{_SHARED} AND s.state = 'open' AND {_FRESH} "
        "AND (s.priority, s.position) > (%(priority)s, %(position)s)",
    }
    return {name: _search(stage, condition) for name, condition in conditions.items()}


def _behind_searches(stage: str, *, lock: bool = True) -> dict[str, str]:
    return {"fresh": _search(stage, f"{_SHARED} AND s.state = 'open' AND {_FRESH}", lock=lock)}


def _first_found_sql(searches: dict[str, str]) -> str:
    """Tables of a statement: `found`, the first row of the first search that has any, and what
    the search is called; the later ones are then not read."""
    tables = ", ".join(f"{name} AS ({search})" for name, search in searches.items())
    union = " UNION ALL ".join(
        f"SELECT id, priority, position, '{name}' AS search FROM {name}" for name in searches
    )
    return f"WITH {tables}, found AS (SELECT * FROM ({union}) AS u LIMIT 1)"


def _finds_any(searches: dict[str, str], words: dict[str, Any]) -> bool:
    return bool(sql.fetch_rows(f"{_first_found_sql(searches)} SELECT id FROM found", words))


def _find_and_hold(
    member: Membership, stage: str, searches: dict[str, str], words: dict[str, Any], hold: Hold
) -> PickedSlot | None:
    """What is found first, given to the member, and all that is shown of it.

    PostgreSQL does all of it in one statement: on its way there and back each costs more than the
    search. SQLite is in this process, and cannot change rows in a part of a statement.
    """
    first = _first_found_sql(searches)
    if connection.vendor != "postgresql":
        found = sql.fetch_rows(f"{first} SELECT id, search FROM found", words)
        if not found:
            return None
        slot_id, search = found[0]
        return PickedSlot(*claims.hold_slot(slot_id, hold), search == "fresh")
    kept = hold.parameters() | claims.LOAD_PARAMETERS
    found = sql.fetch_rows(
        f"{first}, {_TAKE_SQL} {claims.select_slots_sql('taken', 'search')}", words | kept
    )
    if not found:
        return None
    *row, search = found[0]
    return PickedSlot(*claims.parse_row(row), search == "fresh")


_TAKE_SQL = f"""taken AS (
    UPDATE annotation_slot SET {HOLD_SQL} FROM found
    WHERE annotation_slot.id = found.id RETURNING annotation_slot.*, found.search)"""


def _search(stage: str, condition: str, *, lock: bool = True) -> str:
    names = sql.quote_names(_EXCLUDED_STAGES[Stage(stage)])
    apart = (
        ""
        if stage == Stage.LABEL
        else _NOT_LABELLED.format(names=sql.quote_names(_LABEL_STAGES[Stage(stage)]))
    )
    apart += _NOT_SEEN if stage == Stage.BASELINE else ""
    return f"""
        SELECT s.id, s.priority, s.position FROM annotation_slot s
        JOIN annotation_item i ON i.id = s.item_id
        WHERE {condition} AND s.stage = '{Stage(stage).value}' AND i.deleted_at IS NULL
          AND NOT EXISTS (
            SELECT 1 FROM annotation_slot mine
            WHERE mine.member_id = %(member)s AND mine.item_id = s.item_id
              AND mine.stage IN ({names}) {_ROW_BY_ROW})
          AND NOT EXISTS (
            SELECT 1 FROM annotation_mark skipped
            WHERE skipped.member_id = %(member)s AND skipped.item_id = s.item_id
              AND skipped.kind = 'skip' AND skipped.ended_at IS NULL {_ROW_BY_ROW})
          {apart}
        ORDER BY s.priority, s.position LIMIT 1 {sql.lock_clause(passing=True) if lock else ""}"""


# Asked of one row after the other, by index. As joins, which PostgreSQL would else make of them,
# they read all that a person has ever done.
_ROW_BY_ROW = "LIMIT 1 OFFSET 0"
# A label without a slot (an extra one) counts as well; at stages whose work is to see labels, one
# that does not count any more lets its author look again.
_LABEL_STAGES = _EXCLUDED_STAGES | {Stage.VERIFY: ("label",), Stage.ADJUDICATE: ("",)}
_NOT_LABELLED = """AND NOT EXISTS (
            SELECT 1 FROM annotation_label own
            WHERE own.member_id = %(member)s AND own.item_id = s.item_id
              AND own.current AND own.stage IN ({names}) LIMIT 1 OFFSET 0)"""
_NOT_SEEN = """
          AND NOT EXISTS (
            SELECT 1 FROM annotation_mark seen
            WHERE seen.member_id = %(member)s AND seen.item_id = s.item_id
              AND seen.kind = 'seen' AND seen.ended_at IS NULL LIMIT 1 OFFSET 0)"""
