"""Qualification: rounds of items with known answers, each explained after it is answered.

Members get work once they have passed a round or a lead has exempted them (study 001, appendix C).
Leads and adjudicators need no qualification: they may see all items, so they could look up the
answers. After a failed round, the next round uses items that the member has not seen; if too few
are left, the member waits for a lead.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from annotation import tasktypes
from annotation.db import transactions
from annotation.errors import Refused
from annotation.labelling import answer_key, correct_answers
from annotation.labelling.correct_answers import PRACTICE
from annotation.models import (
    Event,
    Item,
    Label,
    Mark,
    Membership,
    PracticeRound,
    Project,
    Resolution,
    Revision,
    Slot,
    Stage,
)


@dataclass(frozen=True)
class Lesson:
    """The feedback on one answer: whether it was right, the known answer, and the explanation.

    `round` is the round to which the answer belongs, in its current state.
    """

    item: Item
    revision: Revision
    right: bool
    answers: dict[str, Any]
    known: dict[str, Any]
    explanation: str
    answered_at: datetime
    round: PracticeRound | None


@dataclass(frozen=True)
class QualificationRound:
    """A round with the lessons of its answers, oldest first."""

    row: PracticeRound
    lessons: tuple[Lesson, ...]


def is_due(member: Membership) -> bool:
    """True if the member must qualify before getting work; makes no query."""
    wanted = member.project.practice_items > 0 and member.practised_at is None
    return wanted and not member.can("items")


def take_slot(member: Membership, now: datetime) -> Slot | None:
    """Hold and return a slot of the next qualification item; called inside the queue's transaction.

    None if no qualification is due, or if too few items are left for another round: see
    `waits_for_lead`.
    """
    if not is_due(member):
        return None
    running = _current_round(member) or _begin_round(member, now)
    item = _next_item(member, running) if running else None
    return answer_key.hold_new_slot(item, Stage.QUALIFICATION, member, now) if item else None


def waits_for_lead(member: Membership) -> bool:
    """True if qualification is due but only a lead can help, because no items are left for a
    round."""
    if not is_due(member):
        return False
    running = _current_round(member)
    return not (_next_item(member, running) if running else _enough_unseen(member))


def describe_due(member: Membership) -> str:
    """Say which item of the qualification the member answers next, such as "item 1 of 3, 2 needed
    to pass"; "" if none is due."""
    if not is_due(member):
        return ""
    running = _current_round(member)
    project = member.project
    size, needed = (
        (running.size, running.needed)
        if running
        else (project.practice_items, project.practice_pass)
    )
    answered = running.answered if running else 0
    return f"item {min(answered + 1, size)} of {size}, {needed} needed to pass"


def find_waiting(project: Project) -> list[Membership]:
    """The members who wait for a lead, by alias; see `waits_for_lead`."""
    if not project.practice_items:
        return []
    people = Membership.objects.in_project(project).who_label().filter(practised_at=None)
    return [one for one in people if one.account_id and waits_for_lead(one)]


def find_feedback(member: Membership) -> PracticeRound | None:
    """The latest round about which a lead has written to the member, while qualification is due."""
    if not is_due(member):
        return None
    written = member.practice_rounds.exclude(feedback="").select_related("feedback_by")
    return written.order_by("number").last()


def build_lesson(label: Label) -> Lesson | None:
    """Build the lesson of a qualification label; None for any other label."""
    if label.stage != Stage.QUALIFICATION:
        return None
    before = label.member.practice_rounds.filter(started_at__lte=label.created_at)
    return _lesson_of_label(label, before.last(), answer_key.answers_at_label_time([label]))


def can_undo(label: Label) -> bool:
    """True if the label can be undone. Qualification answers cannot, since their explanation was
    shown."""
    return label.stage != Stage.QUALIFICATION


def record_answer(label: Label, task: tasktypes.TaskType, now: datetime) -> None:
    """Count a qualification answer in its round; the last answer ends the round. Called inside the
    queue's transaction.

    Records that the member has seen the known answer, in case the item becomes a normal item later.
    """
    member = label.member
    Mark.objects.get_or_create(member=member, item=label.item, kind=Mark.Kind.SEEN, ended_at=None)
    running = _current_round(member)
    if running is None:
        return
    lessons = _round_lessons(running, _labels(member))
    running.answered = min(len(lessons), running.size)
    running.right = sum(one.right for one in lessons[: running.size])
    if running.answered == running.size:
        running.finished_at = now
    running.save(update_fields=["answered", "right", "finished_at"])
    if running.finished_at:
        _finish_round(member, running, now)


def undo_answer(label: Label, task: tasktypes.TaskType, now: datetime) -> None:
    """Do nothing: a qualification answer cannot be undone, see `can_undo`."""


def list_rounds(member: Membership) -> list[QualificationRound]:
    """All rounds of the member, the latest first, with their lessons."""
    found = list(member.practice_rounds.select_related("feedback_by").order_by("-number"))
    labels = _labels(member) if found else []
    return [QualificationRound(row, tuple(_round_lessons(row, labels))) for row in found]


def find_round(member: Membership, number: int) -> PracticeRound | None:
    return member.practice_rounds.filter(number=number).first()


def list_people(members: Iterable[Membership]) -> list[tuple[Membership, list[QualificationRound]]]:
    """The members who must qualify or already have rounds, with their rounds. Members who have
    neither an account nor a round are left out."""
    found = [(member, list_rounds(member)) for member in members]
    return [(member, of) for member, of in found if of or (is_due(member) and member.account_id)]


