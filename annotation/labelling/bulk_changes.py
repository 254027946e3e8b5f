"""Changes of many items at once, which a lead can undo: category, priority, reservation, control
items, and items that are left out of the project.

Only items of the normal work change. Each batch of items is stored together with what the items had
before, so that a change that was interrupted can be undone as well. Undoing leaves out items that
somebody has changed since.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from annotation import tasktypes
from annotation.db import transactions
from annotation.db.batches import make_batches
from annotation.errors import Refused
from annotation.items import taxonomy
from annotation.items.models import ItemQuerySet
from annotation.labelling import answer_key, assignment, work_order
from annotation.labelling.correct_answers import PROBE, PURPOSES
from annotation.labelling.models.slots import SlotQuerySet
from annotation.models import BulkChange, Event, Item, Membership, Project, Resolution, Slot

# Small enough for a batch to commit well within 200 ms, so that people can label meanwhile.
BATCH = 50
MOST_AT_ONCE = 10_000
# What a change of slots needs for each item takes some milliseconds, while the lead waits.
MOST_OF_SLOTS = 1_000
# So long the list of items offers to undo the latest change.
OFFER_UNDO_FOR = timedelta(minutes=10)
# A change that has not ended by then was interrupted.
BROKEN_AFTER = timedelta(minutes=5)

# The audit log names so many items of a change.
MOST_KEYS = 20

Before = dict[int, Any]


@dataclass(frozen=True)
class Step:
    """A batch of locked items, and what was asked for them; `left` counts the items that stay as
    they are, by the reason."""

    change: BulkChange
    items: list[Item]
    now: datetime
    left: Counter[str]

    @property
    def lead(self) -> Membership:
        return self.change.member

    @property
    def ids(self) -> list[int]:
        return [item.pk for item in self.items]

    def stays(self, reason: str, number: int = 1) -> None:
        if number:
            self.left[reason] += number


@dataclass(frozen=True)
class Action:
    """A kind of change. `apply` changes the items of a step, and returns what each changed item had
    before. `undo` gives it back to the items of a step, and returns the number of items. `values`
    are the values to choose from, with their titles; {} if there is nothing to choose."""

    title: str
    done: str
    apply: Callable[[Step], Before]
    undo: Callable[[Step], int]
    values: Callable[[Project], Mapping[str, str]] = lambda project: {}
    most: int = MOST_AT_ONCE


@dataclass(frozen=True)
class BulkResult:
    """A change, and how many items stayed as they were, by the reason."""

    change: BulkChange
    left: Counter[str]


def list_actions(project: Project) -> dict[str, tuple[Action, Mapping[str, str]]]:
    """The actions that make sense in the project, each with the values to choose from."""
    task = tasktypes.load_task_type(project)
    return {
        name: (action, action.values(project))
        for name, action in ACTIONS.items()
        if name != "category" or task.categories
    }


def change_items(
    lead: Membership, items: ItemQuerySet, action: str, value: str, *, now: datetime
) -> BulkResult:
    """Apply an action to items of the lead's project.

    Raises `Refused` if there is no such action or value, and for no items or too many.
    """
    asked, values = list_actions(lead.project).get(action, (None, {}))
    if asked is None:
        raise Refused("Choose what to change.")
    if (values or value) and value not in values:
        raise Refused(f"{asked.title}: choose one from the list.")
    ids = list(items.of_tests().order_by("pk").values_list("pk", flat=True)[: asked.most + 1])
    known = items.for_purposes(PURPOSES).count()
    if not ids and known:
        raise Refused("Qualification and control items stay as they are. Choose other items.")
    if not ids:
        raise Refused("No items are chosen. Tick some in the list, or choose all that match.")
    if len(ids) > asked.most:
        raise Refused(
            f"{asked.title}: at most {asked.most:,} items at once. Narrow the search, and repeat."
        )
    with transactions.transact():
        Project.objects.select_for_update(no_key=True, of=("self",)).get(pk=lead.project_id)
        number = BulkChange.objects.in_project(lead.project).count() + 1
        change = BulkChange.objects.create(
            project=lead.project, number=number, member=lead, action=action, value=value,
            created_at=now,
        )  # fmt: skip
    left = Counter({"qualification and control items": known} if known else {})
    for step in _steps(change, ids, now, left):
        before = asked.apply(step)
        change.before |= {str(pk): had for pk, had in before.items()}
        change.count += len(before)
        change.save(update_fields=["before", "count"])
    change.finished_at = timezone.now()
    change.save(update_fields=["finished_at"])
    _record("bulk change", lead, change, items=change.count)
    return BulkResult(change, left)


def undo_change(lead: Membership, change: BulkChange, *, now: datetime) -> int:
    """Give the items of a change back what they had, and return their number. Items that have been
    changed since stay as they are. If this breaks off, it can be done again.

    Raises `Refused` if the change is already undone or still under way.
    """
    change.refresh_from_db(fields=["undone_at", "finished_at", "before"])
    if change.undone_at:
        raise Refused("This change is already undone.")
    if change.finished_at is None and change.created_at > now - BROKEN_AFTER:
        raise Refused("This change is still under way. Undo it in some minutes.")
    ids = sorted(map(int, change.before))
    count = 0
    for step in _steps(change, ids, now, Counter()):
        count += ACTIONS[change.action].undo(step)
    # Somebody else may have undone it meanwhile.
    ended = BulkChange.objects.filter(pk=change.pk, undone_at=None)
    if not ended.update(undone_at=now, undone_by=lead):
        raise Refused("This change is already undone.")
    _record("bulk change undone", lead, change, items=count)
    return count


def _steps(
    change: BulkChange, ids: Iterable[int], now: datetime, left: Counter[str]
) -> Iterable[Step]:
    for batch in make_batches(ids, BATCH):
        with transactions.transact():
            # Before the items, so that a change of the settings applies either to this step or
            # after it.
            assignment.lock_settings(change.project)
            # An item may have megabytes of fields, which no change needs.
            locked = Item.objects.locked().filter(pk__in=batch)
            items = list(locked.defer("fields").order_by("pk"))
            for item in items:
                item.project = change.project
            yield Step(change, items, now, left)


def _categories(project: Project) -> dict[str, str]:
    return {one.slug: one.name for one in taxonomy.load_taxonomy(project).offered}


def _set_category(step: Step) -> Before:
    category = taxonomy.load_taxonomy(step.change.project).category(step.change.value)
    before: Before = {}
    for item in step.items:
        if item.category == category.slug:
            step.stays("already in this category")
            continue
        before[item.pk] = [item.category, item.ability, item.source_ability]
        if item.source_ability == item.ability:
            item.source_ability = category.ability
        item.category, item.ability = category.slug, category.ability
    _save(step, before, "category", "ability", "source_ability")
    return before


def _undo_category(step: Step) -> int:
    """Give the items their former category, with the ability that it has today. Those whose former
    category was merged meanwhile stay, as do those that were changed again."""
    known, given = taxonomy.load_taxonomy(step.change.project), set()
    for item in step.items:
        # Changes of earlier versions also have the ability of the new category, last.
        category, ability, source_ability = step.change.before[str(item.pk)][:3]
        former = known.find(category)
        is_merged = former is not None and former.merged_into
        if is_merged or item.category != step.change.value:
            continue
        today = former.ability if former else ability
        item.category, item.ability = category, today
        item.source_ability = today if source_ability == ability else source_ability
        given.add(item.pk)
    return _save(step, given, "category", "ability", "source_ability")


def _exclude(step: Step) -> Before:
    before: Before = {item.pk: None for item in step.items if item.deleted_at is None}
    for item in step.items:
        item.deleted_at = item.deleted_at or step.change.created_at
    _save(step, before, "deleted_at")
    return before


def _include(step: Step) -> int:
    out = {item.pk for item in step.items if item.deleted_at == step.change.created_at}
    for item in step.items:
        item.deleted_at = None if item.pk in out else item.deleted_at
    _save(step, out, "deleted_at")
    assignment.resize_restored(step.change.project, out, now=step.now)
    return len(out)


def _save(step: Step, changed: Iterable[int], *fields: str) -> int:
    chosen = set(changed)
    rows = [item for item in step.items if item.pk in chosen]
    if rows:
        Item.objects.bulk_update(rows, fields)
    return len(rows)


def _priorities(project: Project) -> dict[str, str]:
    return {name: name.capitalize() for name in work_order.PRIORITIES}


def _set_priority(step: Step) -> Before:
    level = work_order.PRIORITIES[step.change.value]
    had = _current_priorities(step)
    first = set(_slots_in_use(step).filter(returned=True).values_list("item", flat=True))
    before = {pk: [one, pk in first] for pk, one in had.items() if one != level}
    step.stays("have no labels to give", len(step.items) - len(had))
    step.stays("already have this priority", len(had) - len(before))
    assignment.prioritise(before, step.change.value)
    return before


def _undo_priority(step: Step) -> int:
    Slot.objects.at_work().filter(item__in=step.ids).lock_in_turn()
    level = work_order.PRIORITIES[step.change.value]
    given = [pk for pk, one in _current_priorities(step).items() if one == level]
    for name, was in work_order.PRIORITIES.items():
        assignment.prioritise([pk for pk in given if step.change.before[str(pk)][0] == was], name)
    in_order = [pk for pk in given if not step.change.before[str(pk)][1]]
    _slots_in_use(step).filter(item__in=in_order).update(returned=False)
    return len(given)


def _slots_in_use(step: Step) -> SlotQuerySet:
    return Slot.objects.at_work().filter(item__in=step.ids).in_use()


def _current_priorities(step: Step) -> dict[int, int]:
    slots = Slot.objects.at_work().filter(item__in=step.ids)
    return dict(slots.order_by("-priority").values_list("item", "priority"))


def _people(project: Project) -> dict[str, str]:
    # By the id: the alias of a member may change.
    people = Membership.objects.in_project(project).who_label()
    return {str(one.pk): one.alias for one in people}


def _reserve(step: Step) -> Before:
    member = Membership.objects.in_project(step.change.project).get(pk=step.change.value)
    own = Slot.objects.at_work().kept_for(member.pk).filter(item__in=step.ids)
    have = set(own.values_list("item", flat=True))
    before: Before = {}
    for item in step.items:
        if item.pk in have:
            step.stays(f"already reserved for {member.alias}")
        elif assignment.reserve_slot(item, member, step.now):
            before[item.pk] = None
        else:
            step.stays(f"{member.alias} has already worked on them, or they need no label")
    return before


def _unreserve(step: Step) -> int:
    member = Membership.objects.in_project(step.change.project).get(pk=step.change.value)
    return assignment.release_slots(member, step.items)


def _make_control_items(step: Step) -> Before:
    held = {
        one.item_id: one for one in Resolution.objects.of_current_texts().filter(item__in=step.ids)
    }
    deciding = tasktypes.load_task_type(step.change.project).deciding.name
    before: Before = {}
    for item in step.items:
        final = held.get(item.pk)
        if final is None:
            step.stays("have no final label, which would be the known answer")
            continue
        try:
            # A final label that came with an import has no answers besides its value.
            right = {deciding: final.value, **final.values}
            answer_key.set_answer(
                step.change.project, item, PROBE, right, final.comment, step.lead, now=step.now
            )
        except Refused as problem:
            step.stays(str(problem))
        else:
            before[item.pk] = None
    return before


def _release_control_items(step: Step) -> int:
    chosen = [item for item in step.items if item.purpose == PROBE]
    for item in chosen:
        answer_key.release_item(item, step.lead, now=step.now)
    return len(chosen)


ACTIONS: dict[str, Action] = {
    "category": Action(
        "Category", "moved to {value}", _set_category, _undo_category, _categories
    ),
    "priority": Action(
        "Priority", "given the priority {value}", _set_priority, _undo_priority, _priorities
    ),
    "reserve": Action(
        "Reserve for", "reserved for {value}", _reserve, _unreserve, _people, MOST_OF_SLOTS
    ),
    "control": Action(
        "Make control items", "made control items", _make_control_items, _release_control_items,
        most=MOST_OF_SLOTS,
    ),
    "exclude": Action("Exclude from the project", "excluded", _exclude, _include),
}  # fmt: skip


def describe(project: Project, changes: Iterable[BulkChange]) -> list[tuple[BulkChange, str]]:
    """Return each of these changes of the project with what it did, without the number of items."""
    names = {name: dict(action.values(project)) for name, action in ACTIONS.items()}
    # Also of people who label no more.
    people = Membership.objects.in_project(project).values_list("pk", "alias")
    names["reserve"] = {str(pk): alias for pk, alias in people}
    return [
        (one, ACTIONS[one.action].done.format(value=names[one.action].get(one.value, one.value)))
        for one in changes
    ]


def latest_change(lead: Membership, now: datetime) -> tuple[BulkChange, str] | None:
    """The latest change of the lead that can be undone, and what it did; None if the lead made none
    in the last minutes."""
    mine = BulkChange.objects.in_project(lead.project).filter(member=lead.pk).defer("before")
    recent = mine.filter(undone_at=None, count__gt=0, created_at__gte=now - OFFER_UNDO_FOR)
    found = describe(lead.project, recent[:1]) if recent.exists() else []
    return found[0] if found else None


def _record(kind: str, lead: Membership, change: BulkChange, *, items: int) -> None:
    """Record a change in words, with the keys of its first items."""
    [(_, done)] = describe(lead.project, [change])
    Event.record(
        kind,
        lead.project.slug,
        project_id=lead.project_id,
        member_id=lead.pk,
        change=done,
        items=items,
        keys=list_keys([change], MOST_KEYS)[change.pk],
    )


def list_keys(changes: Iterable[BulkChange], most: int) -> dict[int, list[str]]:
    """The keys of the first items of each change, excluded ones too, by the id of the change. Makes
    one query."""
    first = {change.pk: sorted(map(int, change.before))[:most] for change in changes}
    every = Item.objects.filter(pk__in={pk for ids in first.values() for pk in ids})
    keys = dict(every.values_list("pk", "key"))
    return {change: [keys[pk] for pk in ids] for change, ids in first.items()}
