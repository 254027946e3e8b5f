"""The pages of all items of a project, and of one item."""

import json
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from annotation import tasktypes
from annotation.htmx import HtmxRequest
from annotation.importing import flags
from annotation.items import search, search_index, taxonomy
from annotation.items.diffing import stored
from annotation.items.filters import ItemPageFilter
from annotation.items.rendering import sheet
from annotation.labelling import bulk_changes, comments, correct_answers, visibility
from annotation.models import Item, Label, Mark, Membership, Resolution, Revision
from annotation.projects import access
from annotation.tasktypes import TaskType, versions

PAGE_SIZE = 50
# Further items that the search does not know yet are not counted.
MOST_DUE = 1_000


if TYPE_CHECKING:
    ItemPaginator = Paginator[Item]
else:
    ItemPaginator = Paginator


class FoundPages(ItemPaginator):
    """Pages of items, which are counted up to `search.MOST_FOUND` and one."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows.order_by()[: search.MOST_FOUND + 1].count())


@require_safe
@vary_on_headers("HX-Request")  # or the browser's Back could show only the rows
@login_required
def items(request: HtmxRequest, slug: str) -> HttpResponse:
    """Show the filtered items, without their texts, in pages of fifty.

    Records that the member has seen their final labels.
    """
    member = access.member_for(request, slug, right="items")
    visibility.check_filters(member, request.GET)
    task = tasktypes.load_version(member.project.task_type)
    people = Membership.objects.in_project(member.project).who_label()
    found = ItemPageFilter(
        request.GET,
        Item.objects.in_project(member.project).for_list(),
        former=versions.former_choices(member.project),
        people=[person.alias for person in people],
        task=task,
        categories=taxonomy.load_taxonomy(member.project) if task.categories else None,
    )
    typed = found.form.cleaned_data.get("text", "") if found.form.is_valid() else ""
    # Filters leave out what cannot be read, and would show everything.
    wrong = found.form.errors.get("text", [])
    pages = FoundPages if typed else Paginator
    shown = Item.objects.none() if wrong else found.qs
    page = pages(shown, PAGE_SIZE).get_page(request.GET.get("page"))
    asked, now = request.GET, timezone.now()
    visibility.record_list_seen(member, page.object_list, asked=asked, now=now)
    if not wrong:
        others = partial(found.filter_without, visibility.TELLING_FILTERS)
        visibility.record_left_out(member, others, asked=asked, now=now)
    context = {
        "project": member.project,
        "member": member,
        "task": task,
        "filters": found.form,
        "page": page,
        "filtered": any(found.form.data.values()),
        "wrong": wrong,
        "most": search.MOST_FOUND,
    }
    excerpts: dict[int, list[search.Excerpt]] = {}
    if member.is_lead:
        context["actions"] = bulk_changes.list_actions(member.project)
        context["latest"] = bulk_changes.latest_change(member, timezone.now())
    if typed:
        excerpts = search.find_excerpts(task, page, search.parse_query(typed))
        told = search.found_in_comments(excerpts)
        visibility.record_all_seen(member, told, now=timezone.now())
        context["searched"] = True
        context["due"] = search_index.count_due(member.project, MOST_DUE + 1)
        context["most_due"] = MOST_DUE
    context["rows"] = [(one, excerpts.get(one.pk, [])) for one in page]
    template = "annotation/items.html#rows" if request.htmx else "annotation/items.html"
    return render(request, template, context)


@require_safe
@login_required
def item(request: HttpRequest, slug: str, key: str) -> HttpResponse:
    """One item: its texts and their changes, every revision, every label, and the final label.

    `?revision=N` shows the texts of an earlier revision. When the comments are loaded, it is
    recorded that the member has seen others' opinions.
    """
    member = access.member_for(request, slug, right="items")
    found = Item.objects.in_project(member.project).for_page(key)
    if found is None:
        return _show_excluded(request, member, key)
    revision = _find_revision(found, request.GET.get("revision", ""))
    task = tasktypes.load_version(member.project.task_type)
    context = {
        "project": member.project,
        "member": member,
        "item": found,
        "task": task,
        "shown": revision,
        "texts": revision.texts,
        "difference": stored.load_difference(revision) if task.diff else None,
        "revisions": found.revisions.all(),
        "labels": Label.objects.of_item(found).for_page(),
        "comments": comments.load_comments(member, found, now=timezone.now()),
        "marked": Mark.objects.in_force()
        .of_item(found)
        .filter(kind=Mark.Kind.FLAG)
        .select_related("member"),
    }
    context |= _facts(member, task, found) | {"flags": _flags(task, found, revision)}
    return render(request, "annotation/item.html", context)


def _facts(member: Membership, task: TaskType, item: Item) -> dict[str, Any]:
    """Return the final label of an item and, for members who can see results, the item's own
    fields, which may contain the correct answer."""
    resolution = Resolution.objects.current().of_item(item).first()
    values = resolution.values if resolution else {}
    beside = {name: value for name, value in values.items() if name != task.deciding.name}
    return {
        "resolution": resolution,
        "held": correct_answers.describe_answers(task, beside),
        "own_fields": _own_fields(item) if member.can_see_results else [],
    }


def _own_fields(item: Item) -> list[tuple[str, str]]:
    """Return the names and values of the item's own fields, values that are no text as JSON. The
    texts before translation are shown as texts."""
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in item.fields.items()
        if name != sheet.ORIGINALS_FIELD
    ]


def _flags(task: TaskType, item: Item, shown: Revision) -> list[tuple[str, str]]:
    return flags.explain_flags(item.flags, shown.texts, task.diff, item.category)


def _show_excluded(request: HttpRequest, member: Membership, key: str) -> HttpResponse:
    """Say that the item was excluded, and when. Raises Http404 if there never was such an item."""
    gone = Item.objects.excluded(member.project, key)
    if gone is None:
        raise Http404
    since = gone.deleted_at
    context = {"project": member.project, "member": member, "key": key, "since": since}
    return render(request, "annotation/item_excluded.html", context, status=410)


def _find_revision(item: Item, number: str) -> Revision:
    """Return the revision with this number, the current revision for "". Raises `Http404` if there
    is no such revision."""
    wanted = number or str(item.revision_number)
    for revision in item.revisions.all():
        if str(revision.number) == wanted:
            return revision
    raise Http404
