"""The five piles of a person, each with what can be done about what lies on it."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from annotation import access, drafting, piles, queue, tasktypes, veils
from annotation.forms import PileForm

A_PAGE = 50
PILES = {
    "todo": "To do",
    "drafts": "Drafts",
    "done": "Done",
    "skipped": "Skipped",
    "held": "Held by others",
}


@require_safe
@never_cache
@login_required
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """One pile, fifty a page; `?pile=` names it, the pile of labels can be searched."""
    member = access.member_for(request, slug, right="label")
    task = tasktypes.of_project(member.project)
    form = PileForm(request.GET, task)
    progress = queue.progress(member)
    name = request.GET.get("pile", "")
    name = name if name in PILES else "todo"
    rows = _rows(name, member, piles.Search(**form.search()))
    page = Paginator(rows, A_PAGE).get_page(request.GET.get("page"))
    named = page.object_list if name in ("todo", "drafts", "skipped") else ()
    context = {
        "project": member.project,
        "member": member,
        "task": task,
        "form": form,
        "pile": name,
        "title": PILES[name],
        "piles": piles.counts(member, progress),
        "progress": progress,
        "now": timezone.now(),
        "page": page,
        "names": veils.names(member, [row.item for row in named]),
    }
    return render(request, "annotation/piles.html", context)


def _rows(name: str, member: Any, search: piles.Search) -> Any:
    if name == "done":
        return piles.done(member, search)
    find = {"todo": piles.mine, "drafts": drafting.of, "skipped": piles.skipped}
    return find.get(name, piles.held_by_others)(member)
