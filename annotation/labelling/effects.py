"""What follows from a label, or from taking one back, in the same transaction: by its stage."""

from datetime import datetime

from annotation.labelling import adjudication, qualification, resolution, routing, verification
from annotation.models import Item, Label, Stage
from annotation.tasktypes import TaskType


def apply_label(label: Label, task: TaskType, now: datetime) -> None:
    """What a stored label brings about: a resolution, a slot elsewhere, the end of a round."""
    if label.stage == Stage.LABEL:
        resolution.update_resolution(label.item, now=now, revision=label.revision)
        routing.apply_route(label, task, now)
    elif label.stage == Stage.QUALIFICATION:
        qualification.record_answer(label, task, now)
    elif label.stage == Stage.VERIFY:
        verification.apply_verdict(label, task, now)
    elif label.stage == Stage.ADJUDICATE:
        adjudication.apply_decision(label, task, now)


def apply_correction(item: Item, now: datetime) -> None:
    """The same, once the texts of an item, which is locked, were corrected."""
    resolution.update_resolution(item, now=now)
    routing.update_route(item, now=now)


def apply_withdrawal(label: Label, task: TaskType, now: datetime) -> None:
    """The same, once the member has taken the label back."""
    if label.stage == Stage.LABEL:
        routing.undo_route(label, task, now)
        resolution.update_resolution(label.item, now=now)
    elif label.stage == Stage.QUALIFICATION:
        qualification.undo_answer(label, task, now)
    elif label.stage == Stage.VERIFY:
        verification.undo_verdict(label, task, now)
    elif label.stage == Stage.ADJUDICATE:
        adjudication.undo_decision(label, task, now)
        routing.update_route(label.item, now=now)
