"""Items with a known answer: qualification items and control items.

An item with a known answer is not part of the normal work or of any run. The known answer is a
resolution of source `known`: `values` has the correct answer of every compared field, `comment` has
the explanation.

A labelled item can get a known answer only after it is resolved, so that nobody loses a slot that
they are working on. Its labels are kept, and count again once the item is released.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from annotation import tasktypes
from annotation.db import transactions
from annotation.errors import Refused
from annotation.items import readiness
from annotation.labelling import assignment, correct_answers, resolution, slots
from annotation.labelling.correct_answers import PRACTICE, PURPOSES
from annotation.models import (
    Event,
    Item,
    Label,
    Membership,
    Project,
    Resolution,
    Revision,
    Slot,
    Stage,
)
from stats.lots import draw_number

TEST_PURPOSE = "test"
_REVEALING_WORDS = re.compile(r"probe|practi[cs]e|check|known|trap|control", re.IGNORECASE)


def set_answer(
    project: Project,
    item: Item,
    purpose: str,
    right: Mapping[str, object],
    explanation: str,
    member: Membership | None,
    *,
    now: datetime | None = None,
) -> Resolution:
    """Make the item a qualification or control item, or replace its known answer.

    Raises `Refused` while somebody is labelling the item or it waits for a decision, and
    `FieldError` for answers that the task type does not accept.
    """
    now = now or timezone.now()
    task = tasktypes.load_task_type(project)
    answer = correct_answers.clean_correct_answer(task, purpose, right, explanation)
    with transactions.transact():
        item = Item.objects.locked().get(pk=item.pk, project=project)
        readiness.check_ready(item)
        _check_free(item, now)
        _close_unfilled(item, Stage.LABEL)
        if item.purpose not in (purpose, TEST_PURPOSE):
            _close_unfilled(item, Stage.QUALIFICATION, Stage.CONTROL)
        Resolution.objects.current().of_item(item).update(current=False, ended_at=now)
        item.purpose = purpose
        item.save(update_fields=["purpose"])
        known = build_resolution(item.revision(), answer, member, now)
        known.taxonomy_id = item.project.taxonomy_id
        known.save()
        _record("known", item, member, purpose=purpose, values=answer.values)
    return known


def release_item(item: Item, member: Membership | None, *, now: datetime | None = None) -> None:
    """Make the item a normal item again, as it was before its answer became known.

    Its earlier labels count again, a resolution that did not come from labels is restored, and
    missing slots are opened. Members who saw the answer in qualification stay marked as having seen
    it. Raises `Refused` for an item without a known answer, and if too few qualification items
    would be left for a round.
    """
    now = now or timezone.now()
    with transactions.transact():
        # Before the item, so that a change of the settings applies either to this or after it.
        assignment.lock_settings(item.project)
        item = Item.objects.locked().select_related("project").get(pk=item.pk)
        if item.purpose not in PURPOSES:
            raise Refused("This item has no known answer.")
        _check_enough_left(item)
        purpose, item.purpose = item.purpose, TEST_PURPOSE
        item.save(update_fields=["purpose"])
        _close_unfilled(item, Stage.QUALIFICATION, Stage.CONTROL)
        known = Resolution.objects.current().of_item(item).first()
        if known:
            known.end(now)
        if not _restore_resolution(item, now):
            assignment.refill_slots(item, now=now)
        _record("known-release", item, member, purpose=purpose)


def build_resolution(
    revision: Revision,
    answer: correct_answers.CorrectAnswer,
    member: Membership | None,
    now: datetime,
) -> Resolution:
    """Build the resolution with the known answer of a revision, without storing it."""
    return Resolution(
        item=revision.item,
        revision=revision,
        value=answer.value,
        values=answer.values,
        comment=answer.explanation,
        rule="known answer",
        source=Resolution.Source.KNOWN,
        member=member,
        created_at=now,
    )


def items_with_answer(project: Project, purpose: str) -> list[Item]:
    """The items of a purpose whose current texts have a known answer."""
    return list(Item.objects.in_project(project).with_known_answer(purpose))


def items_without_answer(project: Project) -> list[Item]:
    """Qualification and control items that nobody gets, as their current texts have no known
    answer.

    Their texts were corrected after the answer was set.
    """
    found = {item.pk for purpose in PURPOSES for item in items_with_answer(project, purpose)}
    meant = Item.objects.in_project(project).for_purposes(PURPOSES)
    return [item for item in meant if item.pk not in found]


def key_reveals_purpose(item: Item) -> bool:
    """True if the key, which annotators see, suggests that the item is a control item."""
    return bool(_REVEALING_WORDS.search(item.key))


def answers_at_label_time(labels: Iterable[Label]) -> dict[int, Resolution]:
    """For each label, by its id, the known answer that was in force when the label was given.

    Used for qualification, where the member was shown that answer. Labels of texts without a known
    answer at that time are left out.
    """
    labels = list(labels)
    of_revision: dict[int, list[Resolution]] = defaultdict(list)
    revisions = {label.revision_id for label in labels}
    for known in Resolution.objects.known().of_revisions(revisions):
        of_revision[known.revision_id].append(known)
    found = {}
    for label in labels:
        for known in of_revision[label.revision_id]:  # the last match wins
            if _was_current(known, label.created_at):
                found[label.pk] = known
    return found


def latest_answers(revisions: Iterable[int]) -> dict[int, Resolution]:
    """The latest known answer of each revision, even if it has ended, by the revision's id.

    Used for control items: annotators never see the answer, and a lead may have corrected it since.
    Revisions that never had a known answer are left out.
    """
    found = Resolution.objects.known().of_revisions(revisions)
    return {known.revision_id: known for known in found}


def compared_values(label: Label, known: Resolution, project: Project) -> dict[str, Any]:
    """The known answers with which the label's answers are compared: without those to questions
    that it was not asked, since a lead has removed them or turned them off. Empty if there is none
    to the question that decides: any label would be right."""
    left_out = known.values.keys() - label.answers.keys()
    if not left_out:
        return known.values
    task = tasktypes.load_version(label.task_type)
    asked = task.with_switches(tasktypes.enabled_switches(project)).fields
    left_out -= {field.name for field in asked}
    if left_out and task.deciding.name not in known.values:
        return {}
    return {name: value for name, value in known.values.items() if name not in left_out}


def order_for_member(member: Membership, found: Iterable[Item]) -> list[Item]:
    """Sort the items in the member's own order, which is the same in every copy of the project."""
    of = f"known\0{member.project.slug}\0{member.alias}"
    return sorted(found, key=lambda item: draw_number(f"{of}\0{item.key}"))


