"""The verification page: a second person sees the label, and confirms or contests it."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from annotation import tasktypes
from annotation.errors import Refused, Stale
from annotation.items import taxonomy as categories
from annotation.items.diffing import stored
from annotation.labelling import correct_answers, drafts, other_questions, queue, verification
from annotation.labelling.forms import LabelForm
from annotation.labelling.queue import Waiting, offers
from annotation.labelling.views.label_screen import Notice
from annotation.models import Account, Label, Membership, Stage
from annotation.projects import access
from annotation.tasktypes import fields

# This field comes below the task's own, in the same form and with the same hotkeys.
_COMMENT_FIELD = fields.Text(name="comment", title="Why the label is wrong", limit=10_000)


class VerdictForm(forms.Form):
    """A verdict: what names the shown label or result, and whether it is confirmed. With the
    prefix, no question of a task type has the name of an input."""

    prefix = "verdict"
    of = forms.CharField(max_length=64)
    confirm = forms.BooleanField(required=False)


@require_GET
@never_cache
@login_required
def verify(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the item that the member verifies now."""
    member = access.member_for(request, slug, right="label")
    return _render_page(request, member)


@require_http_methods(["GET", "POST"])
@login_required
def submit_verdict(request: HttpRequest, slug: str) -> HttpResponse:
    """Confirm or contest the label, then show the next item. A GET changes nothing and redirects to
    the item."""
    member = access.member_for(request, slug, right="label")
    if request.method == "GET":
        return redirect("verify", slug)
    try:
        messages.success(request, _store_verdict(request, member))
    except Refused as problem:
        return _render_page(request, member, problem)
    return redirect("verify", slug)


@require_http_methods(["GET", "POST"])
@login_required
def undo_verdict(request: HttpRequest, slug: str) -> HttpResponse:
    """Undo the member's last verification and show its item again."""
    member = access.member_for(request, slug, right="label")
    if request.method == "POST":
        try:
            offer = queue.undo_label(
                member, stage=Stage.VERIFY, shown=request.POST.get("label", "")
            )
        except Refused as problem:
            messages.error(request, str(problem))
        else:
            said = (
                f"Undone. Verify {offer.item.key} again." if offer else "You have nothing to undo."
            )
            messages.success(request, said)
    return redirect("verify", slug)


def _store_verdict(request: HttpRequest, member: Membership) -> str:
    """Store the verification, and return a message."""
    shown, form = VerdictForm(request.POST), LabelForm(request.POST, _task(member))
    if not (shown.is_valid() and form.is_valid()):
        raise Refused("The form could not be read. Reload the page.")
    other_questions.check_questions(member, request.POST)
    confirming = shown.cleaned_data["confirm"]
    label = verification.answer(
        member,
        form.submission(),
        of=shown.cleaned_data["of"],
        confirming=confirming,
        now=timezone.now(),
    )
    if member.project.verify_blind:
        # What became of it would tell the label to somebody who undoes the answer.
        return f"{label.item.key}: your answer is saved."
    if confirming or Label.objects.filter(pk=label.pk).with_confirmed().get().confirmed:
        return f"{label.item.key}: you confirmed “{_task(member).title_of(label.choice)}”."
    return f"{label.item.key}: you contested the label. An adjudicator will decide."


def _render_page(
    request: HttpRequest, member: Membership, problem: Refused | None = None
) -> HttpResponse:
    assert isinstance(request.user, Account)
    found = verification.take_next(member, now=timezone.now())
    context = {
        "project": member.project,
        "member": member,
        "task": _task(member),
        "notice": _build_notice(request, member, found, problem) if problem else None,
        "last": offers.last_label(member, (Stage.VERIFY,)),
        "done": Label.objects.current().by_member(member.pk, Stage.VERIFY).count(),
        **({"waiting": found} if isinstance(found, Waiting) else _case(request, member, found)),
    }
    status = 200 if problem is None else 409 if isinstance(problem, Stale) else 422
    return render(request, "annotation/verify.html", context, status=status)


def _build_notice(
    request: HttpRequest,
    member: Membership,
    found: verification.Verification | Waiting,
    problem: Refused,
) -> Notice:
    """The error, with what was written if the page shows another item, or other questions."""
    again = not isinstance(found, Waiting) and _is_sent_again(request, found)
    words = other_questions.removed_words if again else drafts.form_words
    written = words(member, request.POST)
    return Notice("This was not saved.", str(problem), written)


def _is_sent_again(request: HttpRequest, case: verification.Verification) -> bool:
    return request.method == "POST" and request.POST.get("item") == case.offer.item.key


def _case(
    request: HttpRequest, member: Membership, case: verification.Verification
) -> dict[str, Any]:
    task, revision, blind = _task(member), case.offer.revision, member.project.verify_blind
    again = _is_sent_again(request, case)
    return {
        "case": case,
        "offer": case.offer,
        "said": correct_answers.describe_answers(task, case.decided),
        "category": categories.load_taxonomy(member.project).find(case.offer.item.category),
        "texts": revision.texts,
        "difference": stored.load_difference(revision) if task.diff else None,
        "asked": task.fields if blind else (*task.fields, _COMMENT_FIELD),
        "blind": blind,
        **(_sent_entries(request, task) if again else _initial_entries(case.offer.previous)),
    }


def _sent_entries(request: HttpRequest, task: tasktypes.TaskType) -> dict[str, Any]:
    """The entries of a refused form, so that they are not lost."""
    said = LabelForm(request.POST, task).answers | {"comment": request.POST.get("comment", "")}
    return {"answers": said, "contesting": not request.POST.get("verdict-confirm")}


def _initial_entries(taken_back: Label | None) -> dict[str, Any]:
    """The answers and comment of a contest that the member undid; only a contest has a comment."""
    if taken_back and taken_back.member.project.verify_blind:
        return {"answers": taken_back.answers}
    if taken_back is None or not taken_back.comment:
        return {"answers": {}, "contesting": False}
    return {"answers": taken_back.answers | {"comment": taken_back.comment}, "contesting": True}


def _task(member: Membership) -> tasktypes.TaskType:
    return tasktypes.load_task_type(member.project)
