"""The label screen shows one item at a time, as a page with forms, or as fragments for its script.

The panel is one item with its questions. The desk is the part that stays from item to item:
progress, the last ten labels, and the number of items in each of the member's lists.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from annotation import tasktypes
from annotation.accounts import keymap
from annotation.accounts.display import COOKIE_AGE
from annotation.errors import Refused, Stale
from annotation.htmx import HtmxRequest
from annotation.items import taxonomy as categories
from annotation.items.diffing import stored
from annotation.items.rendering import sheet
from annotation.labelling import (
    blind_names,
    comments,
    drafts,
    my_items,
    qualification,
    queue,
    submissions,
)
from annotation.labelling.forms import CorrectionForm, LabelForm, SubmissionForm
from annotation.labelling.queue import Offer, Waiting
from annotation.models import Account, Label, Mark, Membership, Slot, Stage
from annotation.projects import access, guidelines


@dataclass(frozen=True)
class Notice:
    """An error, and what to do about it; `kept` is a text that the person would otherwise lose."""

    title: str
    text: str
    kept: str = ""


@dataclass(frozen=True)
class ScreenState:
    """The item to render, and a message. `lesson` is a label whose explanation is shown first."""

    offer: Offer | Waiting | None = None
    said: str = ""
    notice: Notice | None = None
    lesson: Label | None = None
    edit: bool = False
    status: int = 200


def submission_view(
    view: Callable[[HtmxRequest, Membership], HttpResponse],
) -> Callable[[HtmxRequest, str], HttpResponse]:
    """Decorator for views that receive submissions. A GET changes nothing and redirects to the
    item.

    A GET happens if the session ended while somebody was writing: after signing in again, the
    browser is redirected to the address of the POST.
    """

    @require_http_methods(["GET", "POST"])
    @login_required
    @wraps(view)
    def served(request: HtmxRequest, slug: str) -> HttpResponse:
        member = access.member_for(request, slug, right="label")
        return redirect("label", slug=slug) if request.method == "GET" else view(request, member)

    return served


@require_GET
@never_cache
@login_required
def label_screen(request: HtmxRequest, slug: str) -> HttpResponse:
    """Show the item that the member holds or takes now; with `?item=`, an item that the member was
    shown before."""
    member = access.member_for(request, slug, right="label")
    shown = ScreenState(edit="edit" in request.GET)
    response = render_page(request, member, _state_of_request(request, member, shown))
    for name, value in sheet.preference_cookies(request.GET.dict(), slug).items():
        response.set_cookie(name, value, max_age=COOKIE_AGE, samesite="Lax")
    return response


@require_GET
@never_cache
@login_required
def next_ahead(request: HtmxRequest, slug: str) -> HttpResponse:
    """Send the item after the current item, if a next item can be held, and the member's progress.

    The page requests this after showing an item, so that it loads while the person reads. If it
    shows an item that was sent ahead, the header `Label-Shown` has its key, and the item is held.
    """
    member = access.member_for(request, slug, right="label")
    if key := request.headers.get("Label-Shown"):
        with suppress(Refused):  # the answer to its label says what is wrong
            queue.hold_shown(member, submissions.read_token(key, member))
    return render_ahead(request, member, queue.next_offer(member, ahead=True))


@require_GET
@never_cache
@login_required
def items_ahead(request: HtmxRequest, slug: str) -> HttpResponse:
    """Send the panels of the items after the held ones, to be shown while there is no connection.
    Nobody holds these items."""
    member = access.member_for(request, slug, right="label")
    frame = _frame_context(request, member)
    panels = []
    for offer in queue.list_ahead(member):
        context = frame | _panel_context(request, member, ScreenState(offer))
        panels.append(render_to_string("annotation/label.html#panel", context, request))
    return HttpResponse("".join(panels))


@require_GET
@login_required
def offline_worker(request: HtmxRequest, slug: str) -> HttpResponse:
    """Send the service worker that shows the label screen without a connection. Its address limits
    it to this project's label screen."""
    access.member_for(request, slug, right="label")
    code = (settings.BASE_DIR / "static/js/offline_worker.js").read_bytes()
    return HttpResponse(code, content_type="text/javascript; charset=utf-8")


@submission_view
def submit_label(request: HtmxRequest, member: Membership) -> HttpResponse:
    """Store a label and show the next item; after a qualification item, show its explanation
    first."""
    task = submissions.find_asked_task(member, request.POST.get("key", ""))
    form = LabelForm(request.POST, task)
    try:
        sent = _validate_form(form).submission()
        made = queue.store_label(member, sent, given_at=_read_given_at(request))
    except Refused as problem:
        return _render_problem(request, member, problem, form)
    if qualification.build_lesson(made):
        return render_page(request, member, ScreenState(lesson=made, said="Saved."))
    response = _render_next(request, member, _describe_stored(made, task))
    response["Label-Counted"] = "yes" if made.counted else "no"
    return response


