"""What follows from a label, or from taking one back, in the same transaction: by its stage.

A label with a route asks for a decision by an expert, says that the gold answer is wrong, or
takes the item out. All three hold as long as a counted label of the current texts says so.

A second person confirms what the labels say of an item, or contests it (study 001, 3.3). What is
confirmed becomes the resolution; what is contested waits for a decision.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from annotation import tasktypes
from annotation.labelling import adjudication, assignment, qualification, resolution, slots
from annotation.models import Item, Label, Reason, Resolution, Stage
from annotation.tasktypes import TaskType

EXCLUDE, GOLD_ERROR = "exclude", "gold-error"
# The routes that ask somebody to decide, the stronger last.
REASON_BY_ROUTE = {"expert": Reason.EXPERT, GOLD_ERROR: Reason.GOLD_ERROR}


def apply_label(label: Label, task: TaskType, now: datetime) -> None:
    """What a stored label brings about: a resolution, a slot elsewhere, the end of a round."""
    if label.stage == Stage.LABEL:
        resolution.update_resolution(label.item, now=now, revision=label.revision)
        apply_route(label, task, now)
    elif label.stage == Stage.QUALIFICATION:
        qualification.record_answer(label, task, now)
    elif label.stage == Stage.VERIFY:
        apply_verdict(label, task, now)
    elif label.stage == Stage.ADJUDICATE:
        adjudication.apply_decision(label, task, now)


def apply_correction(item: Item, now: datetime) -> None:
    """The same, once the texts of an item, which is locked, were corrected."""
    resolution.update_resolution(item, now=now)
    update_route(item, now=now)


def apply_withdrawal(label: Label, task: TaskType, now: datetime) -> None:
    """The same, once the member has taken the label back."""
    if label.stage == Stage.LABEL:
        undo_route(label, task, now)
        resolution.update_resolution(label.item, now=now)
    elif label.stage == Stage.QUALIFICATION:
        qualification.undo_answer(label, task, now)
    elif label.stage == Stage.VERIFY:
        undo_verdict(label, task, now)
    elif label.stage == Stage.ADJUDICATE:
        adjudication.undo_decision(label, task, now)
        update_route(label.item, now=now)


def apply_route(label: Label, task: TaskType, now: datetime) -> None:
    """Follow the label's route, and that of the label which it supersedes no longer."""
    before = label.supersedes
    if task.route_of(label.answers) or (before and task.route_of(before.answers)):
        update_route(label.item, now=now)


def undo_route(label: Label, task: TaskType, now: datetime) -> None:
    """Leave the label's route, unless another label asks for the same."""
    if task.route_of(label.answers):
        update_route(label.item, now=now)


def update_route(item: Item, *, now: datetime) -> None:
    """Bring the item, which is locked, to where its counted work labels send it, and nowhere else.

    What somebody has begun to decide stays theirs, and what was decided is not asked again.
    """
    task = tasktypes.load_task_type(item.project)
    labels = Label.objects.counted().of_item(item).at_stage(Stage.LABEL)
    said = {
        task.route_of(label.answers): label
        for label in labels.of_revision(item.revision()).order_by("-created_at", "-pk")
    }
    decided = adjudication.is_decided(item)
    for route, reason in REASON_BY_ROUTE.items():
        if route not in said:
            slots.close_open(item, Stage.ADJUDICATE, reason)
        elif not decided:
            adjudication.open_decision(item, reason)
    if EXCLUDE in said:
        _exclude(item, said[EXCLUDE], task, now)
    else:
        _include_again(item, now)


def _exclude(item: Item, label: Label, task: TaskType, now: datetime) -> None:
    """Resolve the item as what the label says, which drops it; nobody need label it any more."""
    current = Resolution.objects.current().of_item(item).first()
    if current and _must_stay(current):
        return
    names = [field.name for field in task.resolved]
    values = {name: label.answers[name] for name in names if name in label.answers}
    source = Resolution.Source.LABELS
    resolution.set_resolution(item, values, rule=resolution.EXCLUDED, source=source, now=now)
    slots.close_open(item, Stage.LABEL)
    slots.close_open(item, Stage.VERIFY)
    slots.close_open(item, Stage.ADJUDICATE, Reason.DISPUTED)


def _include_again(item: Item, now: datetime) -> None:
    current = Resolution.objects.current().of_item(item).first()
    if current and current.rule == resolution.EXCLUDED:
        resolution.end_resolution(current, now=now)
        assignment.refill_slots(item, now=now)


def _must_stay(current: Resolution) -> bool:
    return current.rule == resolution.EXCLUDED or current.source != Resolution.Source.LABELS


def apply_verdict(label: Label, task: TaskType, now: datetime) -> None:
    """Resolve what is confirmed, and let what is contested be decided."""
    decided = resolution.aggregate_labels(label.item)
    if decided is None:  # the labels that the person saw were taken back meanwhile
        label.stop_counting()
        if label.slot:
            label.slot.close()
        return
    if is_confirmation(task, label.answers, decided):
        slots.close_open(label.item, Stage.ADJUDICATE, Reason.CONTESTED)
        source = Resolution.Source.LABELS
        resolution.set_resolution(
            label.item, decided, rule=resolution.VERIFIED, source=source, now=now
        )
        return
    _end_verified_resolution(label, now)
    adjudication.open_decision(label.item, Reason.CONTESTED)


def undo_verdict(label: Label, task: TaskType, now: datetime) -> None:
    """Neither confirmed nor contested: the item waits for a second person again."""
    _end_verified_resolution(label, now)
    slots.close_open(label.item, Stage.ADJUDICATE, Reason.CONTESTED)


def is_confirmation(task: TaskType, answers: Mapping[str, Any], decided: Mapping[str, Any]) -> bool:
    """Whether the answers say the same as the labels, in all that becomes the resolution."""
    return all(answers.get(field.name) == decided.get(field.name) for field in task.resolved)


def _end_verified_resolution(label: Label, now: datetime) -> None:
    current = Resolution.objects.current().of_item(label.item).first()
    if current and current.rule == resolution.VERIFIED:
        current.end(now)
