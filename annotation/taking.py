"""Whose turn it is with which slot: the current one, the one after it, and new ones."""

from datetime import datetime, timedelta

from annotation import picking, places, practising, probing
from annotation.models import Membership, Slot, Stage
from annotation.picking import Held, Hold, Turn

# How long a search that found nothing is believed. Slots that come back or are added are urgent
# and have an index of their own, so what is missed meanwhile is only what others pass by.
REST = timedelta(seconds=5)


def current(member: Membership, stage: str, turn: Turn, now: datetime, draw: float) -> int | None:
    """The id of the slot that the member works on, held from now on; None if there is none.

    It is the one they hold, else the one that was held ahead, else a newly taken one.
    """
    hold = Hold(places.until(member, now))
    held = picking.held(member, places.stages_of(stage))
    return _keep(held[0], member, hold) if held else take(member, stage, turn, now, draw, hold)


def after_current(
    member: Membership, stage: str, turn: Turn, now: datetime, draw: float
) -> int | None:
    """The id of the slot that comes after the current one, held as well; None if there is none.

    Nothing is held ahead of practice, where an explanation comes in between, or of nothing.
    """
    hold = Hold(places.until(member, now), ahead=True)
    held = picking.held(member, places.stages_of(stage))
    if not held or held[0].stage == Stage.PRACTICE:
        return None
    if held[0].ahead:  # the page is past what the member held before
        _keep(held[0], member, Hold(hold.until))
    if len(held) > 1:
        return _keep(held[1], member, hold)
    return take(member, stage, turn, now, draw, hold)


def take(
    member: Membership, stage: str, turn: Turn, now: datetime, draw: float, hold: Hold
) -> int | None:
    """The id of a newly held slot; `draw`, in 0 to 1, decides whether it is a silent check."""
    if stage != Stage.WORK:
        return _pick(member, stage, turn, now, hold)
    if practising.due(member):
        return _own(practising.slot(member, now), member, hold)
    if probing.due(member, draw) and picking.pick(member, stage, turn, now):
        # Only beside work: an item that comes when all is done is known for a check.
        probe = _own(probing.slot(member, draw, now), member, hold)
        if probe is not None:
            return probe
    work = _pick(member, stage, turn, now, hold)
    if work is not None:
        return work
    return _pick(member, Stage.BASELINE, picking.lock(member, Stage.BASELINE), now, hold)


def _pick(member: Membership, stage: str, turn: Turn, now: datetime, hold: Hold) -> int | None:
    picked = picking.pick(member, stage, turn, now, hold)
    if picked is None and (turn.nothing_until is None or turn.nothing_until <= now):
        picked = picking.pick_behind(member, stage, hold)
        if picked is None and not picking.is_any_behind(member, stage):
            picking.found_nothing(member, stage, now + REST)
    if picked and picked.fresh:
        picking.move_cursor(member, stage, turn, picked)
    return picked.slot_id if picked else None


def _own(slot: Slot | None, member: Membership, hold: Hold) -> int | None:
    """A slot that was made on the spot, held like any other."""
    if slot is None:
        return None
    picking.hold(slot.pk, member, hold.until, ahead=hold.ahead)
    return slot.pk


def _keep(held: Held, member: Membership, hold: Hold) -> int:
    picking.hold(held.slot_id, member, hold.until, ahead=hold.ahead)
    return held.slot_id
