"""The page of a member's five lists of items, with the actions on each."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from annotation import tasktypes
from annotation.items import taxonomy
from annotation.labelling import blind_names, drafts, queue
from annotation.labelling import my_items as labelling_my_items
from annotation.labelling.forms import LabelSearchForm
from annotation.projects import access

PAGE_SIZE = 50
LIST_TITLES = {
    "todo": "To do",
    "drafts": "Drafts",
    "done": "Done",
    "skipped": "Skipped",
    "reserved": "Reserved by others",
}


@require_safe
@never_cache
@login_required
def my_items(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the list that `?list=` names, fifty items per page. The list of labels can be
    searched."""
    member = access.member_for(request, slug, right="label")
    task = tasktypes.load_task_type(member.project)
    form = LabelSearchForm(request.GET, task, taxonomy.load_taxonomy(member.project))
    progress = queue.load_progress(member)
    name = request.GET.get("list", "")
    name = name if name in LIST_TITLES else "todo"
    rows = _rows(name, member, labelling_my_items.LabelSearch(**form.search()))
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    named = page.object_list if name in ("todo", "drafts", "skipped") else ()
    context = {
        "project": member.project,
        "member": member,
        "task": task,
        "form": form,
        "list": name,
        "title": LIST_TITLES[name],
        "counts": labelling_my_items.count_my_items(member, progress),
        "progress": progress,
        "now": timezone.now(),
        "page": page,
        "names": blind_names.display_names(member, [row.item for row in named]),
    }
    return render(request, "annotation/my_items.html", context)


def _rows(name: str, member: Any, search: labelling_my_items.LabelSearch) -> Any:
    if name == "done":
        return labelling_my_items.find_labels(member, search)
    find = {
        "todo": labelling_my_items.my_held_slots,
        "drafts": drafts.list_drafts,
        "skipped": labelling_my_items.skipped_marks,
    }
    return find.get(name, labelling_my_items.slots_held_by_others)(member)
