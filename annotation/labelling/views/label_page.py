"""Renders the label screen: the whole page or, for its script, only the panel and the desk.

The panel is one item with its questions; the desk is the part that stays from item to item:
progress, the last ten labels, and the counts of one's items.
"""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from annotation import tasktypes
from annotation.accounts import keymap
from annotation.htmx import HtmxRequest
from annotation.items import taxonomy as categories
from annotation.items.diffing import stored
from annotation.labelling import comments, drafts, my_items, qualification, queue
from annotation.labelling.queue import Offer, Waiting
from annotation.models import Account, Label, Mark, Membership, Slot, Stage
from annotation.projects import guidelines


@dataclass(frozen=True)
class Notice:
    """An error and what to do now; `kept` is a text that the person would otherwise lose."""

    title: str
    text: str
    kept: str = ""


@dataclass(frozen=True)
class ScreenState:
    """What to render, and the message about it. `lesson` is a label whose explanation is shown
    first."""

    offer: Offer | Waiting | None = None
    said: str = ""
    notice: Notice | None = None
    lesson: Label | None = None
    edit: bool = False
    status: int = 200


def render_page(request: HtmxRequest, member: Membership, shown: ScreenState) -> HttpResponse:
    """The whole page; for the script, the panel and the desk."""
    template = "annotation/label.html#both" if request.htmx else "annotation/label.html"
    context = {**_desk_context(request, member, shown), **_panel_context(request, member, shown)}
    return render(request, template, context, status=shown.status)


def render_ahead(request: HtmxRequest, member: Membership, offer: Offer | Waiting) -> HttpResponse:
    """The panel of an item held ahead, if there is one, and the desk as it is now."""
    context = _desk_context(request, member, ScreenState())
    if not isinstance(offer, Offer):
        return render(request, "annotation/label.html#desk", context)
    context |= _panel_context(request, member, ScreenState(offer))
    return render(request, "annotation/label.html#both", context)


def _frame_context(request: HttpRequest, member: Membership) -> dict[str, Any]:
    assert isinstance(request.user, Account)
    return {
        "project": member.project,
        "member": member,
        "task": tasktypes.load_task_type(member.project),
    }


def _desk_context(request: HttpRequest, member: Membership, shown: ScreenState) -> dict[str, Any]:
    progress = queue.load_progress(member)
    told = guidelines.current_version(member.project)
    recent = queue.recent_labels(member)
    return {
        **_frame_context(request, member),
        "actions": keymap.ACTIONS,
        "progress": progress,
        "counts": my_items.count_my_items(member, progress),
        "recent": recent,
        "comments_of_others": comments.count_by_others(member, recent[0].item) if recent else 0,
        "told": told,
        "news": told if told and told.number > member.guidelines_seen else None,
        "said": shown.said,
    }


def _panel_context(request: HttpRequest, member: Membership, shown: ScreenState) -> dict[str, Any]:
    context = {"said": shown.said, "notice": shown.notice, "edit": shown.edit}
    if shown.lesson:
        return context | _lesson(member, shown.lesson)
    if isinstance(shown.offer, Offer):
        return context | _item_context(member, shown.offer)
    return context | {"waiting": shown.offer, "open_items": queue.load_open_items(member)}


def _item_context(member: Membership, offer: Offer) -> dict[str, Any]:
    """The context of an item; at a first look, only what may be seen before the blind label."""
    task = tasktypes.load_task_type(member.project)
    start = drafts.load_entries(member, offer, task)
    context = {
        "offer": offer,
        "phase": offer.phase,
        "begun": start,
        "answers": start.answers,
        "history": list(my_items.past_labels(member, offer.item)),
        "flagged": Mark.objects.of_member(member.pk, Mark.Kind.FLAG).of_item(offer.item).exists(),
        "reopened": offer.slot.state != Slot.State.HELD or offer.slot.member_id != member.pk,
    }
    if offer.phase == "blind" and task.blind:
        texts = {name: offer.revision.texts.get(name, "") for name in task.blind.shows}
        return context | {"texts": texts, "task": task.at_first_look()}
    return context | _revealed_context(task, offer)


def _revealed_context(task: tasktypes.TaskType, offer: Offer) -> dict[str, Any]:
    return {
        "texts": offer.revision.texts,
        "correctable": offer.revision.texts.get(task.correctable, ""),
        "category": categories.load().find(offer.item.category),
        "difference": stored.load_difference(offer.revision) if task.diff else None,
    }


def _lesson(member: Membership, label: Label) -> dict[str, Any]:
    """The context of a qualification lesson: the person's answers, the known ones, and the
    texts."""
    task = tasktypes.load_task_type(member.project)
    lesson = qualification.build_lesson(label)
    assert lesson is not None
    return {
        "lesson": lesson,
        "compared": [
            (
                field,
                field.describe(lesson.known[field.name]),
                _describe_answer(field, lesson.answers),
            )
            for field in task.fields_at(Stage.LABEL)
            if field.name in lesson.known
        ],
        "texts": label.revision.texts,
        "category": categories.load().find(label.item.category),
        "difference": stored.load_difference(label.revision) if task.diff else None,
    }


def _describe_answer(field: Any, answers: dict[str, Any]) -> str:
    return field.describe(answers[field.name]) if field.name in answers else "nothing"
