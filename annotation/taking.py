"""Whose turn it is with which slot: the current one, the one after it, and new ones."""

from datetime import datetime, timedelta

from annotation import picking, places, practising, probing
from annotation.models import Membership, Stage

# How long a search that found nothing is believed. Slots that come back or are added are urgent
# and have an index of their own, so what is missed meanwhile is only what others pass by.
REST = timedelta(seconds=5)


def current(member: Membership, stage: str, now: datetime, draw: float) -> int | None:
    """The id of the slot that the member works on, held from now on; None if there is none.

    It is the one they hold, else the one that was held ahead, else a newly taken one.
    """
    held = picking.held(member, places.stages_of(stage))
    slot_id = held[0].slot_id if held else take(member, stage, now, draw)
    if slot_id is not None:
        picking.hold(slot_id, member, places.until(member, now), ahead=False)
    return slot_id


def after_current(member: Membership, stage: str, now: datetime, draw: float) -> int | None:
    """The id of the slot that comes after the current one, held as well; None if there is none.

    Nothing is held ahead of practice, where an explanation comes in between, or of nothing.
    """
    held = picking.held(member, places.stages_of(stage))
    if not held or held[0].stage == Stage.PRACTICE:
        return None
    if held[0].ahead:  # the page is past what the member held before
        picking.hold(held[0].slot_id, member, places.until(member, now), ahead=False)
    slot_id = held[1].slot_id if len(held) > 1 else take(member, stage, now, draw)
    if slot_id is not None:
        picking.hold(slot_id, member, places.until(member, now), ahead=True)
    return slot_id


def take(member: Membership, stage: str, now: datetime, draw: float) -> int | None:
    """The id of a free slot, locked; `draw`, in 0 to 1, decides whether it is a silent check."""
    if stage != Stage.WORK:
        return _pick(member, stage, now)
    if practising.due(member):
        practice = practising.slot(member, now)
        return practice.pk if practice else None
    every = member.project.probe_every
    wanted = every and draw < 1 / every and _has_work(member, now)
    if wanted and (probe := probing.slot(member, draw, now)):
        return probe.pk
    return _pick(member, Stage.WORK, now) or _pick(member, Stage.BASELINE, now)


def _has_work(member: Membership, now: datetime) -> bool:
    """Whether there is work as well: an item that comes when all is done is known for a check."""
    turn = picking.turn_of(member, Stage.WORK)
    return picking.pick(member, Stage.WORK, turn, now) is not None


def _pick(member: Membership, stage: str, now: datetime) -> int | None:
    turn = picking.turn_of(member, stage)
    picked = picking.pick(member, stage, turn, now)
    if picked is None and (turn.nothing_until is None or turn.nothing_until <= now):
        picked = picking.pick_behind(member, stage)
        if picked is None and not picking.is_any_behind(member, stage):
            picking.found_nothing(member, stage, now + REST)
    if picked and picked.fresh:
        picking.move_cursor(member, stage, turn, picked)
    return picked.slot_id if picked else None
