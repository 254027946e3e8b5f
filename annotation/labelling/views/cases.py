"""The pages of adjudication: the list of cases, and one case with everybody's labels."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotation import tasktypes
from annotation.errors import Refused, Stale
from annotation.importing import flags
from annotation.items import taxonomy as categories
from annotation.items.diffing import stored
from annotation.labelling import (
    adjudication,
    assignment,
    cases,
    comments,
    correct_answers,
    drafts,
    gold_correction,
    other_questions,
    verification,
)
from annotation.labelling.forms import LabelForm
from annotation.labelling.views.label_screen import Notice
from annotation.models import Account, Item, Label, Membership, Revision
from annotation.projects import access
from annotation.tasktypes import fields

PAGE_SIZE = 50
# These fields come below the task's own, in the same form and with the same hotkeys.
REASON_FIELD, COMMENT_FIELD = "why-they-disagreed", "comment"
ACTIONS = ("decide", "ask", "withdraw", "leave", "mend")


class CaseForm(forms.Form):
    """A member's action on a case."""

    action = forms.ChoiceField(choices=[(action, action) for action in ACTIONS])


class GoldCorrectionForm(forms.Form):
    """A corrected gold answer; several gold answers of an item are fields with the same name.

    `preview` is the digest of the preview that the member has seen.
    """

    revision = forms.IntegerField(min_value=1, max_value=2_147_483_647)
    note = forms.CharField(required=False, max_length=2_000)
    carry = forms.BooleanField(required=False)
    preview = forms.CharField(required=False, max_length=64)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def case_list(request: HttpRequest, slug: str) -> HttpResponse:
    """List the waiting cases, fifty per page, and the latest decisions.

    `?take=next` redirects to the first case that the member can decide; a POST undoes their latest
    decision.
    """
    member = access.member_for(request, slug, right="adjudicate")
    if request.method == "POST":
        handle = _stop_waiting if request.POST.get("do") == "stop-waiting" else _handle_undo
        return handle(request, member)
    if "take" in request.GET:
        return _redirect_to_next(request, member)
    counts = cases.count_waiting(member.project)
    reason = request.GET.get("reason", "")
    slots = cases.waiting_slots(member.project, reason if reason in counts else "")
    page = Paginator(slots, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "project": member.project,
        "member": member,
        "task": tasktypes.load_task_type(member.project),
        "counts": counts,
        "total": sum(counts.values()),
        "reason": reason if reason in counts else "",
        "stuck": assignment.stuck_items(member.project).count() if member.is_lead else 0,
        "page": page,
        "rows": cases.list_waiting(member, page.object_list),
        "now": timezone.now(),
        "decided": cases.decided_resolutions(member.project)[:PAGE_SIZE],
        "last": cases.last_decision(member),
        "rate": verification.measure_contest_rate(member.project)
        if member.project.verify
        else None,
    }
    return render(request, "annotation/adjudicate/list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def case(request: HttpRequest, slug: str, key: str) -> HttpResponse:
    """One item with everybody's labels, to be decided; a POST performs an action on it."""
    member = access.member_for(request, slug, right="adjudicate")
    item = Item.objects.in_project(member.project).for_page(key)
    if item is None:
        raise Http404
    if request.method != "POST":
        return _render_case(request, member, item)
    form = CaseForm(request.POST)
    if not form.is_valid():
        return _render_case(request, member, item, problem=Refused("Reload the page."))
    try:
        return _HANDLERS[form.cleaned_data["action"]](request, member, item)
    except Refused as problem:
        return _render_case(request, member, item, problem=problem)


def _handle_decide(request: HttpRequest, member: Membership, item: Item) -> HttpResponse:
    task = tasktypes.load_task_type(member.project)
    form = LabelForm(request.POST, task)
    if not form.is_valid():
        raise Refused("The form could not be read. Reload the page.")
    other_questions.check_questions(member, request.POST)
    why = request.POST.get(REASON_FIELD, "")
    label = cases.decide(member, form.submission(), why=why, now=timezone.now())
    messages.success(request, f"{item.key} is decided: {task.title_of(label.choice)}.")
    return _redirect_to_next(request, member)


def _handle_undo(request: HttpRequest, member: Membership) -> HttpResponse:
    try:
        shown = request.POST.get("label", "")
        item = cases.undo_decision(member, shown=shown, now=timezone.now())
    except Refused as problem:
        messages.error(request, str(problem))
        return redirect("adjudicate", member.project.slug)
    if item is None:
        messages.info(request, "You have no decision to undo.")
        return redirect("adjudicate", member.project.slug)
    messages.success(request, f"Decision on {item.key} undone. Decide again.")
    return redirect("case", member.project.slug, item.key)


def _stop_waiting(request: HttpRequest, member: Membership) -> HttpResponse:
    access.member_for(request, member.project.slug, right="manage")
    number = assignment.stop_waiting(access.ensure_membership(member), now=timezone.now())
    items = f"{number:,} item{'' if number == 1 else 's'}"
    messages.success(request, f"{items} decided; disagreements are listed below.")
    return redirect("adjudicate", member.project.slug)


def _handle_ask(request: HttpRequest, member: Membership, item: Item) -> HttpResponse:
    cases.request_decision(access.ensure_membership(member), item, now=timezone.now())
    messages.success(request, f"{item.key} sent to adjudication.")
    page = "item" if request.POST.get("back") == "item" else "case"
    return redirect(page, member.project.slug, item.key)


def _handle_withdraw(request: HttpRequest, member: Membership, item: Item) -> HttpResponse:
    if not cases.withdraw_request(access.ensure_membership(member), item):
        raise Refused("An adjudicator has opened this item, so the request stays.")
    messages.success(request, f"Request for {item.key} cancelled.")
    return redirect("item", member.project.slug, item.key)


def _handle_leave(request: HttpRequest, member: Membership, item: Item) -> HttpResponse:
    cases.release_case(member, item)
    messages.success(request, f"You released {item.key}.")
    return redirect("adjudicate", member.project.slug)


def _handle_correct_gold(request: HttpRequest, member: Membership, item: Item) -> HttpResponse:
    form = GoldCorrectionForm(request.POST)
    gold = [text.replace("\r\n", "\n") for text in request.POST.getlist("gold")]
    if not form.is_valid():
        raise Refused("The form could not be read. Reload the page.")
    seen = form.cleaned_data.pop("preview")
    preview = gold_correction.preview_correction(
        item, revision=form.cleaned_data["revision"], gold=gold
    )
    if seen != preview.digest:
        return _render_case(request, member, item, preview=preview)
    mended = gold_correction.correct_gold(
        access.ensure_membership(member),
        item_key=item.key,
        gold=gold,
        preview=seen,
        now=timezone.now(),
        **form.cleaned_data,
    )
    number = len(mended.items)
    carried = f" {mended.carried} labels were kept." if form.cleaned_data["carry"] else ""
    one = "is corrected in this item" if number == 1 else f"is corrected in {number} items"
    if preview.both:
        both = len(preview.both)
        one += ", with its perturbed answer" if number == 1 else f", with {both} perturbed answer"
        one += "s" if number > 1 and both > 1 else ""
    messages.success(request, f"The gold answer {one}.{carried}")
    return redirect("case", member.project.slug, item.key)


_HANDLERS = {
    "decide": _handle_decide,
    "ask": _handle_ask,
    "withdraw": _handle_withdraw,
    "leave": _handle_leave,
    "mend": _handle_correct_gold,
}


def _redirect_to_next(request: HttpRequest, member: Membership) -> HttpResponse:
    key = cases.next_case_key(member, timezone.now())
    if key is None:
        messages.info(request, "There is no case for you at the moment.")
        return redirect("adjudicate", member.project.slug)
    return redirect("case", member.project.slug, key)


def _render_case(
    request: HttpRequest,
    member: Membership,
    item: Item,
    problem: Refused | None = None,
    preview: gold_correction.CorrectionPreview | None = None,
) -> HttpResponse:
    assert isinstance(request.user, Account)
    item.project = member.project
    now = timezone.now()
    shown = cases.open_case(member, item, now=now)
    task = tasktypes.load_task_type(member.project)
    revision = item.revision()
    gold = gold_correction.get_gold(revision)
    entered = preview.gold if preview else gold
    context = {
        "project": member.project,
        "member": member,
        "task": task,
        "case": shown,
        "item": item,
        "shown": revision,
        "texts": revision.texts,
        "category": categories.load_taxonomy(member.project).find(item.category),
        "difference": stored.load_difference(revision) if task.diff else None,
        "flags": _flags(task, item, revision) if member.is_lead else [],
        "said": [_describe_opinion(task, said) for said in shown.said],
        "asked": (*task.fields, _reason_field(required=shown.disagree), _comment()),
        "answers": _initial_entries(request, task, shown),
        "why": cases.DISAGREEMENT_REASONS.get(
            shown.resolution.reason if shown.resolution else "", ""
        ),
        "gold": [entered] if isinstance(entered, str) else entered,
        "preview": preview,
        "gold_note": request.POST.get("note", "") if preview else "",
        "keeps_labels": bool(preview and request.POST.get("carry")),
        "sharing": gold_correction.items_sharing_gold(item, gold) if gold is not None else [],
        "revisions": item.revisions.all(),
        "labels": Label.objects.of_item(item).for_page(),
        "comments": comments.load_comments(member, item, now=now),
        "last": cases.last_decision(member),
        "notice": _build_notice(request, member, shown, problem) if problem else None,
    }
    status = 200 if problem is None else 409 if isinstance(problem, Stale) else 422
    return render(request, "annotation/adjudicate/case.html", context, status=status)


def _build_notice(
    request: HttpRequest, member: Membership, shown: cases.Case, problem: Refused
) -> Notice:
    """The error, with what was written in a form that the page does not show again."""
    written = request.POST.getlist("gold")
    if shown.offer is None:
        written.append(drafts.form_words(member, request.POST))
    else:
        written += [
            *request.POST.getlist("note"),
            other_questions.removed_words(member, request.POST),
        ]
    return Notice("This was not saved.", str(problem), "\n\n".join(filter(None, written)))


def _flags(task: tasktypes.TaskType, item: Item, shown: Revision) -> list[tuple[str, str]]:
    return flags.explain_flags(item.flags, shown.texts, task.diff, item.category)


def _describe_opinion(task: tasktypes.TaskType, said: cases.Opinion) -> dict[str, Any]:
    blind = task.blind.fields if task.blind and said.blind else ()
    given = said.blind.answers if said.blind else {}
    return {
        "label": said.label,
        "choice": task.title_of(said.label.choice),
        "answers": [
            *correct_answers.describe_answers(task, _other_answers(task, said.label.answers)),
            *correct_answers.describe_missing(task, said.label.missing),
        ],
        "blind": [(f.title, f.describe(given[f.name])) for f in blind if f.name in given],
    }


def _other_answers(task: tasktypes.TaskType, said: dict[str, Any]) -> dict[str, Any]:
    """The answers, without the deciding answer if the choice already shows it."""
    says_all = task.deciding.is_word
    return {n: a for n, a in said.items() if not (says_all and n == task.deciding.name)}


def _reason_field(*, required: bool) -> fields.Field:
    options = tuple(
        fields.Option(value, title, key=str(number))
        for number, (value, title) in enumerate(cases.DISAGREEMENT_REASONS.items(), start=1)
    )
    title = "Why did annotators disagree?" if required else "Why was the item not clear?"
    return fields.Choice(name=REASON_FIELD, title=title, required=required, options=options)


def _comment() -> fields.Field:
    title = "Comment for the annotators"
    return fields.Text(name=COMMENT_FIELD, title=title, required=False, limit=10_000)


def _initial_entries(
    request: HttpRequest, task: tasktypes.TaskType, shown: cases.Case
) -> dict[str, Any]:
    """The entries of the form: the entries that were refused, else the member's previous
    decision."""
    if request.POST.get("action") == "decide":
        sent = LabelForm(request.POST, task).answers
        return sent | {name: request.POST.get(name, "") for name in (REASON_FIELD, COMMENT_FIELD)}
    previous = shown.offer.previous if shown.offer else None
    if previous is None:
        return {}
    return previous.answers | {
        REASON_FIELD: adjudication.disagreement_reason(previous),
        COMMENT_FIELD: previous.comment,
    }
