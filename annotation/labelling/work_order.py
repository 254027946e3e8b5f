"""In which order annotators get the items of a project: the position of each item in the queue, and
the position at which each member starts.

Positions are stored in the slots of the items; lists keep the order of the file. In random order
each member starts at another position and goes round, so that the first labels cover all kinds of
items and two people do not label the same ones in the same order.
"""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models.fields.json import KeyTextTransform

from annotation.db import transactions
from annotation.models import Cursor, Item, Project, Slot
from stats.lots import draw_number

PRIORITIES = {"urgent": -10, "normal": 0, "later": 10}
RANDOM, FILE, FIELD = "random", "file", "field"
ORDER_TITLES = {
    RANDOM: "Random; each person starts at a different item",
    FILE: "As in the file",
    FIELD: "By a field of the items",
}
# The settings on which the positions depend, and which items come before others.
ORDER_SETTINGS = frozenset({"order", "order_field", "order_seed", "begun_first"})
BITS = 31
# Items that were imported after the sorting by a field come last until they are sorted in.
UNSORTED = 2**30
BATCH = 500


@dataclass(frozen=True)
class SortStep:
    """The number of items in a step of `sort_slots`, and how many are done in all."""

    changed: int
    last: int


def choose_for_new_project() -> dict[str, object]:
    """Return the settings of a new project: random order, and begun items first."""
    return {"order": RANDOM, "order_seed": draw_seed(), "begun_first": True}


def draw_seed() -> int:
    """Return a seed for a random order; never 0, which stands for none."""
    return 1 + secrets.randbelow(2**BITS - 1)


def queue_position(project: Project, position: int) -> int:
    """Return the position in the queue of the item at this position in the file."""
    if project.order == RANDOM:
        return draw_number(f"order\0{project.order_seed}\0{position}", bits=BITS)
    return UNSORTED + position if project.order == FIELD else position


def start_position(project: Project, member_id: int) -> int:
    """Return the position in the queue after which a member starts; -1 for the first one."""
    if project.order != RANDOM:
        return -1
    return draw_number(f"begin\0{project.order_seed}\0{member_id}", bits=BITS)


def next_priority(priority: int) -> int:
    """Return the priority that comes after this one; one that no slot has after the last."""
    later = [one for one in PRIORITIES.values() if one > priority]
    return min(later, default=32_767)


def finishes_begun(project: Project) -> bool:
    """True if items that somebody has labelled, and that need more labels, come first."""
    several = project.overlap > 1 or project.share_percent or project.disputed_overlap
    return project.begun_first and bool(several)


def sort_slots(project: Project, done: int = 0) -> Iterator[SortStep]:
    """Give all slots the positions of their items, step by step, after the first `done` items, and
    say of each whether its item is begun. In the end everybody starts anew, and gets what they have
    not labelled yet.

    By a field, numbers come before words, and items without the field last; equal ones stay in the
    order of the file.
    """
    by_field = _sorted_by_field(project) if project.order == FIELD else None
    while batch := _in_file(project, done) if by_field is None else by_field[done : done + BATCH]:
        with transactions.transact():
            # Whoever stores a label locks the item before its slots.
            ids = [pk for pk, _ in batch]
            list(Item.objects.locked().filter(pk__in=ids).order_by("pk").values_list("pk"))
            Slot.objects.filter(item__in=ids).lock_in_turn()
            Slot.objects.sort(batch)
        done += len(batch)
        yield SortStep(len(batch), done)
    Cursor.objects.filter(member__project=project).delete()


def _in_file(project: Project, after: int) -> list[tuple[int, int]]:
    """The next items after this position in the file, each with its position in the queue."""
    found = Item.objects.filter(project=project, position__gt=after).order_by("position")
    rows = found.values_list("pk", "position")[:BATCH]
    return [(pk, queue_position(project, position)) for pk, position in rows]


def _sorted_by_field(project: Project) -> list[tuple[int, int]]:
    value = KeyTextTransform(project.order_field, "fields")
    rows = Item.objects.filter(project=project).values_list("pk", "position", value)
    found = sorted(rows, key=lambda row: (_sort_key(row[2]), row[1]))
    return [(pk, place) for place, (pk, _, _) in enumerate(found, start=1)]


def _sort_key(value: object) -> tuple[int, float, str]:
    if value in (None, ""):
        return 2, 0.0, ""
    try:
        number = float(str(value))
    except ValueError:
        return 1, 0.0, str(value)
    return (0, number, "") if number == number else (1, 0.0, str(value))
