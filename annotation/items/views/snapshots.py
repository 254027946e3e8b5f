"""The pages of snapshots: the list, and one snapshot compared with another."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.errors import FieldError
from annotation.htmx import HtmxRequest
from annotation.items.snapshots import comparison, create
from annotation.labelling import visibility
from annotation.models import Membership, Snapshot
from annotation.projects import access

PAGE_SIZE = 50


class SnapshotForm(forms.Form):
    name = forms.CharField(
        max_length=create.NAME_LENGTH, help_text="For example v1. You cannot change the name later."
    )
    note = forms.CharField(
        required=False,
        max_length=create.NOTE_LENGTH,
        widget=forms.Textarea({"rows": 2}),
        help_text="What the snapshot is for.",
    )


class ComparisonForm(forms.Form):
    """Form to choose the snapshot to compare with and the kind of changes to list."""

    against = forms.IntegerField(required=False, min_value=1, label="Compared with")
    what = forms.ChoiceField(
        required=False, choices=[*comparison.CHANGE_TITLES.items()], label="Items that have been"
    )


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def snapshots(request: HtmxRequest, slug: str) -> HttpResponse:
    """Show all snapshots of a project. A POST starts a new snapshot."""
    asked = request.method == "POST"
    member = access.member_for(request, slug, right="manage" if asked else "items")
    form = SnapshotForm(request.POST if asked else None)
    if asked and form.is_valid():
        try:
            create.enqueue(member.project, access.ensure_membership(member), **form.cleaned_data)
        except FieldError as error:
            form.add_error(error.field, str(error))
        else:
            return redirect("snapshots", slug)
    found = list(Snapshot.objects.in_project(member.project).for_list())
    context: dict[str, Any] = {"project": member.project, "member": member, "form": form}
    context |= {"snapshots": found, "busy": any(one.made_at is None for one in found)}
    template = "annotation/snapshots.html" + ("#made" if request.htmx else "")
    return render(request, template, context, status=422 if asked else 200)


@require_safe
@login_required
def snapshot(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Show one snapshot and the changes since another snapshot, by default the previous one.

    Records that the member has seen the final labels of the listed items.
    """
    member = access.member_for(request, slug, right="items")
    made = Snapshot.objects.in_project(member.project).completed().for_list()
    one = made.filter(number=number).first()
    if one is None:
        messages.error(request, f"There is no snapshot {number}, or it is not ready yet.")
        return redirect("snapshots", slug)
    others = [other for other in made if other.pk != one.pk]
    form = ComparisonForm(request.GET)
    asked = form.cleaned_data if form.is_valid() else {}
    against = _choose_earlier(one, others, asked.get("against"))
    context: dict[str, Any] = {"project": member.project, "member": member, "snapshot": one}
    context |= {"others": others, "against": against}
    if against:
        context |= _comparison_context(
            request, member, (against, one), asked.get("what") or "changed"
        )
    return render(request, "annotation/snapshot.html", context)


@require_POST
@login_required
def cancel_snapshot(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Cancel a snapshot that is not complete."""
    member = access.member_for(request, slug, right="manage")
    found = Snapshot.objects.in_project(member.project).for_list().filter(number=number).first()
    if found is None or not create.cancel_snapshot(found, access.ensure_membership(member)):
        messages.error(request, f"Snapshot {number} is already complete, or does not exist.")
    return redirect("snapshots", slug)


def _choose_earlier(one: Snapshot, others: list[Snapshot], number: int | None) -> Snapshot | None:
    """Return the snapshot with this number, otherwise the latest before `one`, otherwise the first
    of `others`."""
    asked = [other for other in others if other.number == number]
    earlier = [other for other in others if other.number < one.number]
    return next(iter((*asked, *earlier, *others)), None)


def _comparison_context(
    request: HttpRequest, member: Membership, pair: tuple[Snapshot, Snapshot], what: str
) -> dict[str, Any]:
    page = Paginator(comparison.filter_changed(*pair, what), PAGE_SIZE).get_page(
        request.GET.get("page")
    )
    states = list(page.object_list)
    visibility.record_all_seen(member, [one.item_id for one in states], now=timezone.now())
    counts = comparison.count_changes(*pair)
    kinds = [(kind, words, counts[kind]) for kind, words in comparison.CHANGE_TITLES.items()]
    changes = list(comparison.list_changes(states, what, with_fields=member.can_see_results))
    return {"page": page, "what": what, "kinds": kinds, "changes": changes}
