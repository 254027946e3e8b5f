"""What the label screen shows: a page, or for a script its panel and its desk alone.

The panel is one item with what is asked of it; the desk is what stays from item to item: how far
one has come, the last ten labels, the counts of one's items.
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
    """What went wrong and what to do now; `kept` is a text that the person would else lose."""

    title: str
    text: str
    kept: str = ""


@dataclass(frozen=True)
class ScreenState:
    """What to paint, and what to say about it. `lesson` is the label that is explained first."""

    offer: Offer | Waiting | None = None
    said: str = ""
    notice: Notice | None = None
    lesson: Label | None = None
    edit: bool = False
    status: int = 200


def render_page(request: HtmxRequest, member: Membership, shown: ScreenState) -> HttpResponse:
    """The whole page; for a script the panel with the desk."""
    template = "annotation/label.html#both" if request.htmx else "annotation/label.html"
    context = {**_desk_context(request, member, shown), **_panel_context(request, member, shown)}
    return render(request, template, context, status=shown.status)


def render_ahead(request: HtmxRequest, member: Membership, offer: Offer | Waiting) -> HttpResponse:
    """The panel of an item that is held ahead, if there is one, and the desk as it stands."""
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
    """Everything about the item; of a blind one only what may be seen before it is judged."""
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
    """What a practice item teaches: what the person said, what is right, and why."""
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
