"""Turn an adjudicator's decision into the item's resolution; called inside the queue's
transactions.

An item has at most one open decision at a time. This is a slot at the stage `adjudicate`, and the
reason of the slot says why a decision is needed. `cases` has the functions for the pages of
adjudicators.
"""

from datetime import datetime

from annotation.labelling import resolution
from annotation.labelling import slots as labelling_slots
from annotation.models import Item, Label, Reason, Resolution, Slot, Stage
from annotation.tasktypes import TaskType

ADJUDICATED_RULE = "adjudicated"
# Reasons that a more specific reason may replace. They are set again if they still apply.
_REPLACEABLE_REASONS = frozenset({Reason.DISPUTED.value, Reason.SHARE.value, ""})


def open_decision(item: Item, reason: str) -> Slot:
    """Send the item, which must be locked, to adjudication; returns the slot of the decision.

    If the item has an open or held slot already, that slot is used. An earlier decision stops
    counting and its slot reopens, but its resolution stays in force until the next decision.
    """
    slots = Slot.objects.in_project(item.project_id).at_stage(Stage.ADJUDICATE).of_item(item)
    waiting = slots.in_use().in_order().first()
    if waiting:
        if waiting.reason in _REPLACEABLE_REASONS and waiting.state == Slot.State.OPEN:
            waiting.give_reason(reason)
        return waiting
    used = slots.filter(state=Slot.State.FILLED).first() or slots.in_order().first()
    if used is None:
        return labelling_slots.add_slots(item, Stage.ADJUDICATE, 1, reason=reason)[0]
    for decision in Label.objects.counted().filter(slot=used):
        decision.stop_counting()
    used.reopen()
    used.give_reason(reason)
    return used


def apply_decision(label: Label, task: TaskType, now: datetime) -> None:
    """Make the decision the item's resolution, and close its other open slots for adjudication,
    verification and disputed labels."""
    item = label.item
    names = [field.name for field in task.resolved]
    resolution.set_resolution(
        item,
        {name: label.answers[name] for name in names if name in label.answers},
        rule=ADJUDICATED_RULE,
        source=Resolution.Source.ADJUDICATED,
        now=now,
        member=label.member,
        comment=label.comment,
    )
    labelling_slots.close_open(item, Stage.ADJUDICATE)
    labelling_slots.close_open(item, Stage.VERIFY)
    labelling_slots.close_open(item, Stage.LABEL, Reason.DISPUTED)


def undo_decision(label: Label, task: TaskType, now: datetime) -> None:
    """End the resolution of the decision, and compute the resolution from the labels again.

    Does nothing if the current resolution was not made by this member's adjudication.
    """
    current = Resolution.objects.current().of_item(label.item).first()
    if current is None or current.source != Resolution.Source.ADJUDICATED:
        return
    if current.member_id == label.member_id:
        resolution.end_resolution(current, now=now)
        resolution.update_resolution(label.item, now=now)


def disagreement_reason(decision: Label) -> str:
    """The reason for the disagreement, as given with the decision, even if it was undone; "" if
    there is none."""
    made = Resolution.objects.made_by(decision).first()
    return made.reason if made else ""


def is_decided(item: Item) -> bool:
    """True if an adjudicator decided the item's current resolution."""
    current = Resolution.objects.current().of_item(item)
    return current.filter(source=Resolution.Source.ADJUDICATED).exists()
