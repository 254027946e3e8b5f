"""The page of changes of many items: a POST changes items of the list, and a change can be
undone."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from annotation.errors import Refused
from annotation.items.filters import ItemFilter
from annotation.items.models import ItemQuerySet
from annotation.labelling import bulk_changes
from annotation.models import BulkChange, Item, Project
from annotation.projects import access

# A page shows at most so many changes, and names the items of those with so few.
MOST_SHOWN, MOST_NAMED = 100, 10


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def changes(request: HttpRequest, slug: str) -> HttpResponse:
    """List the changes of many items, the latest first.

    A POST changes the ticked items, or with `scope=all` the items that the filters of the address
    find, and goes back to the list of items.
    """
    lead = access.member_for(request, slug, right="manage")
    if request.method != "POST":
        found = BulkChange.objects.in_project(lead.project).defer("before")[:MOST_SHOWN]
        # Those of a large change take long to read.
        small = BulkChange.objects.filter(pk__in=[one.pk for one in found], count__lte=MOST_NAMED)
        keys = bulk_changes.list_keys(small, MOST_NAMED)
        listed = [
            (change, what, keys.get(change.pk, []))
            for change, what in bulk_changes.describe(lead.project, found)
        ]
        context = {"project": lead.project, "member": lead, "changes": listed}
        return render(request, "annotation/bulk_changes.html", context)
    action, _, value = request.POST.get("action", "").partition(":")
    try:
        items = _chosen_items(request, lead.project)
        lead = access.ensure_membership(lead)
        made = bulk_changes.change_items(lead, items, action, value, now=timezone.now())
    except Refused as problem:
        messages.error(request, str(problem))
    else:
        # The list tells of the latest change itself, with a button to undo it.
        if made.left or not made.change.count:
            messages.success(request, _describe(made))
    return redirect(f"{reverse('items', args=[slug])}?{request.GET.urlencode()}")


@require_POST
@login_required
def undo(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Undo a change."""
    lead = access.member_for(request, slug, right="manage")
    change = BulkChange.objects.in_project(lead.project).filter(number=number).first()
    if change is None:
        raise Http404
    try:
        count = bulk_changes.undo_change(access.ensure_membership(lead), change, now=timezone.now())
    except Refused as problem:
        messages.error(request, str(problem))
    else:
        stayed = change.count - count
        said = f"Undone: {_items(count)} as before."
        later = f" {_items(stayed)} changed since, and stayed." if stayed else ""
        messages.success(request, said + later)
    return redirect("bulk-changes", slug)


def _chosen_items(request: HttpRequest, project: Project) -> ItemQuerySet:
    """The items that a POST is about. Raises `Refused` for filters that find nothing."""
    items = Item.objects.in_project(project)
    if request.POST.get("scope") != "all":
        ticked: Any = [
            one for one in request.POST.getlist("item") if one.isascii() and one.isdigit()
        ]
        return items.filter(pk__among=[int(one) for one in ticked if len(one) < 19])
    found = ItemFilter(request.GET, items)
    if not found.is_valid():
        raise Refused("Correct the filters first.")
    return found.qs


def _describe(made: bulk_changes.BulkResult) -> str:
    left = "".join(f" {_items(number)}: {why}." for why, number in made.left.items())
    [(change, done)] = bulk_changes.describe(made.change.project, [made.change])
    said = f"{_items(change.count)} {done}."
    return said + (f" Not changed:{left}" if left else "")


def _items(number: int) -> str:
    return f"{number:,} item{'s' * (number != 1)}"
