"""Items with known answers, and the results on control items; for leads."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from annotation import tasktypes
from annotation.errors import Refused
from annotation.labelling import answer_key as labelling_answer_key
from annotation.labelling import control_items, correct_answers, visibility
from annotation.labelling.correct_answers import PRACTICE, PROBE, PURPOSES
from annotation.models import Item, Label, Membership, Project, Resolution, Stage
from annotation.projects import access


class AnswerKeyForm(forms.Form):
    """An item, its purpose, and the explanation of its answer; the answer has the task's own
    fields."""

    # A field of the task may have the name of a form field, so the form fields have a prefix.
    prefix = "known"
    item = forms.CharField(
        max_length=200, strip=True, label="Key of the item", help_text="As shown on the items page."
    )
    purpose = forms.ChoiceField(
        choices=[
            (PRACTICE, "Qualification: explained after each answer"),
            (PROBE, ("Control item: hidden among the others")),
        ],
        label="Purpose",
    )
    explanation = forms.CharField(
        required=False,
        max_length=correct_answers.MAX_EXPLANATION_LENGTH,
        widget=forms.Textarea({"rows": 3}),
        label="Why this is correct",
        help_text="Annotators see this after a qualification item, but never for a control item.",
    )


@dataclass(frozen=True)
class AnswerKeyEntry:
    """An item with its known answer, and how often it was answered."""

    item: Item
    resolution: Resolution
    said: list[tuple[str, str]]
    answered: int
    gives_away: bool


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def answer_key(request: HttpRequest, slug: str) -> HttpResponse:
    """List the items with known answers. A POST sets an answer or, with `known-release`, releases
    an item."""
    lead = access.member_for(request, slug, right="manage")
    if request.method != "POST":
        key = request.GET.get("item", "")
        return _page(request, lead, _filled_form(lead, key), chosen=_known_values(lead, key))
    if "known-release" in request.POST:
        return _release_item(request, lead)
    task = tasktypes.load_task_type(lead.project)
    form = AnswerKeyForm(request.POST)
    said = {field.name: field.from_post(request.POST) for field in task.resolved}
    if form.is_valid() and _set_answer(lead, form, said):
        key = form.cleaned_data["item"]
        messages.success(request, f"Correct answer for {key} saved.")
        return redirect("answer-key", slug=slug)
    return _page(request, lead, form, chosen=said, status=422)


@require_safe
@login_required
def control_results(request: HttpRequest, slug: str) -> HttpResponse:
    """Show each member's results on control items."""
    lead = access.member_for(request, slug, right="manage")
    task = tasktypes.load_task_type(lead.project)
    found = control_items.load_results(lead.project)
    wrong_ones = {wrong.item.pk for result in found for wrong in result.wrong}
    visibility.record_all_seen(lead, wrong_ones, now=timezone.now())
    results = [
        (result, [(wrong, *_compare_answers(task, wrong)) for wrong in result.wrong])
        for result in found
    ]
    context = {
        "project": lead.project,
        "member": lead,
        "results": results,
        "items": len(labelling_answer_key.items_with_answer(lead.project, PROBE)),
    }
    return render(request, "annotation/control_items.html", context)


def _set_answer(lead: Membership, form: AnswerKeyForm, said: dict[str, object]) -> bool:
    """Set the answer; if it is refused, add the reason to the form and return False."""
    data = form.cleaned_data
    item = Item.objects.in_project(lead.project).for_page(data["item"])
    if item is None:
        form.add_error("item", "No item has this key. Copy one from the items page.")
        return False
    right = {name: answer for name, answer in said.items() if answer is not None}
    try:
        labelling_answer_key.set_answer(
            lead.project,
            item,
            data["purpose"],
            right,
            data["explanation"],
            access.ensure_membership(lead),
        )
    except Refused as problem:
        form.add_error(None, str(problem))
        return False
    return True


def _release_item(request: HttpRequest, lead: Membership) -> HttpResponse:
    key = request.POST["known-release"]
    item = Item.objects.in_project(lead.project).for_page(key)
    try:
        if item is None:
            raise Refused("The item with this key no longer exists.")
        labelling_answer_key.release_item(item, access.ensure_membership(lead))
    except Refused as problem:
        messages.error(request, str(problem))
        return _page(request, lead, AnswerKeyForm(), status=422)
    messages.success(request, f"{item.key} is a normal item again.")
    return redirect("answer-key", slug=lead.project.slug)


