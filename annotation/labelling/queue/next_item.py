"""Choose the slot for a member: the current slot, the slot after it, or a new slot.

A new slot is the first slot that is free for the member.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from annotation.db import sql, transactions
from annotation.labelling import answer_key, control_items, qualification, slots, work_order
from annotation.labelling.correct_answers import PROBE
from annotation.labelling.models.slots import HOLD_SQL, Hold
from annotation.labelling.queue import claims, offers
from annotation.labelling.queue.claims import CursorState
from annotation.labelling.queue.offers import Offer, Waiting
from annotation.models import Item, Membership, Revision, Slot, Stage

# How long the result of an empty search is reused. Returned and added slots are urgent and have an
# index of their own, so this can only miss slots that others were locking at that moment.
EMPTY_SEARCH_PAUSE = timedelta(seconds=5)
# So many open slots are looked at for one that is preferred.
WINDOW = 24
# A slot that the member holds, with its item, and the revision to show.
SlotAndRevision = tuple[Slot, Revision]


@dataclass(frozen=True)
class OfferRequest:
    """A member's request for an item; the number `draw`, in [0, 1), decides whether the item may be
    a control item. `after` is the cluster of the item before it; "" if any cluster will do.
    `control` is the control item that comes now because it was sent ahead in this place."""

    stage: str
    turn: CursorState
    now: datetime
    draw: float | None
    after: str = ""
    control: Item | None = None

    def as_sent_ahead(self, member: Membership) -> "OfferRequest":
        """This request, for what was sent ahead: the next of these items decides whether a control
        item comes. Unchanged if none of them is left, or if a draw was given."""
        is_open = self.stage == Stage.LABEL and self.draw is None
        if not is_open or not control_items.is_due(member, 0):
            return self
        first = control_items.first_sent(member, self.now)
        if first is None:
            return self
        if first.purpose == PROBE:
            return replace(self, draw=0.0, control=first)
        return replace(self, draw=1.0)

    def after_item(self, member: Membership, item_id: int, cluster: str) -> "OfferRequest":
        """This request, for the item after an item of this cluster: with the draw for it unless a
        draw was given, and in random order with another cluster if possible."""
        drawn = control_items.draw_after(member, item_id) if self.draw is None else self.draw
        is_random = member.project.order == work_order.RANDOM
        return replace(self, draw=drawn, after=cluster if is_random else "")


def next_offer(
    member: Membership,
    *,
    stage: str = Stage.LABEL,
    ahead: bool = False,
    now: datetime | None = None,
    draw: float | None = None,
) -> Offer | Waiting:
    """Offer the item that the member holds or takes now, or say why there is no item.

    With `ahead`, offer the item after the current item and hold it as well. Stage.LABEL covers all
    stages of the label screen. `draw`, in [0, 1), decides whether a new item is a control item; by
    default, the items that were sent ahead decide. If none of them is left, it is random, and ahead
    it is `control_items.draw_after` the current item.
    """
    now = now or timezone.now()
    choose = _hold_next if ahead else _hold_current
    with transactions.transact():
        taken = choose(member, OfferRequest(stage, claims.lock_member(member, stage), now, draw))
    return (
        offers.build_offer(member, *taken) if taken else offers.explain_waiting(member, stage, now)
    )


def _hold_current(member: Membership, asked: OfferRequest) -> SlotAndRevision | None:
    """Hold and return the slot that the member works on; None if there is no slot.

    This is the slot that the member holds, else the slot held ahead, else a new slot.
    """
    hold = Hold(member.pk, slots.hold_until(member, asked.now))
    stages = slots.related_stages(asked.stage)
    asked = asked.as_sent_ahead(member)
    if asked.draw is None:
        asked = replace(asked, draw=random.random())
    if asked.turn.labelled:
        asked = asked.after_item(member, *asked.turn.labelled)
    if not _may_have_answer(member, asked):
        return _take_slot(member, asked, hold, held_at=stages)
    held = held_slots(member, stages)
    return claims.hold_slot(held[0].slot_id, hold) if held else _take_slot(member, asked, hold)


def _hold_next(member: Membership, asked: OfferRequest) -> SlotAndRevision | None:
    """Hold and return the slot after the current slot; None if there is no slot.

    There is no next slot without a current slot, or after a qualification item, since its
    explanation is shown first.
    """
    hold = Hold(member.pk, slots.hold_until(member, asked.now), ahead=True)
    held = held_slots(member, slots.related_stages(asked.stage))
    if not held or held[0].stage == Stage.QUALIFICATION:
        return None
    if held[0].ahead:  # the page has moved on to the item that was held ahead
        claims.hold_slot(held[0].slot_id, Hold(member.pk, hold.until))
    if len(held) > 1:
        return claims.hold_slot(held[1].slot_id, hold)
    asked = asked.as_sent_ahead(member).after_item(member, held[0].item_id, held[0].cluster)
    return _take_slot(member, asked, hold)


def _may_have_answer(member: Membership, asked: OfferRequest) -> bool:
    """True if the item may be a qualification or control item, which is offered before other
    work."""
    if asked.stage != Stage.LABEL:
        return False
    assert asked.draw is not None
    return qualification.is_due(member) or control_items.is_due(member, asked.draw)


def _take_slot(
    member: Membership, asked: OfferRequest, hold: Hold, held_at: Iterable[str] = ()
) -> SlotAndRevision | None:
    """Hold and return a new slot, or first a slot that the member already holds at a stage of
    `held_at`."""
    stage, turn, now, draw = asked.stage, asked.turn, asked.now, asked.draw
    if stage != Stage.LABEL:
        return _pick_slot(member, asked, hold, held_at)
    assert draw is not None
    if qualification.is_due(member):
        return _hold_created(qualification.take_slot(member, now), hold)
    if asked.control:
        created = answer_key.hold_new_slot(asked.control, Stage.CONTROL, member, now)
        return _hold_created(created, hold)
    if control_items.is_due(member, draw) and is_any_free(member, stage, turn, now):
        # Only while there is other work: a control item after the last normal item would be
        # recognised.
        probe = _hold_created(control_items.take_slot(member, draw, now), hold)
        if probe is not None:
            return probe
    work = _pick_slot(member, asked, hold, held_at)
    if work is not None:
        return work
    turn = claims.lock_member(member, Stage.BASELINE)
    return _pick_slot(member, replace(asked, stage=Stage.BASELINE, turn=turn), hold)


def _pick_slot(
    member: Membership, asked: OfferRequest, hold: Hold, held_at: Iterable[str] = ()
) -> SlotAndRevision | None:
    stage, turn, now = asked.stage, asked.turn, asked.now
    picked = pick_slot(member, asked, hold, held_at)
    if picked is None and _is_in_pilot(member, stage):
        return None
    if picked is None and (turn.nothing_until is None or turn.nothing_until <= now):
        picked = pick_behind_cursor(member, stage, hold)
        if picked is None and not is_any_behind_cursor(member, stage):
            claims.record_empty_search(member, stage, turn, now + EMPTY_SEARCH_PAUSE)
    if picked is None:
        return None
    if picked.fresh:
        claims.advance_cursor(member, stage, turn, picked.slot)
    return picked.slot, picked.revision


def _hold_created(slot: Slot | None, hold: Hold) -> SlotAndRevision | None:
    """Hold a slot that was just created; return None if no slot was created."""
    return claims.hold_slot(slot.pk, hold) if slot else None


@dataclass(frozen=True)
class HeldSlot:
    """A slot that the member holds; `ahead` if it is reserved as the next item."""

    slot_id: int
    item_id: int
    stage: str
    ahead: bool
    cluster: str


@dataclass(frozen=True)
class PickedSlot:
    """A slot that the member holds now, and the item's current revision with its diff.

    `fresh` is True if nobody had the slot before, so that the cursor moves forward to it.
    """

    slot: Slot
    revision: Revision
    fresh: bool


def held_slots(member: Membership, stages: Iterable[str], *, lock: bool = True) -> list[HeldSlot]:
    """The slots that the member holds at these stages; a slot whose hold has expired is included
    until somebody else takes it."""
    names = sql.quote_names(Stage(stage).value for stage in stages)
    # Item by item, as leads lock the slots of many items.
    found = sql.fetch_rows(
        f"""
        SELECT s.ahead, s.held_until, s.id, s.item_id, s.stage, i.cluster FROM annotation_slot s
        JOIN annotation_item i ON i.id = s.item_id
        WHERE s.member_id = %s AND s.state = 'held' AND s.stage IN ({names})
          AND i.deleted_at IS NULL
        ORDER BY s.item_id, s.id {sql.lock_clause(passing=False) if lock else ""}
        """,
        [member.pk],
    )
    return [
        HeldSlot(slot_id, item_id, stage, bool(ahead), cluster)
        for ahead, _, slot_id, item_id, stage, cluster in sorted(found, key=lambda row: row[:3])
    ]


def pick_slot(
    member: Membership, asked: OfferRequest, hold: Hold, held_at: Iterable[str] = ()
) -> PickedSlot | None:
    """Find and hold the next free slot for the member. Skips locked slots.

    In this order: slots that the member holds at the stages of `held_at` (see `held_slots`), slots
    reserved for them, returned or urgent slots, slots whose hold by others has expired, then the
    first fresh slot on the member's way round, if the project wants it one of an item that somebody
    else has labelled. Each is a lookup in a partial index that reads no more rows than it needs.
    """
    searches = {"mine": _held_search(held_at)} if held_at else {}
    searches |= _free_searches(member, asked.stage, after=asked.after)
    words = _search_parameters(member, asked.turn, asked.now) | {"after": asked.after}
    found = (_find_and_hold(member, part, words, hold) for part in _split_searches(searches))
    return next((picked for picked in found if picked), None)


def is_any_free(member: Membership, stage: str, turn: CursorState, now: datetime) -> bool:
    """True if `pick_slot` would find a slot that the member does not hold yet."""
    return _finds_any(_free_searches(member, stage), _search_parameters(member, turn, now))


def pick_behind_cursor(member: Membership, stage: str, hold: Hold) -> PickedSlot | None:
    """Find and hold a fresh slot anywhere, such as a slot that was locked when the cursor passed
    it; None if there is no such slot."""
    return _find_and_hold(member, _behind_searches(stage), _search_parameters(member), hold)


def is_any_behind_cursor(member: Membership, stage: str) -> bool:
    """True if there is a slot for `pick_behind_cursor`, even if it is locked at this moment."""
    return _finds_any(_behind_searches(stage, lock=False), _search_parameters(member))


_SHARED = "s.project_id = %(project)s AND s.reserved_for_id IS NULL"
_RETURNED = "s.returned"
_FRESH = "NOT s.returned"
_OPEN = f"{_SHARED} AND s.state = 'open' AND {_FRESH}"
# For each stage, the stages at which the member must not have a slot of the item.
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
            "last": turn.last,
            "wrap_to": turn.wrap_to,
            "start": turn.start,
            "next": work_order.next_priority(turn.priority),
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


def list_free_items(member: Membership, turn: CursorState, now: datetime, number: int) -> list[int]:
    """The ids of items that the member would be offered next, in this order, without holding them.

    Returns at most `number` items, and fewer if many of them have several free slots. What is left
    behind the cursor is not looked for: that can read many rows.
    """
    searches = {
        name: _search(Stage.LABEL, condition, lock=False, limit=3 * number)
        for name, condition in _free_conditions(member, Stage.LABEL).items()
    }
    tables = ", ".join(f"{name} AS ({search})" for name, search in searches.items())
    union = " UNION ALL ".join(
        f"SELECT id, priority, position, {rank} AS search FROM {name}"
        for rank, name in enumerate(searches)
    )
    found = sql.fetch_rows(
        f"""
        WITH {tables}
        SELECT s.item_id FROM ({union}) AS u JOIN annotation_slot s ON s.id = u.id
        ORDER BY u.search, u.priority, u.position, u.id LIMIT {3 * number}
        """,
        _search_parameters(member, turn, now),
    )
    return list(dict.fromkeys(item_id for (item_id,) in found))[:number]


def _free_searches(member: Membership, stage: str, after: str = "") -> dict[str, str]:
    conditions = _free_conditions(member, stage, after)
    return {name: _search(stage, condition) for name, condition in conditions.items()}


# Where a member looks for slots `s`, in this order: from the cursor on, then from the first
# position to the member's start; then the same of the next priority.
_RANGES = {
    "fresh": "s.priority = %(priority)s AND s.position > %(position)s AND s.position <= %(last)s",
    "round": "s.priority = %(priority)s AND s.position <= %(wrap_to)s",
    "next_fresh": "s.priority = %(next)s AND s.position > %(start)s",
    "next_round": "s.priority = %(next)s AND s.position <= %(start)s",
}
# Priorities that no lead sets, as in an imported database.
_LATER = "s.priority > %(priority)s"
# A slot that nobody had before moves the cursor to it.
_FRESH_SEARCHES = (*_RANGES, "later")


@dataclass(frozen=True)
class SlotSearch:
    """A search for a slot `s` with this condition.

    If `first`, only the first such slots are looked at: the member may have labelled many of these
    items, or they may be of one cluster, and they stay open for others. If `apart`, the item is of
    another cluster than the one before.
    """

    condition: str
    first: bool = False
    apart: bool = False


def _free_conditions(member: Membership, stage: str, after: str = "") -> dict[str, SlotSearch]:
    """The searches for a free slot, in this order. If `after` is a cluster, items of other clusters
    are looked for first. In a pilot only what is reserved for the member is looked for."""
    if _is_in_pilot(member, stage):
        expired = "s.state = 'held' AND s.held_until <= %(now)s"
        own = "s.reserved_for_id = %(member)s AND"
        return {
            "reserved": SlotSearch(f"{own} s.state = 'open'"),
            "expired": SlotSearch(f"{own} {expired}"),
        }
    found = {name: SlotSearch(f"{_OPEN} AND {_RANGES[name]}") for name in _RANGES}
    if stage == Stage.LABEL and work_order.finishes_begun(member.project):
        # Anywhere, not only on the rest of the way round: of an item that the member passed, a slot
        # may have been added.
        ranges = [_RANGES["fresh"], "s.priority = %(priority)s"]
        begun = {
            f"begun_{n}": SlotSearch(f"{_OPEN} AND s.begun AND {one}", first=True)
            for n, one in enumerate(ranges)
        }
        found = begun | found
    apart = {
        f"{name}_apart": replace(one, first=True, apart=True)
        for name, one in found.items()
        if name.startswith("begun") or name in ("fresh", "round")
    }
    # While more is left on this part of the way round than was looked at, the next part waits.
    left = f"SELECT 1 FROM annotation_slot s WHERE {found['fresh'].condition}"
    left += f" AND s.stage = '{Stage(stage).value}' LIMIT 1 OFFSET {WINDOW}"
    turned = apart["round_apart"]
    apart["round_apart"] = replace(turned, condition=f"{turned.condition} AND NOT EXISTS ({left})")
    expired = (
        "s.project_id = %(project)s AND s.state = 'held' AND s.held_until <= %(now)s"
        " AND (s.reserved_for_id IS NULL OR s.reserved_for_id = %(member)s)"
    )
    return {
        "reserved": SlotSearch("s.reserved_for_id = %(member)s AND s.state = 'open'"),
        "returned": SlotSearch(f"{_SHARED} AND s.state = 'open' AND {_RETURNED}"),
        "expired": SlotSearch(expired),
        **(apart if after else {}),
        **found,
        "later": SlotSearch(f"{_OPEN} AND {_LATER}"),
    }


def _is_in_pilot(member: Membership, stage: str) -> bool:
    return stage == Stage.LABEL and member.is_in_pilot


def _behind_searches(stage: str, *, lock: bool = True) -> dict[str, str]:
    return {"behind": _search(stage, SlotSearch(_OPEN), lock=lock)}


def _first_found_sql(searches: dict[str, str]) -> str:
    """Build the WITH clause for `found`: the first row of the first search that finds a row, with
    the name of the search. Later searches are not executed."""
    tables = ", ".join(f"{name} AS ({search})" for name, search in searches.items())
    union = " UNION ALL ".join(
        f"SELECT id, priority, position, '{name}' AS search FROM {name}" for name in searches
    )
    return f"WITH {tables}, found AS (SELECT * FROM ({union}) AS u LIMIT 1)"


def _split_searches(searches: dict[str, str]) -> list[dict[str, str]]:
    """Split the searches after the one for the next fresh slot, where nearly every call has found a
    slot: PostgreSQL plans all searches of a statement, which takes longer than executing them."""
    names = [*searches]
    cut = next((n for n, name in enumerate(names, start=1) if name.startswith("fresh")), len(names))
    parts = names[:cut], names[cut:]
    return [{name: searches[name] for name in part} for part in parts if part]


def _finds_any(searches: dict[str, str], words: dict[str, Any]) -> bool:
    return bool(sql.fetch_rows(f"{_first_found_sql(searches)} SELECT id FROM found", words))


def _find_and_hold(
    member: Membership, searches: dict[str, str], words: dict[str, Any], hold: Hold
) -> PickedSlot | None:
    """Hold the first slot found for the member, and load what the page shows of its item; None if
    there is no slot.

    PostgreSQL does this in one statement, since each round trip costs more than the search. SQLite
    runs in this process, and cannot change rows in a WITH clause.
    """
    first = _first_found_sql(searches)
    if connection.vendor != "postgresql":
        found = sql.fetch_rows(f"{first} SELECT id, search FROM found", words)
        if not found:
            return None
        slot_id, search = found[0]
        return PickedSlot(*claims.hold_slot(slot_id, hold), _is_fresh(search))
    kept = hold.parameters() | claims.LOAD_PARAMETERS
    found = sql.fetch_rows(
        f"{first}, {_TAKE_SQL} {claims.select_slots_sql('taken', 'search')}", words | kept
    )
    if not found:
        return None
    *row, search = found[0]
    return PickedSlot(*claims.parse_row(row), _is_fresh(search))


def _is_fresh(search: str) -> bool:
    return search.removesuffix("_apart") in _FRESH_SEARCHES


_TAKE_SQL = f"""taken AS (
    UPDATE annotation_slot SET {HOLD_SQL} FROM found
    WHERE annotation_slot.id = found.id RETURNING annotation_slot.*, found.search)"""


def _search(stage: str, wanted: SlotSearch, *, lock: bool = True, limit: int = 1) -> str:
    names = sql.quote_names(_EXCLUDED_STAGES[Stage(stage)])
    apart = (
        ""
        if stage == Stage.LABEL
        else _NOT_LABELLED.format(names=sql.quote_names(_LABEL_STAGES[Stage(stage)]))
    )
    apart += _NOT_SEEN if stage == Stage.BASELINE else ""
    locked = sql.lock_clause(passing=True) if lock else ""
    condition = f"{wanted.condition} AND s.stage = '{Stage(stage).value}'"
    slots, where = "annotation_slot s", condition
    if wanted.first:
        # CROSS JOIN: SQLite begins with these rows, and does not read all open slots in order.
        slots = f"""(SELECT s.id FROM annotation_slot s WHERE {condition}
            ORDER BY s.priority, s.position LIMIT {WINDOW}) AS looked_at
            CROSS JOIN annotation_slot s"""
        where = "s.id = looked_at.id AND s.state = 'open'"
    if wanted.apart:
        where += " AND i.cluster <> %(after)s"
    return f"""
        SELECT s.id, s.priority, s.position FROM {slots}
        JOIN annotation_item i ON i.id = s.item_id
        WHERE {where} AND i.deleted_at IS NULL
          AND NOT EXISTS (
            SELECT 1 FROM annotation_slot mine
            WHERE mine.member_id = %(member)s AND mine.item_id = s.item_id
              AND mine.stage IN ({names}) {_ROW_BY_ROW})
          AND NOT EXISTS (
            SELECT 1 FROM annotation_mark skipped
            WHERE skipped.member_id = %(member)s AND skipped.item_id = s.item_id
              AND skipped.kind = 'skip' AND skipped.ended_at IS NULL {_ROW_BY_ROW})
          {apart}
        ORDER BY s.priority, s.position LIMIT {limit} {locked}"""


# Makes PostgreSQL run the subquery row by row, with an index. Otherwise PostgreSQL would turn it
# into a join, which reads all slots and marks of the member.
_ROW_BY_ROW = "LIMIT 1 OFFSET 0"
# Extra labels, which have no slot, count as well. In verification and adjudication, authors of
# labels that no longer count at that stage may see the item again.
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
