"""Regenerate rejected items, with people's comments as guidance (study 000, section 3.4:
instructions were refined by looking at their results)."""

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from annotation.db import counting
from annotation.labelling import rejection_feedback
from annotation.models import Item, Membership, Project
from judging.errors import Refused
from judging.models import Endpoint, Run, StrategyVersion
from judging.runs import lifecycle, run_config
from judging.runs.lifecycle import RunOptions
from judging.runs.run_config import RunOverrides
from judging.strategies import catalogue
from judging.strategies.replies.causes import MISSING


@dataclass(frozen=True)
class RejectedItem:
    """A rejected item and the comments about it, "" without any."""

    item: Item
    said: str


def load_rejected(
    project: Project,
    category: str,
    *,
    items: Collection[int] | None = None,
    most: int | None = None,
) -> list[RejectedItem]:
    """A category's rejected items that were not regenerated yet, in order; `items` restricts them
    to these ids, `most` limits their number."""
    every = rejection_feedback.rejected_items(project).filter(category=category)
    found = every if items is None else every.filter(pk__among=list(items))
    return _with_feedback(project, list(found[:most]))


def count_rejected(project: Project) -> dict[str, int]:
    """The number of such items in each category."""
    return counting.count_by(rejection_feedback.rejected_items(project), "category")


def list_strategies(project: Project, category: str) -> list[StrategyVersion]:
    """The newest versions of the strategies that generate a category, the project's own first."""
    offered = [one for one in catalogue.list_offered(project) if one.strategy.generates]
    fit = [one for one in offered if one.strategy.category == category]
    return [one.version for one in sorted(fit, key=lambda one: not one.is_own)]


def retry_missing(run: Run, member: Membership | None) -> Run:
    """Start a run that asks again about the items for which a finished generator run made nothing.

    Its requests have their own occasion, so that the unusable replies are not reused; they stay,
    with their causes. Raises `Refused` as `lifecycle.start_run` does.
    """
    if not run.generates or run.finished_at is None:
        raise Refused(f"Run {run.number} generates nothing, or is still running.")
    items = set(run.outcomes.filter(result=MISSING).values_list("item", flat=True))
    if not items:
        raise Refused(f"Run {run.number} generated a text for every item.")
    options = RunOptions(
        seed=run.seed,
        samples=run.samples,
        items=items,
        with_duplicates=True,
        own=run_config.load_overrides(run.pinned),
        occasion=f"again after run {run.number}",
        cap=run.cap,
    )
    return lifecycle.start_run(
        run.project,
        strategy=run.strategy,
        endpoint=run.endpoint,
        member=member,
        options=options,
    )


def start(
    project: Project,
    category: str,
    *,
    items: Collection[int],
    strategy: StrategyVersion,
    endpoint: Endpoint,
    member: Membership | None,
    cap: Decimal | None = None,
) -> Run:
    """Start a run that regenerates the items with these ids. Raises `Refused` as
    `lifecycle.start_run` does, for a strategy of another category, and if one of the items has
    meanwhile been regenerated or removed."""
    if strategy.strategy().category != category:
        raise Refused(
            f"Strategy {strategy.slug} does not generate {category}. Choose another strategy."
        )
    found = load_rejected(project, category, items=items)
    if len(found) < len(set(items)):
        raise Refused(
            "Some of these items have been regenerated or have a new final label. Reload the page."
        )
    if unsaid := [one.item.key for one in found if not one.said]:
        # Without guidance, the reply would be the same rejected text again.
        raise Refused(
            f"{unsaid[0]} has no comment that says why it was rejected. Leave such items out."
        )
    guidance = {one.item.key: one.said for one in found}
    return lifecycle.start_run(
        project,
        strategy=catalogue.store_version(strategy),
        endpoint=endpoint,
        member=member,
        options=RunOptions(
            items={one.item.pk for one in found}, own=RunOverrides(guidance=guidance), cap=cap
        ),
    )


def _with_feedback(project: Project, items: list[Item]) -> list[RejectedItem]:
    said = rejection_feedback.collect_feedback(project, {item.pk for item in items})
    return [RejectedItem(item, said.get(item.pk, "")) for item in items]
