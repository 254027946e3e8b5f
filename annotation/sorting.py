"""Prompts sorted into abilities, by people: one by one, several at once, or as a model suggests.

An ability is never set over one that the page did not show. Each change is on record with what it
was before, so that it can be undone; a suggestion changes nothing until somebody takes it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from uuid import uuid4

from annotation import tasktypes, taxonomy, writing
from annotation.errors import FieldError, Refused
from annotation.models import Event, Item, Membership, Project
from annotation.querysets import ItemQuerySet, abilities, counting
from annotation.querysets.parts import batched
from annotation.taxonomy import Ability

KIND = "ability"
SUGGESTIONS = "suggestions"
WHICH = ("all", "unsorted", "suggested")
MOST = 500
# So many of a member's changes are looked through for one to undo.
UNDOABLE = 2_000
BATCH = 100


@dataclass(frozen=True)
class Wish:
    """The ability that the item of this key shall have; `shown` is the one that it was shown with,
    None if nobody was shown one."""

    key: str
    ability: str
    shown: str | None = None


@dataclass
class Sorted:
    """What became of it: items that changed, and those that somebody else had changed meanwhile,
    which stay as they are."""

    changed: list[Item] = field(default_factory=list)
    missed: list[Item] = field(default_factory=list)


@dataclass(frozen=True)
class Counts:
    """How many prompts there are, by ability; `suggested` are those of the unsorted ones for which
    there is a suggestion."""

    total: int
    unsorted: int
    suggested: int
    abilities: tuple[tuple[Ability, int], ...]


@dataclass(frozen=True)
class Suggestion:
    """The ability that somebody else than a person would give the item of this id."""

    item: int
    ability: str


def check(project: Project) -> None:
    """Raises `Refused` where the ability of an item follows from its category."""
    if tasktypes.of_version(project.task_type).categories:
        raise Refused("Items of this task have the ability of their category. Change that instead.")


def prompts(project: Project, which: str = "all") -> ItemQuerySet:
    """What is to be sorted, what is not sorted yet first."""
    found = Item.objects.in_project(project).of_tests()
    narrow = {"unsorted": abilities.unsorted, "suggested": abilities.suggested}.get(which)
    return abilities.unsorted_first(narrow(found) if narrow else found)


def counts(project: Project) -> Counts:
    found = prompts(project)
    by_ability = counting.counts(found, "ability")
    known = tuple((one, by_ability.get(one.slug, 0)) for one in taxonomy.load().sorts())
    total = sum(by_ability.values())
    unsorted = total - sum(number for _, number in known)
    return Counts(total, unsorted, abilities.suggested(found).count() if unsorted else 0, known)


def sort(member: Membership, wishes: Sequence[Wish]) -> Sorted:
    """Give items the abilities that are wished for; those that have theirs already stay untouched.

    Raises `Refused` for an item that is not there and for a project whose items have categories,
    and `FieldError` for an ability that is none.
    """
    check(member.project)
    known = [ability.slug for ability in taxonomy.load().sorts()]
    if wrong := [wish.ability for wish in wishes if wish.ability not in known]:
        raise FieldError(f"{wrong[0]!r} is no ability; use {', '.join(known)}.", "ability")
    if len(wishes) > MOST:
        raise Refused(f"Sort at most {MOST} at once.")
    return _apply(member, wishes, step=uuid4().hex)


def undo(member: Membership) -> Sorted:
    """Take the member's last change back that is not taken back yet, or all that they changed at
    once; items that were changed since by others stay as they are."""
    check(member.project)
    missed: list[Item] = []
    for step, events in _steps(member):
        wishes = [
            Wish(event.subject, event.old[KIND], event.new[KIND])
            for event in events
            if KIND in event.old and KIND in event.new
        ]
        there = Item.objects.in_project(member.project).with_keys([wish.key for wish in wishes])
        keys = set(there.values_list("key", flat=True))
        done = _apply(member, [wish for wish in wishes if wish.key in keys], undoes=step)
        missed += done.missed
        if done.changed:
            return Sorted(done.changed, missed)
    return Sorted([], missed)


def suggest(
    project: Project, said: Iterable[Suggestion], *, by: str, member: Membership | None = None
) -> int:
    """Keep suggestions with their items, in place of earlier ones; how many are new.

    Nothing is sorted by it: people take what they agree with. Raises `Refused` as `sort` does.
    `member` is who had them kept, None for a command.
    """
    check(project)
    known = {ability.slug for ability in taxonomy.load().sorts()}
    new = 0
    for part in batched(said, BATCH):
        wanted = {one.item: one.ability for one in part if one.ability in known}
        with writing.transact():
            found = Item.objects.locked().in_project(project).filter(pk__in=wanted)
            new += sum(item.suggest(wanted[item.pk], by) for item in found.order_by("pk"))
    if new:
        who = member.pk if member else None
        told = {"by": by, "items": new}
        Event.record(SUGGESTIONS, project.slug, project_id=project.pk, member_id=who, **told)
    return new


def _apply(member: Membership, wishes: Sequence[Wish], **said: str) -> Sorted:
    done = Sorted()
    with writing.transact():
        found = Item.objects.locked().in_project(member.project).of_tests()
        keyed = found.with_keys([wish.key for wish in wishes]).order_by("pk")
        items = {item.key: item for item in keyed}
        for wish in wishes:
            item = items.get(wish.key)
            if item is None:
                raise Refused(f"There is no prompt {wish.key!r} any more. Load the page again.")
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
    told: dict[str, Any] = {"old": {KIND: was}, "new": {KIND: item.ability}, **said}
    Event.record(KIND, item.key, project_id=member.project_id, member_id=member.pk, **told)


def _steps(member: Membership) -> Iterator[tuple[str, list[Event]]]:
    """What the member changed at once and has not taken back, the last first."""
    found = Event.objects.in_project(member.project).filter(kind=KIND, member=member)
    events = list(islice(found, UNDOABLE))
    undone = {event.data.get("undoes") for event in events}
    steps: dict[str, list[Event]] = {}
    for event in events:
        if "step" in event.data and event.data["step"] not in undone:
            steps.setdefault(event.data["step"], []).append(event)
    yield from steps.items()
