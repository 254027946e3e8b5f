"""The effects of storing, correcting or undoing a label, by its stage, in the same transaction.

A label can have a route: it asks for an expert, reports a wrong gold answer, or excludes the item.
A route applies as long as a counted label of the current texts asks for it.

In verification, a second person confirms or contests the labels of an item (study 001, 3.3). A
confirmed value becomes the resolution; a contested value goes to adjudication.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from annotation import tasktypes
from annotation.labelling import adjudication, assignment, qualification, resolution, slots
from annotation.models import Item, Label, Reason, Resolution, Stage
from annotation.tasktypes import TaskType

EXCLUDE, GOLD_ERROR = "exclude", "gold-error"
# The routes that lead to adjudication, the stronger route last.
REASON_BY_ROUTE = {"expert": Reason.EXPERT, GOLD_ERROR: Reason.GOLD_ERROR}


def apply_label(label: Label, task: TaskType, now: datetime) -> None:
    """Apply a stored label: update the resolution, open or close slots, or end a qualification
    round. The item's route is updated if the label has a route, or the label that it supersedes."""
    if label.stage == Stage.LABEL:
        resolution.update_resolution(label.item, now=now, revision=label.revision)
        before = label.supersedes
        if task.route_of(label.answers) or (before and task.route_of(before.answers)):
            update_route(label.item, now=now)
    elif label.stage == Stage.QUALIFICATION:
        qualification.record_answer(label, task, now)
    elif label.stage == Stage.VERIFY:
        apply_verdict(label, task, now)
    elif label.stage == Stage.ADJUDICATE:
        adjudication.apply_decision(label, task, now)


def apply_correction(item: Item, now: datetime) -> None:
    """Update the resolution and the route after the texts of the item, which must be locked, were
    corrected."""
    resolution.update_resolution(item, now=now)
    update_route(item, now=now)
    ended = Resolution.objects.of_item(item).filter(rule=resolution.EXCLUDED, current=False)
    if ended.filter(revision__number=item.revision_number - 1).exists():
        # The correction ended the exclusion, which had closed slots.
        assignment.refill_slots(item, now=now)


def apply_withdrawal(label: Label, task: TaskType, now: datetime) -> None:
    """Reverse the effects of a label that the member has undone."""
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


def undo_route(label: Label, task: TaskType, now: datetime) -> None:
    """Update the item's route if the withdrawn label has a route; the route stays if another label
    asks for it."""
    if task.route_of(label.answers):
        update_route(label.item, now=now)


def update_route(item: Item, *, now: datetime) -> None:
    """Apply the route that the item's counted labels ask for, and undo other routes; the item must
    be locked.

    A decision that somebody has opened stays with them, and a decided item is not sent to
    adjudication again.
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
    # A closed decision may have been the only one that the item waited for.
    resolution.update_resolution(item, now=now)


def _exclude(item: Item, label: Label, task: TaskType, now: datetime) -> None:
    """Resolve the item with the values of the label that excludes it, and close its open slots.

    Do nothing if the item is already excluded, or if its resolution was not made from labels.
    """
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
    """Resolve the item if the label confirms the others; send it to adjudication if it contests
    them. If somebody else has the member's slot by now, a confirmation is kept and changes nothing:
    they may have contested the labels."""
    decided = resolution.aggregate_labels(label.item)
    if decided is None:  # the labels that the person saw were undone in the meantime
        label.stop_counting()
        if label.slot:
            label.slot.close()
        return
    if is_confirmation(task, label.answers, decided):
        if label.slot is None:
            return
        slots.close_open(label.item, Stage.ADJUDICATE, Reason.CONTESTED)
        source = Resolution.Source.LABELS
        resolution.set_resolution(
            label.item, decided, rule=resolution.VERIFIED, source=source, now=now
        )
        return
    _end_verified_resolution(label, now)
    adjudication.open_decision(label.item, Reason.CONTESTED)


def undo_verdict(label: Label, task: TaskType, now: datetime) -> None:
    """End the verified resolution or the open adjudication, so that the item waits for verification
    again."""
    _end_verified_resolution(label, now)
    slots.close_open(label.item, Stage.ADJUDICATE, Reason.CONTESTED)


def is_confirmation(task: TaskType, answers: Mapping[str, Any], decided: Mapping[str, Any]) -> bool:
    """True if the answers equal the result of the labels in all resolved fields; several values in
    any order."""
    return all(
        _in_order(answers.get(field.name)) == _in_order(decided.get(field.name))
        for field in task.resolved
    )


def _in_order(answer: Any) -> Any:
    # Without a common value, the result has an empty list, and an answer has nothing.
    return sorted(answer, key=str) or None if isinstance(answer, list) else answer


def _end_verified_resolution(label: Label, now: datetime) -> None:
    current = Resolution.objects.current().of_item(label.item).first()
    if current and current.rule == resolution.VERIFIED:
        current.end(now)
