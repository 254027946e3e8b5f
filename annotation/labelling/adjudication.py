"""What a person decides of an item becomes its resolution; inside the queue's transactions.

An item waits for at most one decision at a time: one slot at the stage, whose reason says why. To
open, show and decide a case is in `cases`.
"""

from datetime import datetime

from annotation.labelling import resolution
from annotation.labelling import slots as labelling_slots
from annotation.models import Item, Label, Reason, Resolution, Slot, Stage
from annotation.tasktypes import TaskType

ADJUDICATED_RULE = "adjudicated"
# Reasons that give way to what somebody says in so many words: they come back by themselves.
_REPLACEABLE_REASONS = frozenset({Reason.DISPUTED.value, Reason.SHARE.value, ""})


def open_decision(item: Item, reason: str) -> Slot:
    """Let the item, which is locked, wait for a decision; the place that it waits at.

    One that waits already goes on waiting. A decision that was made stops being the one that
    counts only for those who ask again; what it resolved stands until the next one.
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
    """Hold what was decided true; nobody else need decide, verify or settle a dispute."""
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
    """Restore the resolution that follows from the labels."""
    current = Resolution.objects.current().of_item(label.item).first()
    if current is None or current.source != Resolution.Source.ADJUDICATED:
        return
    if current.member_id == label.member_id:
        resolution.end_resolution(current, now=now)
        resolution.update_resolution(label.item, now=now)


def disagreement_reason(decision: Label) -> str:
    """Why people had disagreed, as the decision said, also once it is taken back; or empty."""
    made = Resolution.objects.made_by(decision).first()
    return made.reason if made else ""


def is_decided(item: Item) -> bool:
    """Whether a person has decided the final label of the item's current texts."""
    current = Resolution.objects.current().of_item(item)
    return current.filter(source=Resolution.Source.ADJUDICATED).exists()
