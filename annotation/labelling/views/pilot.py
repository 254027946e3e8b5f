"""The page of the pilot: leads begin and end it, and see how people answered."""

from collections import Counter, defaultdict
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotation.errors import Refused
from annotation.labelling import pilot as labelling_pilot
from annotation.labelling import visibility
from annotation.labelling.pilot import LEAST_ITEMS, MOST_ITEMS, USUAL_ITEMS
from annotation.models import Item, Label, Membership, Project, Stage
from annotation.projects import access
from annotation.tasktypes import main_field


class PilotForm(forms.Form):
    items = forms.IntegerField(
        min_value=LEAST_ITEMS,
        max_value=MOST_ITEMS,
        initial=USUAL_ITEMS,
        label="Items of the pilot",
        help_text="Drawn from all categories. Every annotator labels all of them.",
    )


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def pilot(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the pilot; a POST begins one, or with `end` opens the rest of the work. While somebody
    has not finished, it asks first."""
    lead = access.member_for(request, slug, right="manage")
    form = PilotForm(request.POST if "items" in request.POST else None)
    progress = labelling_pilot.load_progress(lead.project)
    at_work = [person for person, _, left in progress.people if left]
    asks = "end" in request.POST and bool(at_work) and request.POST["end"] != "anyway"
    if request.method == "POST" and not asks and ("end" in request.POST or form.is_valid()):
        try:
            messages.success(request, _change(request, access.ensure_membership(lead), form))
        except Refused as problem:
            messages.error(request, str(problem))
        return redirect("pilot", slug)
    context = {
        "project": lead.project,
        "member": lead,
        "form": form,
        "progress": progress,
        "at_work": at_work if asks else (),
        "answers": _list_answers(lead),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "annotation/pilot.html", context, status=status)


def _change(request: HttpRequest, lead: Membership, form: PilotForm) -> str:
    if "end" in request.POST:
        labelling_pilot.end(lead)
        return "The pilot has ended. Everybody gets all items now."
    number = labelling_pilot.begin(lead, form.cleaned_data["items"], now=timezone.now())
    return f"The pilot has begun: every annotator labels the same {number} items."


def _list_answers(lead: Membership) -> list[tuple[Item, list[tuple[str, int]]]]:
    """The pilot items, each with how many people gave which answer, the most divided first. Records
    that the lead has seen the answers."""
    project: Project = lead.project
    if not project.pilot:
        return []
    main: Any = main_field.load_main_field(project)
    labels = Label.objects.current().at_stage(Stage.LABEL).filter(item__in=project.pilot)
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for item, choice in labels.values_list("item", "choice"):
        counts[item][main.title(choice)] += 1
    visibility.record_all_seen(lead, counts, now=timezone.now())
    found = Item.objects.in_project(project).filter(pk__in=project.pilot)
    rows = [(item, counts[item.pk].most_common()) for item in found.order_by("position")]
    return sorted(rows, key=lambda row: _agreed_share(row[1]))


def _agreed_share(answers: list[tuple[str, int]]) -> float:
    """The share of the most frequent answer; 1 without answers."""
    numbers = [number for _, number in answers]
    return max(numbers) / sum(numbers) if numbers else 1.0
