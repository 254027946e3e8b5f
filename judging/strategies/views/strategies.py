"""Pages that list and show strategies, and compare their versions."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from annotation import errors, tasktypes
from annotation.items.diffing import difference
from annotation.models import Membership, Project
from annotation.projects import access
from judging.errors import Refused
from judging.models import StrategyVersion
from judging.strategies import catalogue, definitions, descriptions, preview, retirement

STEP_MESSAGES = {
    "retire": "{strategy} is retired. New runs cannot use it; existing runs stay as they are.",
    "delete": "{strategy} is deleted. You can restore it from the list below.",
    "back": "{strategy} is restored.",
}


@require_safe
@login_required
def strategy_list(request: HttpRequest, slug: str) -> HttpResponse:
    """All strategies that the project can use, by frame."""
    member = access.member_for(request, slug, right="results")
    context = {
        "project": member.project,
        "member": member,
        "groups": catalogue.group_by_frame(member.project),
        "deleted": catalogue.list_deleted(member.project),
    }
    return render(request, "judging/strategies.html", context)


@require_safe
@login_required
def strategy(request: HttpRequest, slug: str, strategy: str) -> HttpResponse:
    """One strategy with its description, source, versions and runs.

    `?version=N` shows an earlier version, `?old=&new=` compares two versions.
    """
    member = access.member_for(request, slug, right="results")
    newest = get_strategy_or_404(member, strategy)
    versions = catalogue.list_versions(member.project, newest)
    runs = catalogue.list_runs(member.project, newest)
    shown = _select_version(versions, request.GET.get("version", ""), newest)
    context = {
        "project": member.project,
        "member": member,
        "newest": newest,
        "version": shown,
        "versions": versions,
        "origin": versions[-1].parent,
        "source": catalogue.get_source(shown),
        "runs": runs,
        "suits": catalogue.suits_task(newest.strategy(), tasktypes.load_task_type(member.project)),
        "open_steps": retirement.list_open_steps(newest, len(runs)),
        **_version_context(member.project, shown),
        **_comparison_context(request, versions),
    }
    return render(request, "judging/strategy.html", context)


@require_POST
@login_required
def change_strategy(request: HttpRequest, slug: str, strategy: str, step: str) -> HttpResponse:
    """Retire, delete or restore one of the project's own strategies."""
    member = access.member_for(request, slug, right="run")
    try:
        retirement.STEPS[step](member.project, strategy, access.ensure_membership(member))
    except errors.Refused as problem:
        messages.error(request, str(problem))
    else:
        messages.success(request, STEP_MESSAGES[step].format(strategy=strategy))
    if catalogue.find_version(member.project, strategy) is None:
        return redirect("strategies", slug=slug)
    return redirect("strategy", slug=slug, strategy=strategy)


def get_strategy_or_404(member: Membership, slug: str) -> StrategyVersion:
    """The newest version of a strategy that the member's project can use, or 404."""
    version = catalogue.find_version(member.project, slug)
    if version is None:
        raise Http404
    return version


def _version_context(project: Project, version: StrategyVersion) -> dict[str, Any]:
    """Describe a version, with the metrics of the task type if it uses them."""
    asked, misfit = version.strategy(), ""
    try:
        metrics = preview.build_project_strategy(project, version).metrics
    except Refused as problem:
        metrics, misfit = asked.metrics, str(problem)
    return {
        "strategy": asked,
        "metrics": metrics,
        "misfit": misfit,
        "frame": descriptions.FRAME_DESCRIPTIONS[asked.frame],
        "offers": descriptions.describe_answers(asked),
        "decides": descriptions.describe_decision(asked),
        "reads": descriptions.describe_parsing(asked),
        "protection": descriptions.describe_protection(asked) if asked.prompts else "",
        "wording": "" if version.project_id else descriptions.describe_wording(asked),
        "warnings": definitions.list_warnings(asked),
        "steps": [asked.step(number) for number in range(asked.last_step + 1)],
    }


def _select_version(
    versions: list[StrategyVersion], wanted: str, newest: StrategyVersion
) -> StrategyVersion:
    if not wanted:
        return newest
    for version in versions:
        if str(version.number) == wanted:
            return version
    raise Http404


def _comparison_context(request: HttpRequest, versions: list[StrategyVersion]) -> dict[str, Any]:
    """Compare the sources of the two versions named in the URL.

    A strategy can also be compared with the version that it was copied from.
    """
    known = {str(version): version for version in versions}
    if origin := versions[-1].parent:
        known[str(origin)] = origin
    old, new = (known.get(request.GET.get(name, "")) for name in ("old", "new"))
    if old is None or new is None:
        return {}
    texts = (catalogue.get_source(old), catalogue.get_source(new))
    return {"old": old, "new": new, "compared": difference.compare(*texts)}