@submission_view
def submit_correction(request: HtmxRequest, member: Membership) -> HttpResponse:
    """Store a corrected text as a new revision and show it."""
    form = CorrectionForm(request.POST)
    correctable = submissions.find_asked_task(member, request.POST.get("key", "")).correctable
    try:
        shown = _validate_form(form).submission()
        texts = {correctable: form.cleaned_data["text"]}
        offer = queue.store_correction(member, shown, texts, note=form.cleaned_data["note"])
    except Refused as problem:
        return _render_problem(request, member, problem, form)
    drafts.move_to_revision(member, offer.item, offer.revision.number, shown)
    said = f"Text of {offer.item.key} corrected: now revision {offer.revision.number}."
    if offer.revision.number == shown.revision:
        said = f"The text of {offer.item.key} is unchanged; nothing was saved."
    return _render_next(request, member, said, offer)


@submission_view
def undo_label(request: HtmxRequest, member: Membership) -> HttpResponse:
    """Undo the member's last label and show its item again, with the previous answers."""
    try:
        offer = queue.undo_label(member, shown=request.POST.get("label", ""))
    except Refused as problem:
        return _render_problem(request, member, problem, SubmissionForm(request.POST))
    if offer is None:
        stands = " Qualification answers cannot be undone." if member.project.practice_items else ""
        return _render_next(request, member, f"You have no label to undo.{stands}")
    if offer.previous:
        drafts.restore_from_label(
            member, offer.previous, drafts.to_form_data(offer.previous.answers)
        )
    return _render_next(request, member, f"Undone. Label {offer.name} again.", offer)


@submission_view
def reopen_item(request: HtmxRequest, member: Membership) -> HttpResponse:
    """Show an item that the member labelled, drafted or skipped, to label it again or for the first
    time."""
    address = reverse("label", args=[member.project.slug])
    item = request.POST.get("item", "")
    if not request.htmx:
        return redirect(f"{address}?{urlencode({'item': item})}")
    return render_page(request, member, _reopen_state(member, item, ScreenState()))


@submission_view
def skip_item(request: HtmxRequest, member: Membership) -> HttpResponse:
    """Skip the item, which is then listed under Skipped."""
    form = SubmissionForm(request.POST)
    try:
        shown = _validate_form(form).submission()
        queue.skip_item(member, shown)
    except Refused as problem:
        return _render_problem(request, member, problem, form)
    said = "Skipped. You find it under Skipped."
    return _render_next(request, member, said)


def _state_of_request(request: HtmxRequest, member: Membership, shown: ScreenState) -> ScreenState:
    """Load the item named in the URL, else the member's current item."""
    key = request.GET.get("item", "")
    if key:
        return _reopen_state(member, key, shown)
    return ScreenState(queue.next_offer(member), edit=shown.edit)


def _reopen_state(member: Membership, key: str, shown: ScreenState) -> ScreenState:
    try:
        offer = queue.reopen_item(member, key)
    except Refused as problem:
        notice = Notice("This item cannot be opened.", str(problem))
        return ScreenState(queue.next_offer(member), notice=notice)
    return ScreenState(
        offer, said=f"{blind_names.readable_name(offer.name)} is open again.", edit=shown.edit
    )


def _describe_stored(made: Label, task: tasktypes.TaskType) -> str:
    if made.stage == "blind":
        return "First look saved. Now see the change and decide."
    extra = (
        ""
        if made.counted
        else (" This item had been reassigned; your label is saved as an extra one.")
    )
    said = task.in_order(made.first_shown).title_of(made.choice)
    return f"{made.item.key} is labelled: {said}.{extra}"


def _read_given_at(request: HttpRequest) -> datetime | None:
    """When the label was given: the header `Label-Age` has the seconds that it waited in the
    browser, whose clock may be wrong. None without it."""
    try:
        return timezone.now() - timedelta(seconds=float(request.headers.get("Label-Age", "")))
    except (ValueError, OverflowError):
        return None


def _validate_form(form: SubmissionForm) -> SubmissionForm:
    """Return the form if it is valid. Raises `Refused` with the form's errors if not."""
    if form.is_valid():
        return form
    lines = [f"{name}: {' '.join(map(str, errors))}" for name, errors in form.errors.items()]
    raise Refused("The form could not be read. " + " ".join(lines))


