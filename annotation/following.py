"""What follows from a label, or from taking one back, in the same transaction: by its stage."""

from datetime import datetime

from annotation import adjudicating, practising, resolving, routing, verifying
from annotation.models import Item, Label, Stage
from annotation.tasktypes import TaskType


def after(label: Label, task: TaskType, now: datetime) -> None:
    """What a stored label brings about: a resolution, a slot elsewhere, the end of a round."""
    if label.stage == Stage.WORK:
        resolving.settle(label.item, now=now, revision=label.revision)
        routing.after(label, task, now)
    elif label.stage == Stage.PRACTICE:
        practising.after(label, task, now)
    elif label.stage == Stage.VERIFY:
        verifying.after(label, task, now)
    elif label.stage == Stage.ADJUDICATE:
        adjudicating.after(label, task, now)


def after_correction(item: Item, now: datetime) -> None:
    """The same, once the texts of an item, which is locked, were corrected."""
    resolving.settle(item, now=now)
    routing.settle(item, now=now)


def after_withdrawal(label: Label, task: TaskType, now: datetime) -> None:
    """The same, once the member has taken the label back."""
    if label.stage == Stage.WORK:
        routing.after_withdrawal(label, task, now)
        resolving.settle(label.item, now=now)
    elif label.stage == Stage.PRACTICE:
        practising.after_withdrawal(label, task, now)
    elif label.stage == Stage.VERIFY:
        verifying.after_withdrawal(label, task, now)
    elif label.stage == Stage.ADJUDICATE:
        adjudicating.after_withdrawal(label, task, now)
        routing.settle(label.item, now=now)
