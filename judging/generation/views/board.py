"""The generation board: review results of generated items, release of more, and regeneration."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.generation import generated_items, perturbers
from annotation.items import taxonomy
from annotation.models import Membership, Project
from annotation.projects import access
from annotation.reports import generation_board
from annotation.reports.generation_board import GenerationCounts, GenerationRow
from judging import tasks
from judging.errors import Refused
from judging.evaluators import endpoints
from judging.generation import regenerate
from judging.generation.forms import RegenerateForm
from judging.generation.regenerate import RejectedItem
from judging.models import Run, StrategyVersion
from judging.runs import choices
from judging.strategies import catalogue

# The segments of a bar, each with the name of its attribute in the counts, and its title.
PART_TITLES = {
    "held": "as intended",
    "turned_down": "rejected",
    "unseen": "accepted without review",
    "with_people": "in review",
    "waiting": "waiting",
}


@dataclass(frozen=True)
class BarSegment:
    """A segment of a bar with `n` items; `begin` and `width` are percentages of all items."""

    kind: str
    title: str
    n: int
    begin: float
    width: float


@dataclass(frozen=True)
class BoardRow:
    """A category on the board. `strategy` is the slug of the strategy that generated its items, ""
    if no model generated them; `rejected` counts the rejected items that have not been regenerated
    yet, and `no_regeneration` says why rejected items cannot be regenerated ("" if they can)."""

    row: GenerationRow
    bar: tuple[BarSegment, ...]
    strategy: str
    rejected: int
    no_regeneration: str


def load_board(project: Project) -> list[BoardRow]:
    """The rows of the board; [] if nothing was generated here."""
    rows = generation_board.measure_generation(project)
    if not rows:
        return []
    every = [one for one in catalogue.list_strategies(project) if one.strategy.generates]
    of_slug = {one.strategy.slug: one.strategy.category for one in every}
    offered = sorted((one for one in every if one.is_offered), key=lambda one: one.is_own)
    of_category = {one.strategy.category: one.strategy.slug for one in offered}
    of_category.pop("", None)
    rejected = regenerate.count_rejected(project)

    def line(row: GenerationRow) -> BoardRow:
        makers = [part.maker.partition(" ")[0] for part in row.parts]
        made_by = next((slug for slug in reversed(makers) if slug in of_slug), "")
        own = of_category.get(row.category, made_by)
        n = rejected.get(row.category, 0) if row.category else 0
        return BoardRow(
            row=row,
            bar=tuple(_bar(row.whole)),
            # What made a category's items may have made those of others too: a translation.
            strategy=own if of_slug.get(made_by) else made_by,
            rejected=n,
            no_regeneration=_explain_no_regeneration(row, n, row.category in of_category),
        )

    return [line(row) for row in rows]


def _explain_no_regeneration(row: GenerationRow, rejected: int, has_generator: bool) -> str:
    if not row.whole.turned_down:
        return ""
    if not row.category:
        return "Items without a category cannot be regenerated. Start a new run to get other items."
    if not rejected:
        return (
            "Nothing is left to regenerate: the rejected items have been regenerated, or their "
            "final label keeps them in the data set."
        )
    if not has_generator:
        return (
            "Rejected items cannot be regenerated: no strategy generates this category. Copy a "
            "generator and change its category."
        )
    return ""


def list_generator_endpoints() -> list[str]:
    """The names of the endpoints that can generate texts, thus without baselines."""
    models = choices.list_endpoints().exclude(provider=endpoints.BASELINE)
    return list(models.values_list("name", flat=True))


def _bar(made: GenerationCounts) -> Iterator[BarSegment]:
    begin = 0.0
    for kind, title in PART_TITLES.items():
        if n := getattr(made, kind):
            width = round(100 * n / made.items, 2)
            yield BarSegment(kind, title, n, round(begin, 2), width)
            begin += width


# The maximum number of rejected items offered at once.
MOST_AT_ONCE = 200


@require_safe
@never_cache
@login_required
def board(request: HttpRequest, slug: str) -> HttpResponse:
    """The generated items of each category, their review results, and the next steps."""
    member = access.member_for(request, slug, right="manage")
    context = {
        "project": member.project,
        "member": member,
        "lines": load_board(member.project),
        "parts": PART_TITLES,
        "perturbs": perturbers.is_suitable(member.project),
    }
    return render(request, "judging/generation_board.html", context)


@require_POST
@login_required
def release_items(request: HttpRequest, slug: str) -> HttpResponse:
    """Release a category's held items to annotators, with or without flagged items."""
    member = access.member_for(request, slug, right="manage")
    category = request.POST.get("category", "")
    if category and taxonomy.load_taxonomy(member.project).find(category) is None:
        messages.error(request, "This category does not exist. Nothing was changed.")
        return redirect("generation-board", slug)
    flagged = request.POST.get("flagged") == "yes"
    by = access.ensure_membership(member)
    n = generated_items.release_waiting(
        member.project, category=category, flagged=flagged, member=by
    )
    if n:
        messages.success(request, f"{n:,} item{'s' * (n != 1)} released to annotators.")
    else:
        messages.info(request, "No such items were held for review.")
    return redirect("generation-board", slug)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def regenerate_items(request: HttpRequest, slug: str, category: str) -> HttpResponse:
    """Show a category's rejected items with people's comments; a POST regenerates the chosen
    items."""
    member = access.member_for(request, slug, right="manage")
    named = taxonomy.load_taxonomy(member.project).find(category)
    if named is None:
        raise Http404
    found = regenerate.load_rejected(member.project, category, most=MOST_AT_ONCE)
    versions = {one.slug: one for one in regenerate.list_strategies(member.project, category)}
    asked = request.method == "POST"
    form = _build_form(request.POST if asked else None, versions, found)
    if asked and form.is_valid() and (run := _start_run(member, category, form, versions, found)):
        messages.success(
            request, f"Run {run.number} regenerates them. Import its items when it has finished."
        )
        return redirect("run", slug, run.number)
    context = {
        "project": member.project,
        "member": member,
        "category": named,
        "form": form,
        "rejected": found,
        "more": max(0, regenerate.count_rejected(member.project).get(category, 0) - len(found)),
        "ticked": form.ticked(),
    }
    return render(request, "judging/regenerate.html", context, status=422 if asked else 200)


def _build_form(
    data: Any, versions: dict[str, StrategyVersion], found: list[RejectedItem]
) -> RegenerateForm:
    def told(one: StrategyVersion) -> str:
        whose = "your own" if one.project_id else "shipped"
        return f"{one.slug} v{one.number}, {whose}"

    return RegenerateForm(
        data,
        strategies=[(slug, told(one)) for slug, one in versions.items()],
        endpoints=list_generator_endpoints(),
        items=[one.item.key for one in found],
    )


def _start_run(
    member: Membership,
    category: str,
    form: RegenerateForm,
    versions: dict[str, StrategyVersion],
    found: list[RejectedItem],
) -> Run | None:
    """Start the run. If it is refused, return None and show the reason in the form."""
    said = form.cleaned_data
    chosen = set(said["items"])
    try:
        run = regenerate.start(
            member.project,
            category,
            items=[one.item.pk for one in found if one.item.key in chosen],
            strategy=versions[said["strategy"]],
            endpoint=choices.get_endpoint(said["endpoint"]),
            member=access.ensure_membership(member),
            cap=said["cap"],
        )
    except Refused as problem:
        form.add_error(None, str(problem))
        return None
    tasks.notify_workers(run.endpoint_id)
    return run