def give_feedback(row: PracticeRound, text: str, *, lead: Membership) -> None:
    """Store a lead's feedback on a round; it replaces earlier feedback, which stays in the audit
    log."""
    with transactions.transact():
        row.feedback, row.feedback_by = text.strip(), lead
        row.save(update_fields=["feedback", "feedback_by"])
        _record("practice-feedback", row.member, lead, round=row.number, text=row.feedback)


def waive(member: Membership, *, lead: Membership, now: datetime | None = None) -> None:
    """Exempt the member from qualification. Raises `Refused` if none is due."""
    now = now or timezone.now()
    with transactions.transact():
        member = _lock_member(member)
        if not is_due(member):
            raise Refused(f"{member.alias} is already qualified.")
        member.practised_at = now
        member.save(update_fields=["practised_at"])
        _delete_held_slot(member)
        _record("practice-waived", member, lead)


def start_new_round(
    member: Membership, *, lead: Membership, now: datetime | None = None
) -> PracticeRound:
    """Start a new round. If too few unseen items are left, the round repeats items, starting with
    the items seen longest ago.

    A member who had passed must pass again. An unfinished round ends with its current result.
    Raises `Refused` if the project has no qualification or too few items.
    """
    now = now or timezone.now()
    with transactions.transact():
        member = _lock_member(member)
        size = member.project.practice_items
        if not size:
            raise Refused("This project has no qualification round. Set its size in the settings.")
        if len(answer_key.items_with_answer(member.project, PRACTICE)) < size:
            raise Refused(f"A round needs {size} qualification items, but the project has fewer.")
        member.practised_at = None
        member.save(update_fields=["practised_at"])
        if running := _current_round(member):
            running.finished_at = now
            running.save(update_fields=["finished_at"])
        _delete_held_slot(member)
        _record("practice-again", member, lead)
        return _new_round(member, now)


def _current_round(member: Membership) -> PracticeRound | None:
    return member.practice_rounds.filter(finished_at=None).last()


def _begin_round(member: Membership, now: datetime) -> PracticeRound | None:
    """Begin a new round if enough unseen items are left; otherwise return None."""
    return _new_round(member, now) if _enough_unseen(member) else None


def _new_round(member: Membership, now: datetime) -> PracticeRound:
    project, last = member.project, member.practice_rounds.last()
    return PracticeRound.objects.create(
        member=member,
        number=last.number + 1 if last else 1,
        size=project.practice_items,
        needed=min(project.practice_pass, project.practice_items),
        started_at=now,
    )


def _enough_unseen(member: Membership) -> bool:
    seen = {label.item_id for label in _labels(member)}
    there = {item.pk for item in answer_key.items_with_answer(member.project, PRACTICE)}
    return len(there - seen) >= member.project.practice_items


def _next_item(member: Membership, running: PracticeRound) -> Item | None:
    """Choose the next item of a round: an unseen item, else the item seen longest ago; None if no
    item is left."""
    seen = {label.item_id: label.created_at for label in _labels(member)}
    there = answer_key.order_for_member(
        member, answer_key.items_with_answer(member.project, PRACTICE)
    )
    fresh = [item for item in there if item.pk not in seen]
    older = [item for item in there if item.pk in seen and seen[item.pk] < running.started_at]
    return next(iter(fresh + sorted(older, key=lambda item: seen[item.pk])), None)


def _labels(member: Membership) -> list[Label]:
    """The member's qualification answers, oldest first."""
    found = Label.objects.of_member(member.pk).at_stage(Stage.QUALIFICATION)
    found = found.select_related("item", "member__project", "revision", "task_type")
    found = found.defer("task_type__definition", "task_type__source")
    return list(found.order_by("created_at", "pk"))


def _round_lessons(row: PracticeRound, labels: list[Label]) -> list[Lesson]:
    """The lessons of a round: the first answer to each item."""
    until = row.finished_at
    within = [
        label
        for label in labels
        if row.started_at <= label.created_at and (not until or label.created_at <= until)
    ]
    truth = answer_key.answers_at_label_time(within)
    first: dict[int, Lesson] = {}
    for label in within:
        if label.item_id not in first and (found := _lesson_of_label(label, row, truth)):
            first[label.item_id] = found
    return list(first.values())


def _lesson_of_label(
    label: Label, row: PracticeRound | None, truth: dict[int, Resolution]
) -> Lesson | None:
    resolution = truth.get(label.pk)
    if resolution is None:
        return None
    known = answer_key.compared_values(label, resolution, label.member.project)
    if not known:
        return None
    return Lesson(
        item=label.item,
        revision=label.revision,
        right=correct_answers.matches_answer(label.answers, known),
        answers=label.answers,
        known=known,
        explanation=resolution.comment,
        answered_at=label.created_at,
        round=row,
    )


def _finish_round(member: Membership, row: PracticeRound, now: datetime) -> None:
    if row.passed:
        member.practised_at = now
        member.save(update_fields=["practised_at"])
    _record("practice", member, member, round=row.number, right=row.right, passed=row.passed)


def _lock_member(member: Membership) -> Membership:
    found = Membership.objects.select_for_update(no_key=True, of=("self",))
    return found.select_related("project").get(pk=member.pk)


def _delete_held_slot(member: Membership) -> None:
    """Close the qualification slot that the member holds."""
    for held in (
        Slot.objects.in_project(member.project_id)
        .at_stage(Stage.QUALIFICATION)
        .held_by(member.pk)
        .locked()
    ):
        held.close()


def _record(kind: str, member: Membership, by: Membership, **data: object) -> None:
    Event.record(kind, member.alias, project_id=member.project_id, member_id=by.pk, **data)
