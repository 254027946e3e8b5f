"""Who gets which items, how many labels each item gets, and in which order.

All of this is stored in the slots of an item: how many there are, who they are reserved for, and
their priority. Slots that are held or filled stay as they are.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import cycle, islice
from operator import attrgetter
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models import Q
from django.utils import timezone

from annotation.db import project_counts, transactions
from annotation.db.batches import make_batches
from annotation.errors import Refused
from annotation.items import readiness
from annotation.items.models import ItemQuerySet
from annotation.labelling import resolution, work_order
from annotation.labelling import slots as labelling_slots
from annotation.labelling.models.slots import SlotQuerySet
from annotation.models import (
    Event,
    Item,
    Label,
    Membership,
    Project,
    Reason,
    Resolution,
    Slot,
    Stage,
)
from stats.lots import draw_number

# Small enough for a batch to commit well within 200 ms, so that people can label meanwhile.
BATCH = 20
# Reserving a slot takes less than other changes.
RESERVED_TOGETHER = 100
ITEMS_PER_STEP = 2_000
COUNT_TIMEOUT = "20s"
# A request decides so many items; a lead presses again for more.
MOST_AT_ONCE = 1_000
# A request reserves so many labels: in seconds, or in about twenty if all items have labels, since
# each final label must then be decided again.
MOST_RESERVED = 20_000
# The settings that `labels_wanted` depends on.
SLOT_SETTINGS = frozenset({"overlap", "share_percent", "share_overlap"})
# What a job applies to the slots that are there.
APPLIED_SETTINGS = SLOT_SETTINGS | work_order.ORDER_SETTINGS | {"disputed_overlap"}


@dataclass(frozen=True)
class ResizeStep:
    """The number of items that a step of `resize_items` changed, and the id of the last item that
    it checked."""

    last: int
    changed: int


@dataclass(frozen=True)
class AssignmentResult:
    """The number of slots reserved; `refused` counts slots not reserved because the member has
    already worked on the item."""

    reserved: int
    refused: int


@dataclass(frozen=True)
class ReservedCount:
    """The number of open slots reserved for one member."""

    member: Membership
    count: int


def lock_settings(project: Project) -> Project:
    """Lock the project, and load the settings that slots depend on, which a lead may have changed
    since the project was loaded. Return the locked project."""
    settings = SLOT_SETTINGS | work_order.ORDER_SETTINGS
    named = ("pk", "taxonomy", *settings)
    stored = Project.objects.select_for_update(no_key=True).only(*named).get(pk=project.pk)
    for name in settings:
        setattr(project, name, getattr(stored, name))
    return stored


def build_slots(project: Project, item: Item) -> list[Slot]:
    """Build the label slots of a new item, as many as `labels_wanted` says, without storing
    them."""
    return [
        Slot(
            project=project,
            item=item,
            stage=Stage.LABEL,
            number=number,
            position=work_order.queue_position(project, item.position),
            reason=reason,
        )
        for number, reason in slot_numbers(project, item.key)
    ]


def slot_numbers(project: Project, key: str) -> list[tuple[int, str]]:
    """The number and the reason of each of these slots; the reason is "" for slots of the normal
    overlap."""
    every = range(1, 1 + labels_wanted(project, key))
    return [(number, "" if number <= project.overlap else Reason.SHARE.value) for number in every]


def labels_wanted(project: Project, key: str) -> int:
    """The number of labels that an item with this key needs if annotators agree."""
    return max(project.overlap, project.share_overlap if is_in_share(project, key) else 0)


def is_in_share(project: Project, key: str) -> bool:
    """True if the item is in the double-annotated sample.

    The sample is drawn by a hash of the project's slug and the item's key, so it does not depend on
    when or in which order items are imported. A larger sample contains every smaller sample.
    """
    drawn = draw_number(f"share\0{project.slug}\0{key}", bits=64)
    return drawn < project.share_percent * 2**64 // 100


def resize_items(project: Project, *, now: datetime, after: int = 0) -> Iterator[ResizeStep]:
    """Adjust the number of slots of all items to the project's settings, step by step.

    Starts after the item with id `after`, so that an interrupted run can continue. Items without
    work (duplicates, and items accepted at import) get no slots.
    """
    todo = _items_to_resize(project, after)
    while batch := list(islice(todo, BATCH)):
        changed = 0
        with transactions.transact():
            for item in Item.objects.locked().filter(pk__in=batch).order_by("pk"):
                item.project = project
                changed += _resize(project, item, now)
        yield ResizeStep(batch[-1], changed)


def preview_resize(project: Project) -> Counter[str]:
    """Count the items that `resize_items` would change, and the other items by why they stay as
    they are.

    Uses the settings of this project object, even if they are not stored.

    `items` counts all items. Each item is in one of these groups: `more` and `fewer` get more or
    fewer slots; `same` have the right number; `begun` have too many slots, but all their slots are
    taken or reserved; `excluded` were taken out by an annotator who was not sure; `accepted`,
    `waiting`, `repeats` and `known` have no slots. `settled` counts the items of `more` that have a
    final label from labels; `to_label` counts the items that need a label after the change. Runs
    one statement; in a large project the result may be some seconds old. Raises `Refused` if
    PostgreSQL needs longer than COUNT_TIMEOUT.
    """
    percent = project.share_percent
    groups = project_counts.get_cached_count(
        project, f"places-{percent}", "", lambda: _count_groups(project, percent)
    )
    counts: Counter[str] = Counter()
    for *kind, number in groups:
        group = _ResizeGroup(*kind)
        state = group.state(project)
        counts.update({"items": number, state: number})
        if state == "more" and group.source == Resolution.Source.LABELS:
            counts["settled"] += number
        if group.needs_labels(project):
            counts["to_label"] += number
    return counts


@dataclass(frozen=True)
class _ResizeGroup:
    """Items that are the same in everything that `_resize` looks at.

    used: slots that every item gets and that are not closed; spare: the used slots that are open
    and not reserved; unfilled: open and held slots, whatever their reason; labelled: True if a slot
    that every item gets is filled. drawn: True if the items are in the double-annotated sample.
    source, rule: of the final label; "" without a final label.
    """

    purpose: str
    repeats: bool
    has_slots: bool
    used: int
    spare: int
    unfilled: int
    labelled: bool
    drawn: bool
    source: str
    rule: str

    def wanted(self, project: Project) -> int:
        return max(project.overlap, project.share_overlap if self.drawn else 0)

    def state(self, project: Project) -> str:
        if self.purpose != "test":
            return "known"
        if not self.has_slots:
            return "repeats" if self.repeats else "accepted" if self.source else "waiting"
        if self.labelled and self.rule == resolution.EXCLUDED:
            return "excluded"
        missing = self.wanted(project) - self.used
        if missing >= 0:
            return "more" if missing else "same"
        return "fewer" if self.spare else "begun"

    def needs_labels(self, project: Project) -> bool:
        state = self.state(project)
        closing = min(self.spare, self.used - self.wanted(project)) if state == "fewer" else 0
        return state == "more" or (self.has_slots and self.unfilled > closing)


def refill_slots(item: Item, *, now: datetime) -> None:
    """Give the item, which must be locked, the number of slots that it should have."""
    if not _resize(item.project, item, now):
        resolution.update_resolution(item, now=now)


def resize_restored(project: Project, ids: Collection[int], *, now: datetime) -> None:
    """Give those of the items with these ids that were to be labelled the number of slots that they
    should have: changes of the settings left them out. The project and the items must be locked, in
    this order."""
    regular = Slot.objects.at_work().that_all_get().filter(item__in=ids)
    rows = Item.objects.filter(pk__in=regular.values("item")).work_slots()
    wrong = [pk for pk, key, slots in rows if slots != labels_wanted(project, key)]
    for item in Item.objects.filter(pk__in=wrong).order_by("pk"):
        item.project = project
        _resize(project, item, now)


def settle_disputes(project: Project, *, now: datetime) -> Iterator[ResizeStep]:
    """Close the open slots that were added after disagreements and that the settings no longer ask
    for, step by step; items without such a slot left go to adjudication."""
    added = Slot.objects.in_project(project.pk).at_work().filter(reason=Reason.DISPUTED)
    spare = added.free(now).order_by("item").values_list("item", flat=True)
    ids = spare.distinct()
    for batch in make_batches(list(ids), BATCH):
        with transactions.transact():
            items = Item.objects.locked().filter(pk__in=batch).order_by("pk")
            changed = sum(_settle_dispute(project, item, now) for item in items)
        yield ResizeStep(batch[-1], changed)


def _settle_dispute(project: Project, item: Item, now: datetime) -> bool:
    item.project = project
    slots = list(Slot.objects.at_work().of_item(item).not_closed().locked().in_order())
    spare = [s for s in slots if s.is_free(now) and s.reason == Reason.DISPUTED]
    surplus = spare[: max(0, len(slots) - project.disputed_overlap)]
    for slot in surplus:
        slot.close()
    if surplus:
        resolution.update_resolution(item, now=now, asks_more=len(surplus) < len(spare))
    return bool(surplus)


def stuck_items(project: Project) -> ItemQuerySet:
    """Find the items that wait for another annotator after a disagreement, or for one who does not
    exist."""
    added = Slot.objects.in_project(project.pk).at_work().filter(reason=Reason.DISPUTED)
    added = added.free(timezone.now())
    items = Item.objects.in_project(project)
    nobody = items.waiting_for("nobody").values("pk")
    return items.filter(Q(pk__in=added.values("item")) | Q(pk__in=nobody))


def stop_waiting(lead: Membership, *, now: datetime) -> int:
    """Let the labels of the `stuck_items` decide, and send those that disagree to adjudication.
    Returns the number of items, at most `MOST_AT_ONCE`.

    No later change of the settings asks for these labels again, unless it asks for more labels of
    all items.
    """
    ids = list(stuck_items(lead.project).values_list("pk", flat=True)[:MOST_AT_ONCE])
    for batch in make_batches(ids, BATCH):
        with transactions.transact():
            for item in Item.objects.locked().filter(pk__in=batch).order_by("pk"):
                item.project = lead.project
                for slot in Slot.objects.at_work().of_item(item).free(now).locked():
                    slot.waive()
                resolution.update_resolution(item, now=now, asks_more=False)
    _record("decide now", lead, items=len(ids))
    return len(ids)


def choose_items(
    project: Project,
    *,
    category: str = "",
    keys: Sequence[str] = (),
    unlabelled: bool = False,
    limit: int | None = None,
) -> ItemQuerySet:
    """Find the items in the normal work that match all given filters, in order; without filters,
    all items in it."""
    items = Item.objects.in_project(project).originals().at_work()
    if category:
        items = items.filter(category=category)
    if keys:
        items = items.with_keys(keys)
    if unlabelled:
        items = items.unlabelled()
    return items.defer("fields").order_by("position")[:limit]


def reserve_slots(
    lead: Membership,
    items: Iterable[Item],
    members: Sequence[Membership],
    *,
    share_out: bool = False,
    now: datetime,
) -> AssignmentResult:
    """Reserve a slot of each item for every member; with `share_out`, for one member at a time, in
    turn.

    An open slot of the item is used if there is one; otherwise a slot is created. Members who have
    worked on an item get no slot of it. Raises `Refused` for more than `MOST_RESERVED` labels.
    """
    reserved = refused = 0
    turns = cycle(members)
    ids = [item.pk for item in items] if members else []
    if (labels := len(ids) * (1 if share_out else len(members))) > MOST_RESERVED:
        raise Refused(
            f"These are {labels:,} labels. At most {MOST_RESERVED:,} can be reserved at once: "
            "choose fewer items or people."
        )
    for batch in make_batches(ids, RESERVED_TOGETHER):
        with transactions.transact():
            locked = Item.objects.locked().filter(pk__in=batch).defer("fields")
            wishes = {}
            for item in locked.order_by("position"):
                item.project = lead.project
                wishes[item] = [next(turns)] if share_out else members
            kept = _reserve(wishes, now)
        reserved, refused = reserved + kept, refused + sum(map(len, wishes.values())) - kept
    _record("reserve", lead, reserved=reserved, people=[member.alias for member in members])
    return AssignmentResult(reserved, refused)


def release_reserved(
    lead: Membership, member: Membership, items: Iterable[Item] | None = None
) -> int:
    """Return the open slots reserved for the member to the queue; the result is their number.

    Slots that were created for the member are closed. A slot that the member holds stays with the
    member as long as the member holds it. With `items`, only slots of these items are returned.
    """
    with transactions.transact():
        kept = Slot.objects.at_work().filter(reserved_for=member.pk).in_use()
        if items is not None:
            kept = kept.filter(item__in=list(items))
        number = release_slots(member, list(_lock_items(kept, lead.project)))
    _record("take back", lead, slots=number, people=[member.alias])
    return number


def release_slots(member: Membership, items: Sequence[Item]) -> int:
    """Like `release_reserved`, for these items, which must be locked; records no event."""
    held, now = {item.pk: item for item in items}, timezone.now()
    kept = Slot.objects.at_work().filter(reserved_for=member.pk, item__in=held).in_use()
    slots = []
    for slot in kept.locked().order_by("item_id", "pk"):
        if not slot.is_free(now):
            slot.stop_reserving()
            continue
        if slot.state == Slot.State.HELD:
            slot.release()
        slots.append(slot)
        slot.unreserve()
        if slot.state == Slot.State.CLOSED:
            # The labels that are there may decide the item without this one.
            resolution.update_resolution(held[slot.item_id], now=timezone.now())
    return len(slots)


def _lock_items(slots: SlotQuerySet, project: Project) -> Iterator[Item]:
    for item in Item.objects.locked().filter(pk__in=slots.values("item")).order_by("pk"):
        item.project = project
        yield item


def set_priority(lead: Membership, items: Iterable[Item], priority: str) -> int:
    """Set the priority of the items' slots, and return the number of items.

    With "urgent", open slots are also marked as returned, so that members whose cursor has passed
    them still find them. Raises KeyError if the priority is not one of `work_order.PRIORITIES`.
    """
    if priority not in work_order.PRIORITIES:
        raise KeyError(priority)
    count = 0
    for batch in make_batches([item.pk for item in items], BATCH):
        with transactions.transact():
            prioritise(batch, priority)
        count += len(batch)
    _record("priority", lead, priority=priority, items=count)
    return count


def prioritise(items: Iterable[int], priority: str) -> None:
    """Like `set_priority`, for the items with these ids, in one step; records no event."""
    chosen = list(items)
    # Items before slots, in the order of everybody else who changes several.
    list(Item.objects.locked().filter(pk__in=chosen).order_by("pk").values_list("pk"))
    slots = Slot.objects.at_work().filter(item__in=chosen)
    slots.lock_in_turn()
    slots.update(priority=work_order.PRIORITIES[priority])
    if priority == "urgent":
        slots.put_open_first()


def list_reserved(project: Project) -> list[ReservedCount]:
    """The number of open slots reserved for each member, sorted by alias."""
    counts = Slot.objects.in_project(project.pk).kept_counts()
    members = Membership.objects.in_project(project).filter(pk__in=counts).order_by("alias")
    return [ReservedCount(member, counts[member.pk]) for member in members]


def _items_to_resize(project: Project, after: int) -> Iterator[int]:
    """The ids of items with too few or too many slots, in order.

    Each batch is read completely before any of it is used: SQLite refuses a write if another
    connection wrote while a read was still open.
    """
    items = Item.objects.in_project(project)
    while rows := list(items.behind(after).work_slots()[:ITEMS_PER_STEP]):
        yield from (pk for pk, key, slots in rows if slots != labels_wanted(project, key))
        after = rows[-1][0]


# The hash that decides whether an item is in the sample (see `is_in_share`), as hexadecimal digits.
_SHARE_HASH_SQL = {
    "postgresql": "encode(sha256(%(share)s || convert_to(i.key, 'UTF8')), 'hex') COLLATE \"C\"",
    "sqlite": "SHA256(CAST(%(share)s AS TEXT) || i.key)",
}


def _count_groups(project: Project, percent: int) -> list[tuple[Any, ...]]:
    """For each `_ResizeGroup` of live items, its fields and the number of its items."""
    drawn = (
        f"{_SHARE_HASH_SQL[connection.vendor]} < %(bound)s"
        if 0 < percent < 100
        else "%(percent)s = 100"
    )
    of_all = "s.reason IN ('', 'share', 'waived')"
    words: dict[str, Any] = {
        "project": project.pk,
        "percent": percent,
        "share": f"share\0{project.slug}\0".encode(),
        "bound": f"{percent * 2**64 // 100:016x}",
    }
    statement = f"""
        SELECT purpose, repeats, has_slots, used, spare, unfilled, labelled, drawn, source, rule,
               COUNT(*)
        FROM
          (SELECT i.purpose, i.duplicate_of_id IS NOT NULL AS repeats,
             COUNT(s.id) > 0 AS has_slots,
             COUNT(CASE WHEN {of_all} AND (s.state <> 'closed' OR s.reason = 'waived')
                   THEN 1 END) AS used,
             COUNT(CASE WHEN {of_all} AND s.state = 'open' AND s.reserved_for_id IS NULL
                   THEN 1 END) AS spare,
             COUNT(CASE WHEN s.state IN ('open', 'held') THEN 1 END) AS unfilled,
             COUNT(CASE WHEN {of_all} AND s.state = 'filled' THEN 1 END) > 0 AS labelled,
             {drawn} AS drawn,
             COALESCE(r.source, '') AS source, COALESCE(r.rule, '') AS rule
           FROM annotation_item i
           LEFT JOIN annotation_slot s ON s.item_id = i.id AND s.stage = 'label'
           LEFT JOIN annotation_resolution r ON r.item_id = i.id AND r.current
           WHERE i.project_id = %(project)s AND i.deleted_at IS NULL
           GROUP BY i.id, r.id) AS each_item
        GROUP BY purpose, repeats, has_slots, used, spare, unfilled, labelled, drawn, source, rule
        """
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                # With a million items, compiling the statement took as long as running it.
                cursor.execute("SET LOCAL jit TO off")
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [COUNT_TIMEOUT])
            cursor.execute(statement, words)
            return cursor.fetchall()
    except OperationalError as error:
        from psycopg.errors import QueryCanceled

        if not isinstance(error.__cause__, QueryCanceled):
            raise
        raise Refused(
            "Counting the items that change takes too long. You can still save."
        ) from error


def _resize(project: Project, item: Item, now: datetime) -> bool:
    """Open or close slots of the item, which must be locked, until it has the wanted number.

    Returns True if anything changed. An item that still lacks a text gets no slots.
    """
    if readiness.lacks_texts(item):
        return False
    slots = list(Slot.objects.at_work().of_item(item).that_all_get().locked().in_order())
    waived = sum(slot.reason == Reason.WAIVED for slot in slots)
    slots = [slot for slot in slots if slot.reason != Reason.WAIVED]
    used = [slot for slot in slots if slot.state != Slot.State.CLOSED]
    if _is_labelled(slots) and resolution.is_excluded(item):
        return False
    number = labels_wanted(project, item.key) - waived
    changed = _open(project, item, slots, number - len(used)) or _close(used, len(used) - number)
    if changed and _is_labelled(slots):
        resolution.update_resolution(item, now=now)
    return changed


def _is_labelled(slots: Iterable[Slot]) -> bool:
    # Most items have no label yet, and without labels no resolution needs an update.
    return any(slot.state == Slot.State.FILLED for slot in slots)


def _open(project: Project, item: Item, slots: Iterable[Slot], missing: int) -> bool:
    if missing <= 0:
        return False
    closed = [slot for slot in slots if slot.state == Slot.State.CLOSED][:missing]
    # Items that nobody has labelled come in their order; whoever passed them starts anew.
    urgent = _is_labelled(slots)
    for slot in closed:
        slot.reopen(urgent=urgent)
    if missing > len(closed):
        reason = Reason.SHARE if labels_wanted(project, item.key) > project.overlap else ""
        labelling_slots.add_slots(
            item, Stage.LABEL, missing - len(closed), reason=reason, urgent=urgent
        )
    return True


def _close(used: Sequence[Slot], surplus: int) -> bool:
    spare = [s for s in used if s.state == Slot.State.OPEN and s.reserved_for_id is None]
    closing = spare[::-1][: max(0, surplus)]
    for slot in closing:
        slot.close()
    return bool(closing)


def reserve_slot(item: Item, member: Membership, now: datetime) -> bool:
    """Reserve a slot of the item, which must be locked, for the member. Returns False if the member
    has worked on the item, or if it needs no labels."""
    return bool(_reserve({item: [member]}, now))


def _reserve(wishes: Mapping[Item, Sequence[Membership]], now: datetime) -> int:
    """Reserve a slot of each of these items, which must be locked, for each of its members. Returns
    how many of these labels are reserved now; see `reserve_slot` for the others."""
    slots: dict[int, list[Slot]] = {item.pk: [] for item in wishes}
    for slot in Slot.objects.at_work().filter(item__in=slots).locked().order_by("item_id", "pk"):
        slots[slot.item_id].append(slot)
    given = Label.objects.current().at_stage(Stage.LABEL).filter(item__in=slots)
    worked = set(given.values_list("item", "member"))
    worked |= {(pk, slot.member_id) for pk, own in slots.items() for slot in own}
    final = Resolution.objects.current().of_items(slots).filter(rule=resolution.EXCLUDED)
    excluded = set(final.values_list("item", flat=True))
    reserved, made, labelled = 0, [], []
    taken: dict[Membership, list[int]] = defaultdict(list)
    for item, members in wishes.items():
        own = sorted(slots[item.pk], key=attrgetter("priority", "position", "number"))
        if readiness.lacks_texts(item) or (_is_labelled(own) and item.pk in excluded):
            continue
        able = [member for member in members if (item.pk, member.pk) not in worked]
        reserved += len(able)
        waiting = [slot for slot in own if slot.state == Slot.State.OPEN]
        kept_for = {slot.reserved_for_id for slot in waiting}
        new = [member for member in able if member.pk not in kept_for]
        free = [slot for slot in waiting if slot.reserved_for_id is None]
        for slot, member in zip(free, new, strict=False):
            taken[member].append(slot.pk)
        if further := new[len(free) :]:
            made += labelling_slots.build_named(item, own, further)
            labelled += [item] if _is_labelled(own) else []
    for member, ids in taken.items():
        Slot.objects.filter(pk__in=ids).update(reserved_for=member)
    Slot.objects.bulk_create(made)
    for item in labelled:
        resolution.update_resolution(item, now=now)
    return reserved


def _record(kind: str, lead: Membership, **data: object) -> None:
    project = lead.project
    Event.record(kind, project.slug, project_id=project.pk, member_id=lead.pk, **data)
