"""The label screen: one item at a time, as pages with forms or, for its script, as fragments."""

from collections.abc import Callable
from functools import wraps

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from annotation import tasktypes
from annotation.errors import Refused, Stale
from annotation.htmx import HtmxRequest
from annotation.items.rendering import sheet
from annotation.labelling import blind_names, drafts, qualification, queue
from annotation.labelling.forms import CorrectionForm, LabelForm, SubmissionForm
from annotation.labelling.queue import Offer
from annotation.labelling.views import label_page
from annotation.labelling.views.label_page import Notice, ScreenState
from annotation.models import Label, Membership, Slot
from annotation.projects import access

COOKIE_AGE = 365 * 24 * 3600


def submission_view(
    view: Callable[[HtmxRequest, Membership], HttpResponse],
) -> Callable[[HtmxRequest, str], HttpResponse]:
    """Decorator for a view of submissions. A GET changes nothing and redirects to the item.

    A GET happens if the session ended while somebody was writing: after signing in again, they are
    redirected to the address that they had posted to.
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
    """The item that the member holds or takes now, or with `?item=` one that they have met
    before."""
    member = access.member_for(request, slug, right="label")
    shown = ScreenState(edit="edit" in request.GET)
    response = label_page.render_page(request, member, _state_of_request(request, member, shown))
    for name, value in sheet.preference_cookies(request.GET.dict(), slug).items():
        response.set_cookie(name, value, max_age=COOKIE_AGE, samesite="Lax")
    return response


@require_GET
@never_cache
@login_required
def next_ahead(request: HtmxRequest, slug: str) -> HttpResponse:
    """The item after the current one, if one can be held ahead, and the member's progress.

    The page requests this after showing an item, so that it loads while the person reads.
    """
    member = access.member_for(request, slug, right="label")
    return label_page.render_ahead(request, member, queue.next_offer(member, ahead=True))


@submission_view
def submit_label(request: HtmxRequest, member: Membership) -> HttpResponse:
    """Store a label and show the next item, or first the explanation of a qualification item."""
    task = tasktypes.load_task_type(member.project)
    form = LabelForm(request.POST, task)
    try:
        made = queue.store_label(
            member, _validate_form(form).shown_item(), form.submitted_answers()
        )
    except Refused as problem:
        return _render_problem(request, member, problem, form)
    if qualification.build_lesson(made):
        return label_page.render_page(request, member, ScreenState(lesson=made, said="Saved."))
    return _render_next(request, member, _describe_stored(made, task))


@submission_view
def submit_correction(request: HtmxRequest, member: Membership) -> HttpResponse:
    """Store a corrected text as a new revision and show it."""
    form = CorrectionForm(request.POST)
    correctable = tasktypes.load_task_type(member.project).correctable
    try:
        shown = _validate_form(form).shown_item()
        texts = {correctable: form.cleaned_data["text"]}
        offer = queue.store_correction(member, shown, texts, note=form.cleaned_data["note"])
    except Refused as problem:
        return _render_problem(request, member, problem, form)
    drafts.move_to_revision(member, offer.item, offer.revision.number)
    said = f"Text of {offer.item.key} corrected: now revision {offer.revision.number}."
    if offer.revision.number == shown.revision:
        said = f"The text of {offer.item.key} is unchanged; nothing was saved."
    return _render_next(request, member, said, offer)


@submission_view
def undo_label(request: HtmxRequest, member: Membership) -> HttpResponse:
    """Undo the member's last label and show its item again, with the previous answers."""
    offer = queue.undo_label(member)
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
    return label_page.render_page(request, member, _reopen_state(member, item, ScreenState()))


@submission_view
def skip_item(request: HtmxRequest, member: Membership) -> HttpResponse:
    """Skip the item: it is listed under Skipped."""
    form = SubmissionForm(request.POST)
    try:
        shown = _validate_form(form).shown_item()
        queue.skip_item(member, shown)
    except Refused as problem:
        return _render_problem(request, member, problem, form)
    said = "Skipped. You find it under Skipped."
    return _render_next(request, member, said)


def _state_of_request(request: HtmxRequest, member: Membership, shown: ScreenState) -> ScreenState:
    """The item named in the URL, else the member's current one."""
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
    return f"{made.item.key} is labelled: {task.title_of(made.choice)}.{extra}"


def _validate_form(form: SubmissionForm) -> SubmissionForm:
    """The form if it is valid; else raises `Refused` with the form's errors."""
    if form.is_valid():
        return form
    lines = [f"{name}: {' '.join(map(str, errors))}" for name, errors in form.errors.items()]
    raise Refused("The form could not be read. " + " ".join(lines))


def _render_problem(
    request: HtmxRequest, member: Membership, problem: Refused, form: SubmissionForm
) -> HttpResponse:
    """The item as it is now, with the error above it and the person's entries kept."""
    stale = isinstance(problem, Stale)
    title = "The item has changed." if stale else "This was not saved."
    kept = drafts.save_refused_form(member, request.POST)
    written = request.POST.get("text") or request.POST.get("comment", "")
    offer = queue.next_offer(member)
    return label_page.render_page(
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
    """Whether the item shown now is the one that the form was about."""
    return isinstance(offer, Offer) and offer.name == form.data.get("item")


def _render_next(
    request: HtmxRequest, member: Membership, said: str, offer: Offer | None = None
) -> HttpResponse:
    """The next item; only the message if the page has already loaded the next item."""
    if request.htmx and request.headers.get("Label-Next") == "here":
        return HttpResponse(said, content_type="text/plain; charset=utf-8")
    if request.htmx:
        return label_page.render_page(
            request, member, ScreenState(offer or queue.next_offer(member), said=said)
        )
    messages.success(request, said)
    address = reverse("label", args=[member.project.slug])
    if offer is None or offer.slot.state == Slot.State.HELD:
        return redirect(address)
    return redirect(f"{address}?{urlencode({'item': offer.name})}")
