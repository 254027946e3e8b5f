"""Regenerate rejected items, with people's comments as guidance (study 000, section 3.4:
instructions were refined by looking at their results)."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Exists, OuterRef, Q

from annotation import tasktypes
from annotation.db import counting
from annotation.items import taxonomy
from annotation.items.models import ItemQuerySet
from annotation.labelling import comments
from annotation.labelling.models.labels import ERROR_ITEM, SI_ITEM
from annotation.models import Item, Label, Membership, Project, Stage
from annotation.reports import category_board
from annotation.reports.generation_board import GENERATED_ORIGINS
from annotation.tasktypes import TaskType, main_field
from judging.errors import Refused
from judging.generation import rows
from judging.models import Endpoint, Run, StrategyVersion
from judging.runs import lifecycle, run_config
from judging.runs.lifecycle import RunConfig
from judging.runs.run_config import RunOverrides
from judging.strategies import catalogue
from judging.strategies.replies.causes import MISSING

# The maximum number of characters taken from one remark, and from all remarks on an item.
MAX_REMARK_LENGTH, MAX_FEEDBACK_LENGTH = 1_000, 4_000
# Stands in remarks for whoever they mention: the prompt gives no names.
MENTIONED = "a colleague"


def rejected_items(project: Project) -> ItemQuerySet:
    """The rejected items that have not been regenerated yet, without qualification and control
    items.

    An item is rejected if its final label excludes it from the data set. A generated item is also
    rejected if annotators found an error where a score-invariant change was intended, or the other
    way round.
    """
    decides = main_field.load_main_field(project)
    values = [value for value, _ in decides.options if decides.drops(value)]
    found = Item.objects.in_project(project).originals().of_tests()
    rejected = found.resolved_as_one_of(values)
    if category_board.default_answer(project) == category_board.AS_INTENDED:
        known = taxonomy.load_taxonomy(project)
        invariant, either = known.with_effect("none"), known.with_effect("either")
        made = found.filter(origin__in=GENERATED_ORIGINS)
        rejected |= made.filter(category__in=invariant).resolved_as(ERROR_ITEM)
        rejected |= made.exclude(category__in=[*invariant, *either]).resolved_as(SI_ITEM)
    return rejected.filter(~_regenerated(project)).order_by("position")


def _regenerated(project: Project) -> Q:
    """A filter for the items of which a run that regenerates them made a live item. Others may have
    been made of them in other ways, such as by a perturber or as a translation."""
    made = Q(pk__in=[])
    for run in Run.objects.in_project(project).guided():
        guidance = run_config.load_overrides(run.pinned).guidance
        made |= Q(key__contains=rows.build_key_infix(run), parent__key__in=list(guidance))
    return Q(Exists(Item.objects.live().filter(made, parent=OuterRef("pk"))))


def collect_feedback(project: Project, items: Collection[int]) -> dict[int, str]:
    """The feedback on items, by item id. It begins with the claim about the change and, if this was
    to be score-invariant, with the intended label, followed by each annotator's answers and remarks
    from counted labels. Mentions in remarks name nobody. Items without labels are left out."""
    task = tasktypes.load_task_type(project)
    members = list(Membership.objects.in_project(project))
    labels = Label.objects.counted().in_project(project).at_stages([Stage.LABEL, Stage.ADJUDICATE])
    said: dict[int, list[str]] = defaultdict(list)
    for label in labels.filter(item__among=list(items)).oldest_first():
        said[label.item_id].append(" ".join(_label_remarks(task, label, members)))
    claims = _claims(project, said)
    return {
        item: "\n".join([*claims.get(item, []), *dict.fromkeys(words)])[:MAX_FEEDBACK_LENGTH]
        for item, words in said.items()
    }


def _label_remarks(task: TaskType, label: Label, members: list[Membership]) -> Iterator[str]:
    for option in task.chosen(label.answers):
        yield f"{option.title}."
    written = (label.answers.get(field.name) for field in task.fields if field.in_own_words)
    for text in (*written, label.comment):
        if isinstance(text, str) and text.strip():
            remark = comments.replace_mentions(text.strip(), members, MENTIONED)
            yield f"“{remark[:MAX_REMARK_LENGTH]}”"


def _claims(project: Project, items: Collection[int]) -> dict[int, list[str]]:
    found = Item.objects.filter(pk__among=list(items)).with_current_texts()
    invariant = taxonomy.load_taxonomy(project).with_effect("none")
    titles = dict(main_field.load_main_field(project).options)
    claims: dict[int, list[str]] = defaultdict(list)
    for item in found:
        if said := item.current_revisions[0].texts.get("claim", ""):
            claims[item.pk].append(f"The change was: {said[:MAX_REMARK_LENGTH]}")
        if item.category in invariant and SI_ITEM in titles:
            claims[item.pk].append(f"The intended label was: {titles[SI_ITEM]}.")
    return claims


@dataclass(frozen=True)
class RejectedItem:
    """A rejected item and the comments about it; "" if there are no comments."""

    item: Item
    said: str


def load_rejected(
    project: Project,
    category: str,
    *,
    items: Collection[int] | None = None,
    most: int | None = None,
) -> list[RejectedItem]:
    """The rejected items of a category that have not been regenerated yet, in order. `items`
    restricts the result to these ids; `most` is the maximum number of items."""
    every = rejected_items(project).filter(category=category)
    found = every if items is None else every.filter(pk__among=list(items))
    return _with_feedback(project, list(found[:most]))


def count_rejected(project: Project) -> dict[str, int]:
    """Count the items from `rejected_items` in each category."""
    return counting.count_by(rejected_items(project), "category")


def list_strategies(project: Project, category: str) -> list[StrategyVersion]:
    """The newest versions of the strategies that generate a category, the project's own first."""
    offered = [one for one in catalogue.list_offered(project) if one.strategy.generates]
    fit = [one for one in offered if one.strategy.category == category]
    return [one.version for one in sorted(fit, key=lambda one: not one.is_own)]


def retry_missing(run: Run, member: Membership | None) -> Run:
    """Start a run that asks again for the items that got no text from a finished generator run.

    The new requests have their own occasion, so that the unusable replies are not reused. The
    unusable replies stay, with their causes. Raises `Refused` like `lifecycle.start_run`.
    """
    if not run.generates or run.finished_at is None:
        raise Refused(f"Run {run.number} generates nothing, or is still running.")
    items = set(run.outcomes.filter(result=MISSING).values_list("item", flat=True))
    if not items:
        raise Refused(f"Run {run.number} generated a text for every item.")
    config = RunConfig(
        seed=run.seed,
        samples=run.samples,
        items=items,
        # What was drawn for these items stays.
        same_as=run,
        own=run_config.load_overrides(run.pinned),
        occasion=f"again after run {run.number}",
        cap=run.cap,
    )
    return lifecycle.start_run(
        run.project,
        strategy=run.strategy,
        endpoint=run.endpoint,
        member=member,
        config=config,
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
    """Start a run that regenerates the items with these ids. Raises `Refused` like
    `lifecycle.start_run`, and also for a strategy of another category, or if one of the items has
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
        config=RunConfig(
            items={one.item.pk for one in found}, own=RunOverrides(guidance=guidance), cap=cap
        ),
    )


def _with_feedback(project: Project, items: list[Item]) -> list[RejectedItem]:
    said = collect_feedback(project, {item.pk for item in items})
    return [RejectedItem(item, said.get(item.pk, "")) for item in items]
