"""Whose turn it is with which slot: the current one, the one after it, and new ones."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from annotation.db import transactions
from annotation.labelling import control_items, qualification, slots
from annotation.labelling.models.slots import Hold
from annotation.labelling.queue import claims, offers, search
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
    """What a member asks for; `draw`, in 0 to 1, decides whether it may be a silent check."""

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

    `ahead` asks for the item after that one, which is held as well; Stage.LABEL hands out
    everything of the workbench; `draw`, in 0 to 1, decides whether a new one is a silent check.
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
    held = search.held_slots(member, stages)
    return claims.hold_slot(held[0].slot_id, hold) if held else _take_slot(member, asked, hold)


def _hold_next(member: Membership, asked: OfferRequest) -> SlotAndRevision | None:
    """The slot that comes after the current one, held as well; None if there is none.

    Nothing is held ahead of practice, where an explanation comes in between, or of nothing.
    """
    hold = Hold(member.pk, slots.hold_until(member, asked.now), ahead=True)
    held = search.held_slots(member, slots.related_stages(asked.stage))
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
    if control_items.is_due(member, draw) and search.is_any_free(member, stage, turn, now):
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
    picked = search.pick_slot(member, stage, turn, now, hold, held_at)
    if picked is None and (turn.nothing_until is None or turn.nothing_until <= now):
        picked = search.pick_behind_cursor(member, stage, hold)
        if picked is None and not search.is_any_behind_cursor(member, stage):
            claims.record_empty_search(member, stage, now + EMPTY_SEARCH_PAUSE)
    if picked is None:
        return None
    if picked.fresh:
        claims.advance_cursor(member, stage, turn, picked.slot.priority, picked.slot.position)
    return picked.slot, picked.revision


def _hold_created(slot: Slot | None, hold: Hold) -> SlotAndRevision | None:
    """A slot that was made on the spot, held like any other."""
    return claims.hold_slot(slot.pk, hold) if slot else None