def _page(
    request: HttpRequest,
    lead: Membership,
    form: AnswerKeyForm,
    *,
    chosen: dict[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    task = tasktypes.load_task_type(lead.project)
    groups = [(purpose, _entries(lead, task, purpose)) for purpose in PURPOSES]
    shown = [entry.item.pk for _, entries in groups for entry in entries]
    visibility.record_all_seen(lead, shown, now=timezone.now())
    context = {
        "project": lead.project,
        "member": lead,
        "form": form,
        "asked": [
            (
                field,
                frozenset() if field.name not in (chosen or {}) else _chosen_values(field, chosen),
            )
            for field in task.resolved
        ],
        "groups": groups,
        "unknown": labelling_answer_key.items_without_answer(lead.project),
        "off": _unused(lead.project, {purpose: len(entries) for purpose, entries in groups}),
        "has_categories": task.categories,
    }
    return render(request, "annotation/answer_key.html", context, status=status)


def _unused(project: Project, there: dict[str, int]) -> list[str]:
    """Why nobody gets the items with a known answer; `there` counts them by purpose."""
    found = []
    if there[PRACTICE] and not project.practice_items:
        found.append("Nobody gets the qualification items: the project asks for no qualification.")
    elif there[PRACTICE] < project.practice_items:
        found.append(
            f"Nobody can pass the qualification: a round has {project.practice_items} items, and"
            f" there {'is' if there[PRACTICE] == 1 else 'are'} {there[PRACTICE]}."
        )
    if there[PROBE] and not project.probe_every:
        found.append("Nobody gets the control items: the project asks for none.")
    return found


def _chosen_values(field: Any, chosen: dict[str, Any] | None) -> frozenset[str]:
    """The values chosen in the form, as strings."""
    answer = (chosen or {}).get(field.name)
    if answer in (None, ""):
        return frozenset()
    return frozenset(map(str, answer)) if isinstance(answer, list) else field.answer_values(answer)


def _entries(lead: Membership, task: tasktypes.TaskType, purpose: str) -> list[AnswerKeyEntry]:
    found = labelling_answer_key.items_with_answer(lead.project, purpose)
    stage = Stage.QUALIFICATION if purpose == PRACTICE else Stage.CONTROL
    labels = Label.objects.in_project(lead.project).current().at_stage(stage)
    answered = Counter(labels.values_list("item", flat=True))
    right = {r.item_id: r for r in Resolution.objects.current().known().of_items(found)}
    return [
        AnswerKeyEntry(
            item,
            right[item.pk],
            correct_answers.describe_answers(task, right[item.pk].values),
            answered[item.pk],
            purpose == PROBE and labelling_answer_key.key_reveals_purpose(item),
        )
        for item in found
    ]


def _filled_form(lead: Membership, key: str) -> AnswerKeyForm:
    """Fill the form with the item's known answer, if there is one."""
    if not key:
        return AnswerKeyForm()
    resolution = _resolution(lead, key)
    purpose = resolution.item.purpose if resolution else PRACTICE
    explanation = resolution.comment if resolution else ""
    return AnswerKeyForm(initial={"item": key, "purpose": purpose, "explanation": explanation})


def _known_values(lead: Membership, key: str) -> dict[str, Any]:
    resolution = _resolution(lead, key) if key else None
    return resolution.values if resolution else {}


def _resolution(lead: Membership, key: str) -> Resolution | None:
    found = Item.objects.in_project(lead.project).for_page(key)
    if found is None:
        return None
    resolutions = Resolution.objects.current().known().of_items([found])
    return resolutions.select_related("item").first()


def _compare_answers(
    task: tasktypes.TaskType, wrong: control_items.WrongAnswer
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    said = {name: wrong.said[name] for name in wrong.known if name in wrong.said}
    return correct_answers.describe_answers(task, said), correct_answers.describe_answers(
        task, wrong.known
    )
