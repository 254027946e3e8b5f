"""All items of a project, and all that is known of one of them."""

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from annotation import access, commenting, diffs, tasktypes
from annotation.filters import ItemPageFilter
from annotation.models import Item, Label, Resolution, Revision
from annotation.views.painting import HtmxRequest

A_PAGE = 50


@require_safe
@vary_on_headers("HX-Request")  # or the way back here could show the rows alone
@login_required
def items(request: HtmxRequest, slug: str) -> HttpResponse:
    """Items without their texts, filtered, fifty a page."""
    member = access.member_for(request, slug, right="items")
    task = tasktypes.of_version(member.project.task_type)
    choices = [(str(option.value), option.title) for option in task.deciding.options]
    found = ItemPageFilter(
        request.GET, Item.objects.in_project(member.project).for_list(), choices=choices
    )
    context = {
        "project": member.project,
        "member": member,
        "filters": found.form,
        "page": Paginator(found.qs, A_PAGE).get_page(request.GET.get("page")),
    }
    template = "annotation/items.html#rows" if request.htmx else "annotation/items.html"
    return render(request, template, context)


@require_safe
@login_required
def item(request: HttpRequest, slug: str, key: str) -> HttpResponse:
    """One item: its texts and what changed, every revision, every label, what is held true.

    `?revision=N` shows the texts of an earlier revision. That the member sees what others say of
    the item is noted with its comments.
    """
    member = access.member_for(request, slug, right="items")
    found = Item.objects.in_project(member.project).for_page(key)
    if found is None:
        raise Http404
    revision = _shown(found, request.GET.get("revision", ""))
    task = tasktypes.of_version(member.project.task_type)
    context = {
        "project": member.project,
        "member": member,
        "item": found,
        "task": task,
        "shown": revision,
        "texts": revision.texts,
        "difference": diffs.of(revision) if task.diff else None,
        "revisions": found.revisions.all(),
        "labels": Label.objects.of_item(found).for_page(),
        "resolution": Resolution.objects.current().of_item(found).first(),
        "comments": commenting.of_item(member, found, now=timezone.now()),
    }
    return render(request, "annotation/item.html", context)


def _shown(item: Item, number: str) -> Revision:
    """The revision of this number, or the current one if no number is given."""
    wanted = number or str(item.revision_number)
    for revision in item.revisions.all():
        if str(revision.number) == wanted:
            return revision
    raise Http404
