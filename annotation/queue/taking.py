"""Whose turn it is with which slot: the current one, the one after it, and new ones."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from annotation import places, practising, probing, writing
from annotation.models import Membership, Revision, Slot, Stage
from annotation.picking import holding, searching, turns
from annotation.picking.holding import Hold
from annotation.picking.turns import Turn
from annotation.queue import offers
from annotation.queue.offers import Offer, Waiting

# How long a search that found nothing is believed. Slots that come back or are added are urgent
# and have an index of their own, so what is missed meanwhile is only what others pass by.
REST = timedelta(seconds=5)
# A slot that is the member's, with its item, and the revision to show.
Taken = tuple[Slot, Revision]


@dataclass(frozen=True)
class Asked:
    """What a member asks for; `draw`, in 0 to 1, decides whether it may be a silent check."""

    stage: str
    turn: Turn
    now: datetime
    draw: float


def next_offer(
    member: Membership,
    *,
    stage: str = Stage.WORK,
    ahead: bool = False,
    now: datetime | None = None,
    draw: float | None = None,
) -> Offer | Waiting:
    """The item that the member holds or takes now, or why there is none.

    `ahead` asks for the item after that one, which is held as well; Stage.WORK hands out
    everything of the workbench; `draw`, in 0 to 1, decides whether a new one is a silent check.
    """
    now = now or timezone.now()
    draw = random.random() if draw is None else draw
    choose = _after_current if ahead else _current
    with writing.transact():
        taken = choose(member, Asked(stage, turns.lock(member, stage), now, draw))
    return offers.of(member, *taken) if taken else offers.waiting(member, stage, now)


def _current(member: Membership, asked: Asked) -> Taken | None:
    """The slot that the member works on, held from now on; None if there is none.

    It is the one they hold, else the one that was held ahead, else a newly taken one.
    """
    hold, stages = Hold(places.until(member, asked.now)), places.stages_of(asked.stage)
    if not _may_be_known(member, asked):
        return _take(member, asked, hold, held_at=stages)
    held = searching.held(member, stages)
    return holding.hold(held[0].slot_id, member, hold) if held else _take(member, asked, hold)


def _after_current(member: Membership, asked: Asked) -> Taken | None:
    """The slot that comes after the current one, held as well; None if there is none.

    Nothing is held ahead of practice, where an explanation comes in between, or of nothing.
    """
    hold = Hold(places.until(member, asked.now), ahead=True)
    held = searching.held(member, places.stages_of(asked.stage))
    if not held or held[0].stage == Stage.PRACTICE:
        return None
    if held[0].ahead:  # the page is past what the member held before
        holding.hold(held[0].slot_id, member, Hold(hold.until))
    if len(held) > 1:
        return holding.hold(held[1].slot_id, member, hold)
    return _take(member, asked, hold)


def _may_be_known(member: Membership, asked: Asked) -> bool:
    """Whether the item may be one whose answer is known, which comes before the work there is."""
    at_work = asked.stage == Stage.WORK
    return at_work and (practising.due(member) or probing.due(member, asked.draw))


def _take(
    member: Membership, asked: Asked, hold: Hold, held_at: Iterable[str] = ()
) -> Taken | None:
    """A newly held slot, or first one that the member holds at a stage of `held_at`."""
    stage, turn, now, draw = asked.stage, asked.turn, asked.now, asked.draw
    if stage != Stage.WORK:
        return _pick(member, stage, turn, now, hold, held_at)
    if practising.due(member):
        return _own(practising.slot(member, now), member, hold)
    if probing.due(member, draw) and searching.is_any_free(member, stage, turn, now):
        # Only beside work: an item that comes when all is done is known for a check.
        probe = _own(probing.slot(member, draw, now), member, hold)
        if probe is not None:
            return probe
    work = _pick(member, stage, turn, now, hold, held_at)
    if work is not None:
        return work
    return _pick(member, Stage.BASELINE, turns.lock(member, Stage.BASELINE), now, hold)


def _pick(
    member: Membership,
    stage: str,
    turn: Turn,
    now: datetime,
    hold: Hold,
    held_at: Iterable[str] = (),
) -> Taken | None:
    picked = searching.pick(member, stage, turn, now, hold, held_at)
    if picked is None and (turn.nothing_until is None or turn.nothing_until <= now):
        picked = searching.pick_behind(member, stage, hold)
        if picked is None and not searching.is_any_behind(member, stage):
            turns.found_nothing(member, stage, now + REST)
    if picked is None:
        return None
    if picked.fresh:
        turns.move_on(member, stage, turn, picked.slot.priority, picked.slot.position)
    return picked.slot, picked.revision


def _own(slot: Slot | None, member: Membership, hold: Hold) -> Taken | None:
    """A slot that was made on the spot, held like any other."""
    return holding.hold(slot.pk, member, hold) if slot else None