def hold_new_slot(item: Item, stage: str, member: Membership, now: datetime) -> Slot:
    """Hold the member's own slot for the item at the stage, else one that was closed, and create
    one if needed; called inside the queue's transaction.

    Without the second, whoever skips an item and opens it again would add slots without end.
    """
    item = Item.objects.locked().get(pk=item.pk)
    until = slots.hold_until(member, now)
    at_stage = Slot.objects.filter(item=item, stage=stage)
    closed = at_stage.filter(state=Slot.State.CLOSED)
    slot = at_stage.filter(member=member).locked().first() or closed.locked().first()
    if slot:
        slot.hold(member.pk, until)
    return slot or slots.create_held_slot(member, item, stage, until)


def _check_free(item: Item, now: datetime) -> None:
    if item.deleted_at:
        raise Refused("This item was removed from the project. Choose another one.")
    if item.duplicate_of_id:
        raise Refused("This item is a duplicate. Choose the original.")
    if item.purpose in PURPOSES:
        return
    if Slot.objects.filter(item=item).held(now).exists():
        raise Refused("Somebody is labelling this item now. Try again later.")
    if Slot.objects.of_item(item).at_stage(Stage.ADJUDICATE).in_use().exists():
        # The decision would replace the known answer.
        raise Refused("This item waits for a decision. Decide it first, or cancel the request.")
    labelled = Label.objects.counted().filter(item=item, stage=Stage.LABEL).exists()
    if labelled and not Resolution.objects.current().of_item(item).exists():
        raise Refused("This item already has labels. Wait until it has its final label.")


def _check_enough_left(item: Item) -> None:
    needed = item.project.practice_items
    if item.purpose == PRACTICE and 0 < needed > len(items_with_answer(item.project, PRACTICE)) - 1:
        raise Refused(
            f"A qualification round needs {needed} items; without this item there are too few. "
            "Add another item first, or make the rounds shorter."
        )


def _close_unfilled(item: Item, *stages: str) -> None:
    """Close the item's open and held slots at these stages."""
    for slot in Slot.objects.filter(item=item, stage__in=stages).in_use().locked():
        slot.close()


def _restore_resolution(item: Item, now: datetime) -> bool:
    """Restore the resolution that ended when the answer became known, unless it was undone since or
    came from labels alone, which give it anew; return True if there was one."""
    of_item = Resolution.objects.filter(item=item, revision=item.revision())
    known = of_item.known().values("created_at")
    before = of_item.not_known().filter(ended_at__in=known).order_by("-ended_at").first()
    decided = (resolution.VERIFIED, resolution.EXCLUDED)
    if before is None:
        return False
    if before.source == Resolution.Source.LABELS and before.rule not in decided:
        return False
    if _is_undone(before):
        return False
    before.pk, before.current, before.created_at, before.ended_at = None, True, now, None
    before.save(force_insert=True)
    return True


def _is_undone(before: Resolution) -> bool:
    """True if the decision or verification that made the resolution was undone after it ended."""
    made = Label.objects.of_item(before.item).of_revision(before.revision)
    if before.source == Resolution.Source.ADJUDICATED:
        made = made.at_stage(Stage.ADJUDICATE).filter(member=before.member_id)
    elif before.rule == resolution.VERIFIED:
        made = made.at_stage(Stage.VERIFY)
    else:
        return False
    undone = made.filter(withdrawn_at__gte=before.ended_at)
    return undone.exists() and not made.current().exists()


def _was_current(known: Resolution, time: datetime) -> bool:
    ended = known.ended_at
    return known.created_at <= time and (ended is None or ended > time)


def _record(kind: str, item: Item, member: Membership | None, **data: object) -> None:
    member_id = member.pk if member else None
    Event.record(kind, item.key, project_id=item.project_id, member_id=member_id, **data)
