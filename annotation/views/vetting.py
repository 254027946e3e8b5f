"""The label screen: one item at a time, as a page or, for htmx, as its panel alone."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods
from django_htmx.middleware import HtmxDetails

from annotation import access, diffs, queue, tasktypes, taxonomy
from annotation.forms import CorrectionForm, LabelForm, ShownForm
from annotation.models import Membership

VIEWS = ("inline", "side")
KEPT_A_YEAR = 365 * 24 * 3600


class HtmxRequest(HttpRequest):
    """A request as the htmx middleware leaves it."""

    htmx: HtmxDetails


@dataclass(frozen=True)
class Notice:
    """What went wrong and what to do now; `kept` is a text that the person would else lose."""

    title: str
    text: str
    kept: str = ""


def _submission(
    view: Callable[[HtmxRequest, Membership], HttpResponse],
) -> Callable[[HtmxRequest, str], HttpResponse]:
    """A view of what a member sends. GET changes nothing and leads to the item.

    For that is how a person arrives whose session ended while they wrote: signed in again, they
    are sent on to the address that they had posted to.
    """

    @require_http_methods(["GET", "POST"])
    @login_required
    @wraps(view)
    def served(request: HtmxRequest, slug: str) -> HttpResponse:
        member = access.member_for(request, slug, right="label")
        return redirect("vet", slug=slug) if request.method == "GET" else view(request, member)

    return served


@require_GET
@never_cache
@login_required
def vet(request: HtmxRequest, slug: str) -> HttpResponse:
    """The item that the member holds or takes now."""
    member = access.member_for(request, slug, right="label")
    response = _paint(request, member, queue.next_offer(member), edit="edit" in request.GET)
    if request.GET.get("view") in VIEWS:
        response.set_cookie("diff", request.GET["view"], max_age=KEPT_A_YEAR, samesite="Lax")
    return response


@_submission
def label(request: HtmxRequest, member: Membership) -> HttpResponse:
    """Store a label and bring the next item."""
    task = _task(member)
    form = LabelForm(request.POST, task)
    try:
        made = queue.label(member, **_checked(form).shown(), **form.said())
    except queue.Refused as problem:
        return _explain(request, member, problem, kept=request.POST.get("comment", ""))
    option = next(o for o in task.deciding.options if o.value == made.choice)
    extra = "" if made.counted else " It came after the item went to somebody else: kept as extra."
    return _go_on(request, member, f"{made.item.key} is labelled: {option.title}.{extra}")


@_submission
def correct(request: HtmxRequest, member: Membership) -> HttpResponse:
    """Store a corrected text as a new revision and show it."""
    form = CorrectionForm(request.POST)
    try:
        shown = _checked(form).shown()
        texts = {_task(member).correctable: form.cleaned_data["text"]}
        offer = queue.correct(member, **shown, texts=texts, note=form.cleaned_data["note"])
    except queue.Refused as problem:
        return _explain(request, member, problem, kept=request.POST.get("text", ""))
    said = f"The text of {offer.item.key} is corrected; this is revision {offer.revision.number}."
    if offer.revision.number == shown["revision"]:
        said = f"The text of {offer.item.key} is as it was; there was nothing to store."
    return _go_on(request, member, said, offer)


@_submission
def undo(request: HtmxRequest, member: Membership) -> HttpResponse:
    """Take the member's last label back and show its item again."""
    offer = queue.undo(member)
    said = "There is no label of yours to undo, or its item was taken out of the project since."
    if offer:
        said = f"Undone: {offer.item.key} waits for a new label."
    return _go_on(request, member, said, offer)


def _task(member: Membership) -> tasktypes.TaskType:
    return tasktypes.from_definition(member.project.task_type.definition)


def _checked(form: ShownForm) -> ShownForm:
    """The form, if its values can be used at all; else `queue.Refused` in the form's words."""
    if form.is_valid():
        return form
    lines = [f"{name}: {' '.join(map(str, errors))}" for name, errors in form.errors.items()]
    raise queue.Refused("What the page sent cannot be used. " + " ".join(lines))


def _explain(
    request: HtmxRequest, member: Membership, problem: queue.Refused, kept: str = ""
) -> HttpResponse:
    """The item as it is now, with what went wrong above it."""
    stale = isinstance(problem, queue.Stale)
    title = "The item changed while you looked at it." if stale else "This was not stored."
    return _paint(
        request,
        member,
        queue.next_offer(member),
        notice=Notice(title, str(problem), kept),
        status=409 if stale else 422,
    )


def _go_on(
    request: HtmxRequest, member: Membership, said: str, offer: queue.Offer | None = None
) -> HttpResponse:
    if request.htmx:
        return _paint(request, member, offer or queue.next_offer(member), said=said)
    messages.success(request, said)
    return redirect("vet", slug=member.project.slug)


def _paint(
    request: HtmxRequest,
    member: Membership,
    offer: queue.Offer | queue.Waiting,
    *,
    said: str = "",
    notice: Notice | None = None,
    edit: bool = False,
    status: int = 200,
) -> HttpResponse:
    view = request.GET.get("view") or request.COOKIES.get("diff")
    context = {
        "project": member.project,
        "member": member,
        "task": _task(member),
        "progress": queue.progress(member),
        "said": said,
        "notice": notice,
        "view": view if view in VIEWS else VIEWS[0],
        "edit": edit,
        **_shown(member, offer),
    }
    template = "annotation/vet.html#panel" if request.htmx else "annotation/vet.html"
    return render(request, template, context, status=status)


def _shown(member: Membership, offer: queue.Offer | queue.Waiting) -> dict[str, Any]:
    if isinstance(offer, queue.Waiting):
        return {"waiting": offer}
    task = _task(member)
    return {
        "offer": offer,
        "texts": offer.revision.texts,
        "correctable": offer.revision.texts.get(task.correctable, ""),
        "category": taxonomy.load().find(offer.item.category),
        "difference": diffs.of(offer.revision) if task.diff else None,
    }
