"""People sort prompts into abilities: one by one, several at once, or as a model suggests.

A change never overwrites an ability that the person could not see on the page. Each change is
recorded with the previous ability, so that it can be undone. A suggestion changes nothing until
somebody accepts it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from uuid import uuid4

from annotation import tasktypes
from annotation.db import counting, transactions
from annotation.db.batches import make_batches
from annotation.errors import FieldError, Refused
from annotation.items import abilities, taxonomy
from annotation.items.models import ItemQuerySet
from annotation.items.taxonomy import Ability
from annotation.models import Event, Item, Membership, Project

EVENT_KIND = "ability"
SUGGESTION_EVENT = "suggestions"
SELECTIONS = ("all", "unsorted", "suggested")
MAX_AT_ONCE = 500
# How many of a member's latest changes are searched for one to undo.
MAX_UNDO_EVENTS = 2_000
BATCH = 100


@dataclass(frozen=True)
class AbilityChange:
    """A request to set the ability of the item with this key. `shown` is the ability that the page
    showed; None if no page showed one."""

    key: str
    ability: str
    shown: str | None = None


@dataclass
class SortResult:
    """The changed items, and the items left alone because somebody else had changed them
    meanwhile."""

    changed: list[Item] = field(default_factory=list)
    missed: list[Item] = field(default_factory=list)


@dataclass(frozen=True)
class PromptCounts:
    """Numbers of prompts: in total, unsorted, and by ability. `suggested` counts the unsorted
    prompts that have a suggestion."""

    total: int
    unsorted: int
    suggested: int
    abilities: tuple[tuple[Ability, int], ...]


@dataclass(frozen=True)
class AbilitySuggestion:
    """The ability that a model suggests for the item with this id."""

    item: int
    ability: str


def check_sortable(project: Project) -> None:
    """Raise `Refused` if the category of an item determines its ability."""
    if tasktypes.load_version(project.task_type).categories:
        raise Refused(
            "In this task, the category determines the ability. Change the category instead."
        )


def list_prompts(project: Project, which: str = "all") -> ItemQuerySet:
    """Return the prompts to sort, unsorted prompts first; `which` is one of `SELECTIONS`."""
    found = Item.objects.in_project(project).of_tests()
    narrow = {"unsorted": abilities.filter_unsorted, "suggested": abilities.filter_suggested}.get(
        which
    )
    known = sorted_slugs(project)
    return abilities.order_unsorted_first(narrow(found, known) if narrow else found, known)


def sorted_slugs(project: Project) -> list[str]:
    """Return the slugs of the abilities into which the project's prompts are sorted."""
    return [ability.slug for ability in taxonomy.load_taxonomy(project).sorts]


def count_prompts(project: Project) -> PromptCounts:
    """The numbers of the project's prompts; abilities without prompts count 0. A prompt counts as
    unsorted if prompts are not sorted into its ability."""
    found = list_prompts(project)
    by_ability = counting.count_by(found, "ability")
    into = taxonomy.load_taxonomy(project).sorts
    known = tuple((one, by_ability.get(one.slug, 0)) for one in into)
    total = sum(by_ability.values())
    unsorted = total - sum(number for _, number in known)
    return PromptCounts(
        total,
        unsorted,
        abilities.filter_suggested(found, sorted_slugs(project)).count() if unsorted else 0,
        known,
    )


def set_abilities(member: Membership, wishes: Sequence[AbilityChange]) -> SortResult:
    """Set the requested abilities. Items that already have theirs are left unchanged.

    Raises `Refused` for an item that does not exist, for more than `MAX_AT_ONCE` changes and for a
    project whose items have categories, and `FieldError` for an unknown ability.
    """
    check_sortable(member.project)
    known = sorted_slugs(member.project)
    if wrong := [wish.ability for wish in wishes if wish.ability not in known]:
        raise FieldError(f"{wrong[0]!r} is not an ability; use {', '.join(known)}.", "ability")
    if len(wishes) > MAX_AT_ONCE:
        raise Refused(f"Sort at most {MAX_AT_ONCE} prompts at once.")
    return _apply_changes(member, wishes, step=uuid4().hex)


def undo_last(member: Membership) -> SortResult:
    """Undo the member's last change that is not undone yet, for all items of that change. Items
    that others have changed since are left unchanged."""
    check_sortable(member.project)
    missed: list[Item] = []
    for step, events in _undoable_steps(member):
        wishes = [
            AbilityChange(event.subject, event.old[EVENT_KIND], event.new[EVENT_KIND])
            for event in events
            if EVENT_KIND in event.old and EVENT_KIND in event.new
        ]
        there = Item.objects.in_project(member.project).with_keys([wish.key for wish in wishes])
        keys = set(there.values_list("key", flat=True))
        done = _apply_changes(member, [wish for wish in wishes if wish.key in keys], undoes=step)
        missed += done.missed
        if done.changed:
            return SortResult(done.changed, missed)
    return SortResult([], missed)


def store_suggestions(
    project: Project,
    said: Iterable[AbilitySuggestion],
    *,
    by: str,
    member: Membership | None = None,
) -> int:
    """Store suggestions in their items, replacing earlier ones. Return the number of new ones.

    This sorts no item: people accept the suggestions that they agree with. Suggestions of an
    unknown ability are ignored. Raises `Refused` for a project whose items have categories.
    `member` is the person who requested the suggestions; None for a command.
    """
    check_sortable(project)
    known = sorted_slugs(project)
    new = 0
    for part in make_batches(said, BATCH):
        wanted = {one.item: one.ability for one in part if one.ability in known}
        with transactions.transact():
            found = Item.objects.locked().in_project(project).filter(pk__in=wanted)
            new += sum(item.suggest(wanted[item.pk], by) for item in found.order_by("pk"))
    if new:
        who = member.pk if member else None
        told = {"by": by, "items": new}
        Event.record(SUGGESTION_EVENT, project.slug, project_id=project.pk, member_id=who, **told)
    return new


def _apply_changes(member: Membership, wishes: Sequence[AbilityChange], **said: str) -> SortResult:
    done = SortResult()
    with transactions.transact():
        found = Item.objects.locked().in_project(member.project).of_tests()
        keyed = found.with_keys([wish.key for wish in wishes]).order_by("pk")
        items = {item.key: item for item in keyed}
        for wish in wishes:
            item = items.get(wish.key)
            if item is None:
                raise Refused(f"The prompt {wish.key!r} no longer exists. Reload the page.")
            was = item.ability
            if was == wish.ability:
                continue
            if wish.shown is not None and wish.shown != was:
                done.missed.append(item)
                continue
            item.sort_into(wish.ability)
            _record(member, item, was, said)
            done.changed.append(item)
    return done


def _record(member: Membership, item: Item, was: str, said: dict[str, str]) -> None:
    told: dict[str, Any] = {"old": {EVENT_KIND: was}, "new": {EVENT_KIND: item.ability}, **said}
    Event.record(EVENT_KIND, item.key, project_id=member.project_id, member_id=member.pk, **told)


def _undoable_steps(member: Membership) -> Iterator[tuple[str, list[Event]]]:
    """The member's changes that are not undone, grouped by step, the latest step first."""
    found = Event.objects.in_project(member.project).filter(kind=EVENT_KIND, member=member)
    events = list(islice(found, MAX_UNDO_EVENTS))
    undone = {event.data.get("undoes") for event in events}
    steps: dict[str, list[Event]] = {}
    for event in events:
        if "step" in event.data and event.data["step"] not in undone:
            steps.setdefault(event.data["step"], []).append(event)
    yield from steps.items()
