"""A pilot: everybody labels the same few items before the rest of the work opens.

Each annotator has a slot of each pilot item, and gets nothing else until a lead opens the rest.
Items are drawn in turns from the categories, and at most one for each question. The draw depends
only on the project and the keys of the items.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice

from annotation.db import transactions
from annotation.errors import Refused
from annotation.labelling import assignment
from annotation.models import Event, Item, Label, Membership, Project, Role, Slot, Stage
from stats.lots import draw_number

LEAST_ITEMS, USUAL_ITEMS, MOST_ITEMS = 2, 10, 100


@dataclass(frozen=True)
class PilotProgress:
    """For each annotator, how many of the pilot items they have labelled, and how many are left for
    them. Items that are excluded meanwhile need no more labels."""

    items: int
    people: tuple[tuple[Membership, int, int], ...]

    @property
    def finished(self) -> int:
        """The number of annotators who have nothing left to label."""
        return sum(not left for _, _, left in self.people)


def begin(lead: Membership, number: int, *, now: datetime) -> int:
    """Begin a pilot with this many items, or as many as there are, and return their number.

    Raises `Refused` if a pilot is running, for a number out of range, and without annotators or
    items that nobody has labelled.
    """
    if not LEAST_ITEMS <= number <= MOST_ITEMS:
        raise Refused(f"A pilot has {LEAST_ITEMS} to {MOST_ITEMS} items.")
    if not _annotators(lead.project):
        raise Refused("There are no annotators yet. Invite them first.")
    with transactions.transact():
        project = _lock(lead.project)
        if project.pilot:
            raise Refused("A pilot is running already.")
        chosen = list(islice(_draw_items(project), number))
        if not chosen:
            raise Refused("Every item has labels already. Import new items first.")
        project.pilot = lead.project.pilot = sorted(chosen)
        project.save(update_fields=["pilot"])
    # Whoever joined meanwhile takes part as well.
    _reserve(project, _annotators(project), now)
    _record("pilot begun", lead, items=len(chosen))
    return len(chosen)


def include(member: Membership, *, now: datetime) -> None:
    """Give the pilot items to a new annotator, if a pilot is running."""
    if member.role == Role.ANNOTATOR and member.active:
        project = Project.objects.get(pk=member.project_id)
        _reserve(project, [member], now)


def end(lead: Membership) -> None:
    """End the pilot: everybody gets all items. Slots of pilot items that nobody has opened are
    closed, or return to the queue. Raises `Refused` if no pilot is running."""
    with transactions.transact():
        project = _lock(lead.project)
        if not project.pilot:
            raise Refused("No pilot is running.")
        chosen = project.pilot
        project.pilot = lead.project.pilot = []
        project.save(update_fields=["pilot"])
    for pk in chosen:
        with transactions.transact():
            item = Item.objects.locked().get(pk=pk)
            item.project = project
            # Somebody who was just joining may have reserved it until now.
            for member in Membership.objects.in_project(project):
                assignment.release_slots(member, [item])
    _record("pilot ended", lead, items=len(chosen))


def load_progress(project: Project) -> PilotProgress:
    """Count who has labelled how many of the pilot items."""
    labels = Label.objects.current().at_stage(Stage.LABEL).filter(item__in=project.pilot)
    done = [member for member, _ in set(labels.values_list("member", "item"))]
    slots = Slot.objects.at_work().of_live_items().in_use().filter(item__in=project.pilot)
    left = list(slots.values_list("reserved_for", flat=True))
    return PilotProgress(
        len(project.pilot),
        tuple(
            (member, done.count(member.pk), left.count(member.pk))
            for member in _annotators(project)
        ),
    )


def _annotators(project: Project) -> list[Membership]:
    return list(Membership.objects.in_project(project).who_label().filter(role=Role.ANNOTATOR))


def _draw_items(project: Project) -> Iterator[int]:
    """The ids of items that nobody has labelled, one of each category in turn, in drawn order."""
    found = Item.objects.in_project(project).originals().at_work().unlabelled()
    rows = found.order_by("category", "pk").values_list("category", "pk", "key", "cluster")
    drawn = []
    for _, of_category in groupby(rows.iterator(), key=lambda row: row[0]):
        numbered = (
            (draw_number(f"pilot\0{project.slug}\0{key}"), pk, cluster)
            for _, pk, key, cluster in of_category
        )
        drawn.append(heapq.nsmallest(MOST_ITEMS, numbered))
    turns, clusters = [iter(rows) for rows in sorted(drawn)], set[str]()
    while turns:
        for turn in list(turns):
            one = next((row for row in turn if row[2] not in clusters), None)
            if one is None:
                turns.remove(turn)
            else:
                clusters.add(one[2])
                yield one[1]


def _reserve(project: Project, people: Iterable[Membership], now: datetime) -> None:
    """Reserve a slot of each pilot item for each of these people, item by item, so that others can
    label meanwhile."""
    for pk in project.pilot:
        with transactions.transact():
            item = Item.objects.locked().get(pk=pk)
            # A lead who ends the pilot meanwhile releases only what is reserved by then.
            if pk not in Project.objects.values_list("pilot", flat=True).get(pk=project.pk):
                return
            item.project = project
            for member in people:
                assignment.reserve_slot(item, member, now)


def _lock(project: Project) -> Project:
    return Project.objects.select_for_update(no_key=True, of=("self",)).get(pk=project.pk)


def _record(kind: str, lead: Membership, *, items: int) -> None:
    project = lead.project
    Event.record(kind, project.slug, project_id=project.pk, member_id=lead.pk, items=items)
