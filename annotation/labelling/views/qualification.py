"""The pages of qualification: a member's own rounds, and, for leads, the rounds of all members."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from annotation import tasktypes
from annotation.errors import Refused
from annotation.items.diffing import stored
from annotation.labelling import answer_key, correct_answers, qualification
from annotation.labelling.correct_answers import PRACTICE
from annotation.models import Membership, PracticeRound
from annotation.projects import access


class QualificationForm(forms.Form):
    """A lead's action on a member's qualification."""

    action = forms.ChoiceField(choices=[(a, a) for a in ("feedback", "waive", "again")])
    member = forms.CharField(max_length=80, strip=False)
    round = forms.IntegerField(required=False, min_value=1, max_value=32_767)
    feedback = forms.CharField(required=False, max_length=10_000, strip=False)


@require_safe
@never_cache
@login_required
def own_rounds(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the member's own rounds: right and wrong answers with explanations, and a lead's
    feedback."""
    member = access.member_for(request, slug, right="label")
    context = {
        "project": member.project,
        "member": member,
        "rounds": _rows(member, qualification.list_rounds(member), with_texts=True),
        "due": qualification.is_due(member),
        "waits": qualification.waits_for_lead(member),
    }
    return render(request, "annotation/qualification/own_rounds.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def all_rounds(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the rounds of all members; a POST gives feedback, waives qualification or starts another
    round."""
    lead = access.member_for(request, slug, right="manage")
    if request.method == "POST":
        return _handle_action(request, lead)
    return _people(request, lead)


def _people(request: HttpRequest, lead: Membership, status: int = 200) -> HttpResponse:
    members = Membership.objects.in_project(lead.project).who_label()
    context = {
        "project": lead.project,
        "member": lead,
        "people": [
            (who, _rows(who, rounds), qualification.is_due(who), qualification.waits_for_lead(who))
            for who, rounds in qualification.list_people(members)
        ],
        "items": len(answer_key.items_with_answer(lead.project, PRACTICE)),
    }
    return render(request, "annotation/qualification/all_rounds.html", context, status=status)


def _handle_action(request: HttpRequest, lead: Membership) -> HttpResponse:
    form = QualificationForm(request.POST)
    if not form.is_valid():
        messages.error(request, "This form could not be read. Reload the page.")
        return _people(request, lead, status=422)
    data = form.cleaned_data
    member = Membership.objects.in_project(lead.project).named(data["member"])
    if member is None:
        raise Http404
    try:
        messages.success(request, _apply_action(data, member, access.ensure_membership(lead)))
    except Refused as problem:
        messages.error(request, str(problem))
        return _people(request, lead, status=422)
    return redirect("qualification-people", slug=lead.project.slug)


def _apply_action(data: dict[str, Any], member: Membership, lead: Membership) -> str:
    """Apply the action, and return a message. Raises `Refused` like `labelling.qualification`, and
    `Http404` for an unknown round."""
    if data["action"] == "waive":
        qualification.waive(member, lead=lead)
        return f"{member.alias} is exempt from qualification."
    if data["action"] == "again":
        begun = qualification.start_new_round(member, lead=lead)
        return f"{member.alias} gets another round: {begun.number}."
    row = qualification.find_round(member, data["round"] or 0)
    if row is None:
        raise Http404
    qualification.give_feedback(row, data["feedback"], lead=lead)
    return f"Feedback on round {row.number} sent to {member.alias}."


def _rows(
    member: Membership, rounds: list[qualification.QualificationRound], *, with_texts: bool = False
) -> list[tuple[PracticeRound, list[dict[str, Any]]]]:
    """Each round with its lessons; answers are shown with the titles of the task type.

    Annotators read the texts here; leads can open the item's page.
    """
    task = tasktypes.load_task_type(member.project)
    return [
        (one.row, [_lesson(task, lesson, with_texts) for lesson in one.lessons]) for one in rounds
    ]


def _lesson(
    task: tasktypes.TaskType, lesson: qualification.Lesson, with_texts: bool
) -> dict[str, Any]:
    said = {name: lesson.answers.get(name) for name in lesson.known}
    return {
        "lesson": lesson,
        "said": correct_answers.describe_answers(
            task, {n: v for n, v in said.items() if v is not None}
        ),
        "known": correct_answers.describe_answers(task, lesson.known),
        **(_texts(task, lesson) if with_texts else {}),
    }


def _texts(task: tasktypes.TaskType, lesson: qualification.Lesson) -> dict[str, Any]:
    """The difference of the compared texts, and the other texts with their titles."""
    texts = lesson.revision.texts
    shown = [
        text for text in task.texts if texts.get(text.name) and text.name not in (task.diff or ())
    ]
    return {
        "texts": [(text.title, _as_list(texts[text.name])) for text in shown],
        "difference": stored.load_difference(lesson.revision) if task.diff else None,
    }


def _as_list(text: str | list[str]) -> list[str]:
    return text if isinstance(text, list) else [text]
