"""The page where leads draw the sample of the human baseline, and see its progress and people's
agreement."""

import io

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from annotation.errors import FieldError
from annotation.labelling import human_baseline
from annotation.models import Membership, Project
from annotation.projects import access, encrypted_archives
from annotation.reports import grouping
from formats.writers import write_csv


class SampleForm(forms.Form):
    """The size of a sample, its groups, and the number of annotators per item."""

    size = forms.IntegerField(min_value=1, max_value=100_000, initial=35, label="Items per group")
    by = forms.MultipleChoiceField(
        label="Group by",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one."},
    )
    raters = forms.IntegerField(min_value=1, max_value=50, initial=3, label="Annotators per item")
    seed = forms.IntegerField(
        min_value=0,
        max_value=2**31 - 1,
        initial=1,
        label="Seed",
        help_text="The same seed draws the same items, also in a larger sample.",
    )

    def __init__(self, data: object, project: Project) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        names = [(one.name, one.title) for one in grouping.list_groupings(project)]
        by = self.fields["by"]
        assert isinstance(by, forms.MultipleChoiceField)
        by.choices, by.initial = names, [names[0][0]]


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def baseline(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the sample; a POST draws or extends the sample or, with `end`, closes its open slots."""
    lead = access.member_for(request, slug, right="manage")
    if request.method != "POST":
        return _render_page(request, lead, SampleForm(None, lead.project))
    if "end" in request.POST:
        number = human_baseline.end_sample(access.ensure_membership(lead))
        closed = "1 open label is" if number == 1 else f"{number} open labels are"
        messages.success(request, f"{closed} cancelled. Existing labels stay.")
        return redirect("baseline", slug)
    form = SampleForm(request.POST, lead.project)
    if not form.is_valid():
        return _render_page(request, lead, form, status=422)
    made = human_baseline.draw_sample(
        access.ensure_membership(lead), **form.cleaned_data, now=timezone.now()
    )
    messages.success(request, _describe_sample(made))
    if made.short:
        messages.warning(
            request,
            f"For {made.short} of these items, too few annotators have not yet seen them. They "
            "stay open until somebody new joins.",
        )
    return redirect("baseline", slug)


@require_safe
@login_required
def download(request: HttpRequest, slug: str) -> HttpResponse:
    """Download every label of the sample with the item's final label, as CSV; not from a sealed
    project, whose exports are encrypted."""
    lead = access.member_for(request, slug, right="manage")
    try:
        encrypted_archives.check_not_sealed(lead.project, "Export the table baseline instead.")
    except FieldError as error:
        messages.error(request, str(error))
        return redirect("baseline", slug)
    stream = io.StringIO(newline="")
    write_csv(human_baseline.label_rows(lead.project), human_baseline.COLUMNS, stream)
    response = HttpResponse(stream.getvalue(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{slug}-baseline.csv"'
    return response


def _describe_sample(made: human_baseline.SampleResult) -> str:
    groups = ", ".join(f"{one.name} {one.drawn} of {one.available}" for one in made.groups)
    if not groups:
        return "No item has a final label yet, so there is nothing to compare the baseline with."
    return (
        f"{made.items} items are in the sample ({groups}); {made.new_slots} new labels to collect."
    )


def _render_page(
    request: HttpRequest, lead: Membership, form: SampleForm, status: int = 200
) -> HttpResponse:
    context = {
        "project": lead.project,
        "member": lead,
        "form": form,
        "progress": human_baseline.load_progress(lead.project),
        "people": human_baseline.agreement_by_person(lead.project),
    }
    return render(request, "annotation/baseline.html", context, status=status)