def _render_problem(
    request: HtmxRequest, member: Membership, problem: Refused, form: SubmissionForm
) -> HttpResponse:
    """Render the item in its current state, with the error above it and the person's entries
    kept."""
    stale = isinstance(problem, Stale)
    title = "The item has changed." if stale else "This was not saved."
    kept = drafts.save_refused_form(member, request.POST)
    written = drafts.form_words(member, request.POST)
    offer = queue.next_offer(member)
    return render_page(
        request,
        member,
        ScreenState(
            offer,
            notice=Notice(
                title, str(problem), "" if kept and _is_same_item(offer, form) else written
            ),
            status=409 if stale else 422,
        ),
    )


def _is_same_item(offer: object, form: SubmissionForm) -> bool:
    """True if the item shown now is the item that the form was sent for."""
    return isinstance(offer, Offer) and offer.name == form.data.get("item")


def _render_next(
    request: HtmxRequest, member: Membership, said: str, offer: Offer | None = None
) -> HttpResponse:
    """Render the next item, or only the message if the page has already loaded the next item."""
    if request.htmx and request.headers.get("Label-Next") == "here":
        return HttpResponse(said, content_type="text/plain; charset=utf-8")
    if request.htmx:
        return render_page(
            request, member, ScreenState(offer or queue.next_offer(member), said=said)
        )
    messages.success(request, said)
    address = reverse("label", args=[member.project.slug])
    if offer is None or offer.slot.state == Slot.State.HELD:
        return redirect(address)
    return redirect(f"{address}?{urlencode({'item': offer.name})}")


def render_page(request: HtmxRequest, member: Membership, shown: ScreenState) -> HttpResponse:
    """Render the whole page; for the script, only the panel and the desk."""
    template = "annotation/label.html#both" if request.htmx else "annotation/label.html"
    context = {**_desk_context(request, member, shown), **_panel_context(request, member, shown)}
    return render(request, template, context, status=shown.status)


def render_ahead(request: HtmxRequest, member: Membership, offer: Offer | Waiting) -> HttpResponse:
    """Render the panel of the next item, if one is held, and the desk in its current state."""
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
    return context | {
        "waiting": shown.offer,
        "open_items": queue.load_open_items(member),
        "feedback": qualification.find_feedback(member),
    }


def _item_context(member: Membership, offer: Offer) -> dict[str, Any]:
    """The template context of an item; at a first look, only the parts that may be seen before the
    blind label."""
    task = tasktypes.load_task_type(member.project).in_order(offer.first)
    start = drafts.load_entries(member, offer, task)
    context = {
        "task": task,
        "offer": offer,
        "phase": offer.phase,
        "qualifies": qualification.describe_due(member),
        "feedback": qualification.find_feedback(member),
        "begun": start,
        "answers": start.answers,
        "history": list(my_items.past_labels(member, offer.item)),
        "flagged": Mark.objects.of_member(member.pk, Mark.Kind.FLAG).of_item(offer.item).exists(),
        "reopened": offer.slot.state != Slot.State.HELD or offer.slot.member_id != member.pk,
    }
    if offer.phase == "blind" and task.blind:
        texts = {name: offer.revision.texts.get(name, "") for name in task.blind.shows}
        return context | {"texts": texts, "task": task.at_first_look()}
    return context | _revealed_context(member, task, offer)


def _revealed_context(member: Membership, task: tasktypes.TaskType, offer: Offer) -> dict[str, Any]:
    return {
        "texts": offer.revision.texts,
        "correctable": offer.revision.texts.get(task.correctable, ""),
        "category": categories.load_taxonomy(member.project).find(offer.item.category),
        "difference": stored.load_difference(offer.revision) if task.diff else None,
    }


def _lesson(member: Membership, label: Label) -> dict[str, Any]:
    """The template context of a qualification lesson: the person's answers, the known answers, and
    the texts."""
    task = tasktypes.load_task_type(member.project).in_order(label.first_shown)
    lesson = qualification.build_lesson(label)
    assert lesson is not None
    explanation = task.in_words_of_page(lesson.explanation)
    return {
        "task": task,
        "lesson": replace(lesson, explanation=explanation),
        "waits": qualification.waits_for_lead(member),
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
        "category": categories.load_taxonomy(member.project).find(label.item.category),
        "difference": stored.load_difference(label.revision) if task.diff else None,
    }


def _describe_answer(field: Any, answers: dict[str, Any]) -> str:
    return field.describe(answers[field.name]) if field.name in answers else "nothing"
