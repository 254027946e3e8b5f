"""The page that sorts prompts into abilities, with hotkeys; forms work without JavaScript."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from django.views.decorators.vary import vary_on_headers

from annotation import tasktypes
from annotation.errors import Refused
from annotation.htmx import HtmxRequest
from annotation.items import ability_sorting, taxonomy
from annotation.items.abilities import SUGGESTED, SUGGESTED_BY, text_beginnings
from annotation.items.ability_sorting import AbilityChange, SortResult
from annotation.models import Account, Item, Membership, Project
from annotation.projects import access
from annotation.tasktypes import TaskType

PAGE_SIZE = 50
# Characters of a prompt that the list shows; the item page shows all of it.
MAX_LENGTH, PREVIEW_LENGTH = 4_000, 240


@dataclass(frozen=True)
class PromptRow:
    """A row of the list: a prompt with the first `MAX_LENGTH` characters of its text and a
    preview."""

    item: Item
    text: str

    @property
    def start(self) -> str:
        """The first `PREVIEW_LENGTH` characters, on one line."""
        return " ".join(self.text[: 2 * PREVIEW_LENGTH].split())[:PREVIEW_LENGTH]

    @property
    def folds(self) -> bool:
        """True if the preview differs from the whole text in length or line breaks."""
        return self.start != self.text.strip()

    @property
    def goes_on(self) -> bool:
        """True if the prompt may be longer than `text`."""
        return len(self.text) == MAX_LENGTH

    @property
    def suggested(self) -> str:
        """The suggested ability, unless the item already has this ability."""
        slug = str(self.item.fields.get(SUGGESTED, ""))
        return "" if slug == self.item.ability else slug

    @property
    def suggested_by(self) -> str:
        """The model that made the suggestion; "" if unknown."""
        return str(self.item.fields.get(SUGGESTED_BY, ""))


@require_http_methods(["GET", "HEAD", "POST"])
@vary_on_headers("HX-Request")
@never_cache
@login_required
def abilities(request: HtmxRequest, slug: str) -> HttpResponse:
    """Show the prompts in pages of fifty, unsorted prompts first. A POST sets the abilities of some
    prompts."""
    lead = access.member_for(request, slug, right="manage")
    which = request.GET.get("which", "all")
    which = which if which in ability_sorting.SELECTIONS else "all"
    if request.method == "POST":
        return _sort(request, access.ensure_membership(lead), which)
    return render(request, "annotation/abilities.html", _context(request, lead, which))


def _sort(request: HtmxRequest, lead: Membership, which: str) -> HttpResponse:
    """Apply the changes. Return the changed rows for an htmx request, otherwise a redirect to the
    page."""
    try:
        done = (
            ability_sorting.undo_last(lead)
            if "undo" in request.POST
            else ability_sorting.set_abilities(lead, _parse_changes(request, lead.project))
        )
    except Refused as refused:
        if not request.htmx:
            messages.error(request, str(refused))
        return _render_result(request, lead, which, SortResult(), str(refused), status=422)
    names = taxonomy.load_taxonomy(lead.project).ability_names()
    said = _describe_result(done, names, undone="undo" in request.POST)
    if not request.htmx:
        messages.info(request, said)
    return _render_result(request, lead, which, done, said)


def _render_result(
    request: HtmxRequest,
    lead: Membership,
    which: str,
    done: SortResult,
    said: str,
    status: int = 200,
) -> HttpResponse:
    if not request.htmx:
        query = QueryDict(mutable=True)
        query.update({"which": which, "page": request.GET.get("page", "1")})
        return redirect(f"{reverse('abilities', args=[lead.project.slug])}?{query.urlencode()}")
    task = tasktypes.load_version(lead.project.task_type)
    context = _frame_context(request, lead, which)
    context |= {"rows": _rows(task, [*done.changed, *done.missed]), "said": said}
    return render(request, "annotation/abilities.html#changed", context, status=status)


def _parse_changes(request: HttpRequest, project: Project) -> list[AbilityChange]:
    """Return the changes that a form requests: for one row, for the selected rows, or for all
    suggestions.

    Raises `Refused` if the form requests no change.
    """
    sent = request.POST
    keys = sent.getlist("key")
    shown = dict(zip(keys, sent.getlist("shown"), strict=False))
    if "suggested" in sent:
        sorted_already = ability_sorting.sorted_slugs(project)
        offered = zip(keys, sent.getlist("offered"), strict=False)
        found = [
            (key, one) for key, one in offered if one and shown.get(key, "") not in sorted_already
        ]
    elif "all" in sent:
        found = [(key, sent["all"]) for key in sent.getlist("chosen")]
    else:
        ability, _, key = sent.get("set", "").partition(" ")
        found = [(key, ability)]
    if not found:
        raise Refused("Nothing is selected. Tick prompts first, or press a key on one of them.")
    # Without `shown`, assume that the page showed no ability, so that no unseen ability is
    # overwritten.
    return [AbilityChange(key, ability, shown.get(key, "")) for key, ability in found]


def _describe_result(done: SortResult, names: Mapping[str, str], *, undone: bool) -> str:
    said = []
    if len(done.changed) == 1:
        [item] = done.changed
        again = "again " * undone
        said.append(f"{item.key} is {again}{names.get(item.ability, item.ability) or 'unsorted'}.")
    elif done.changed:
        said.append(f"{len(done.changed)} prompts {'restored' if undone else 'sorted'}.")
    said += [
        f"Somebody else changed {item.key} to "
        f"{names.get(item.ability, item.ability) or 'unsorted'}; that stays."
        for item in done.missed[:20]
    ]
    nothing = "There is nothing to undo." if undone else "Nothing changed."
    return " ".join(said) or nothing


def _frame_context(request: HtmxRequest, lead: Membership, which: str) -> dict[str, Any]:
    assert isinstance(request.user, Account)
    return {
        "project": lead.project,
        "member": lead,
        "task": tasktypes.load_version(lead.project.task_type),
        "which": which,
        "counts": ability_sorting.count_prompts(lead.project),
    }


def _context(request: HtmxRequest, lead: Membership, which: str) -> dict[str, Any]:
    context = _frame_context(request, lead, which)
    task = context["task"]
    if task.categories:
        return context
    page = Paginator(ability_sorting.list_prompts(lead.project, which), PAGE_SIZE).get_page(
        request.GET.get("page")
    )
    rows = _rows(task, list(page.object_list))
    return context | {
        "page": page,
        "rows": rows,
        "offered": sum(bool(row.suggested) for row in rows),
    }


def _rows(task: TaskType, items: list[Item]) -> list[PromptRow]:
    texts = text_beginnings(items, task.texts[0].name, MAX_LENGTH)
    return [PromptRow(item, texts.get(item.pk, "")) for item in items]
