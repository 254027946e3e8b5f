"""Open, show, decide and request cases, the items that need adjudication.

Members who labelled an item cannot decide it while there is another active member who may
adjudicate and has not labelled it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from annotation import tasktypes
from annotation.db import transactions
from annotation.errors import Refused, Stale
from annotation.items import readiness
from annotation.labelling import adjudication, queue, visibility
from annotation.labelling import resolution as labelling_resolution
from annotation.labelling import slots as labelling_slots
from annotation.labelling.correct_answers import PURPOSES
from annotation.labelling.models.labels import ResolutionQuerySet
from annotation.labelling.models.slots import SlotQuerySet
from annotation.labelling.queue import claims, offers
from annotation.labelling.queue.offers import Offer
from annotation.labelling.submissions import Submission
from annotation.models import (
    RIGHTS,
    WORK_LIKE_STAGES,
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
from annotation.tasktypes import TaskType

# Reasons for a disagreement, as codes for statistics.
DISAGREEMENT_REASONS = {
    "ambiguous": "The text can be read in several ways",
    "guidelines": "The guidelines leave a gap",
    "slip": "Somebody made a mistake",
}
# A decision would replace that answer.
_KNOWN = "This item has a known correct answer. Change that answer instead."
# The order in which cases are offered.
REASON_ORDER = (
    Reason.DISPUTED,
    Reason.CONTESTED,
    Reason.EXPERT,
    Reason.GOLD_ERROR,
    Reason.REQUESTED,
)
# The stages whose labels the adjudicator sees side by side.
_SHOWN_STAGES = (*WORK_LIKE_STAGES, Stage.VERIFY)


@dataclass(frozen=True)
class WaitingCase:
    """An item in the list of cases; the slot says why it waits and who holds it.

    missing: the number of labels still to come. labelled: True if the member has labelled the item,
    so that somebody else should decide.
    """

    slot: Slot
    missing: int
    labelled: bool

    @property
    def item(self) -> Item:
        return self.slot.item


@dataclass(frozen=True)
class Opinion:
    """One person's label of the item, with their blind label if there is one."""

    label: Label
    blind: Label | None


@dataclass(frozen=True)
class Case:
    """An item that needs adjudication, with everybody's labels.

    offer: what the member must send with the decision; None if the member cannot decide, for the
    reason in `barred`. slot: the slot of the decision; None if no decision was requested. disagree:
    True if the labels differ, so that a decision needs a reason.
    """

    item: Item
    slot: Slot | None
    offer: Offer | None
    barred: str
    said: tuple[Opinion, ...]
    missing: int
    disagree: bool
    resolution: Resolution | None


def waiting_slots(project: Project, reason: str = "") -> SlotQuerySet:
    """The slots of items that wait for a decision, in the order of `REASON_ORDER`; with `reason`,
    only the slots with this reason."""
    slots = Slot.objects.undecided(project.pk, REASON_ORDER)
    return slots.filter(reason=reason) if reason else slots


def list_waiting(member: Membership, slots: Iterable[Slot]) -> list[WaitingCase]:
    """The waiting cases on one page of the list; the number of queries does not depend on the
    number of cases."""
    slots = list(slots)
    missing = Slot.objects.missing_labels([slot.item_id for slot in slots])
    own = _labelled_items(member, slots)
    return [WaitingCase(s, missing.get(s.item_id, 0), s.item_id in own) for s in slots]


def count_waiting(project: Project) -> dict[str, int]:
    """Count the waiting items by reason, in the order of `REASON_ORDER`; reasons without items are
    left out."""
    found = waiting_slots(project).per_reason()
    return {reason.value: found[reason] for reason in REASON_ORDER if reason in found}


def next_case_key(member: Membership, now: datetime) -> str | None:
    """Find the key of the first case that the member can decide; None if there is no such case."""
    for slot in waiting_slots(member.project).open_to(member.pk, now).iterator(chunk_size=50):
        if not why_barred(member, slot.item):
            return slot.item.key
    return None


def open_case(member: Membership, item: Item, *, now: datetime) -> Case:
    """Load the item with everybody's labels, and hold its slot for the member if the member can
    decide.

    Records that the member sees others' labels.
    """
    visibility.record_seen(member, item, now=now)
    why_not = why_barred(member, item)
    slot, offer = _take_slot(member, item, now) if not why_not else (_used_slot(item), None)
    if not why_not and offer is None:
        why_not = _why_unavailable(slot, now)
    said = _load_opinions(item)
    task = tasktypes.load_task_type(member.project)
    resolution = Resolution.objects.current().of_item(item).select_related("member").first()
    missing = Slot.objects.missing_labels([item.pk]).get(item.pk, 0)
    return Case(
        item, slot, offer, why_not, said, missing, _has_disagreement(task, said), resolution
    )


def decide(
    member: Membership,
    sent: Submission,
    *,
    why: str = "",
    now: datetime,
) -> Label:
    """Store the member's decision and the reason for the disagreement; the decision becomes the
    resolution.

    An earlier decision by the member is superseded; an earlier decision by somebody else stops
    counting. Raises `Refused` and `Stale` like `queue.store_label`, `Refused` if annotators
    disagree and no reason is given, and `Stale` if the member's hold has ended and somebody else
    has the item: a page that was left open does not overrule them.
    """
    if why and why not in DISAGREEMENT_REASONS:
        raise Refused(
            f"There is no reason {why!r}. Choose one of {', '.join(DISAGREEMENT_REASONS)}."
        )
    task = tasktypes.load_task_type(member.project)
    with transactions.transact():
        item = Item.objects.in_project(member.project).filter(key=sent.item_key).first()
        if item and (reason := why_barred(member, item)):
            raise Refused(reason)
        if item and not why and _has_disagreement(task, _load_opinions(item)):
            raise Refused("Annotators disagree. Choose why, then decide.")
        label = queue.store_label(member, sent, stage=Stage.ADJUDICATE, now=now)
        if label.slot_id is None:
            raise Stale("Somebody else has opened or decided this item since. Look at it again.")
        for resolution in Resolution.objects.current().of_item(label.item):
            resolution.explain(why)
    return label


def last_decision(member: Membership) -> Label | None:
    """The decision that `undo_decision` would undo: the member's latest in force; None if there is
    none."""
    return None if member.pk is None else offers.last_label(member, (Stage.ADJUDICATE,))


def undo_decision(member: Membership, *, shown: str = "", now: datetime) -> Item | None:
    """Undo the member's latest decision, hold its item again and return it; None without a
    decision. `shown` is the decision that the page showed as the latest, as in `undo_label`.

    The resolution is computed from the labels again. The undone decision and its resolution stay on
    record.
    """
    if not member.pk:
        return None
    offer = queue.undo_label(member, stage=Stage.ADJUDICATE, shown=shown, now=now)
    return offer.item if offer else None


def request_decision(member: Membership, item: Item, *, now: datetime) -> Slot:
    """Send the item to adjudication, even if it was decided before; the earlier decision stays in
    force until the new decision.

    Raises `Refused` for an item with a known answer, since a decision would replace that answer.
    """
    with transactions.transact():
        locked = Item.objects.locked().get(pk=item.pk)
        if locked.purpose in PURPOSES:
            raise Refused(_KNOWN)
        readiness.check_ready(locked)
        slot = adjudication.open_decision(locked, Reason.REQUESTED)
        _record("ask for adjudication", member, item)
    return slot


def release_case(member: Membership, item: Item) -> None:
    """Release the member's hold on the case."""
    if member.pk is None:
        return
    with transactions.transact():
        claims.lock_member(member)
        held = (
            Slot.objects.in_project(item.project_id).at_stage(Stage.ADJUDICATE).held_by(member.pk)
        )
        for slot in held.of_item(item).locked():
            slot.release()


def withdraw_request(member: Membership, item: Item) -> bool:
    """Withdraw a request for adjudication that nobody has opened yet; return True if there was
    one."""
    with transactions.transact():
        locked = Item.objects.locked().get(pk=item.pk)
        locked.project = member.project
        closed = labelling_slots.close_open(item, Stage.ADJUDICATE, Reason.REQUESTED)
        if closed:
            # If annotators disagree, the item still needs a decision.
            labelling_resolution.update_resolution(locked, now=timezone.now())
            _record("withdraw request for adjudication", member, item)
    return bool(closed)


def decided_resolutions(project: Project) -> ResolutionQuerySet:
    """The project's resolutions from adjudication, the latest first."""
    return Resolution.objects.adjudicated_in(project)


def why_barred(member: Membership, item: Item) -> str:
    """The reason why the member may not decide the item; "" if the member may."""
    if member.pk is None:
        return "To decide, add yourself to the project as an adjudicator or a lead."
    if item.purpose in PURPOSES:
        return _KNOWN
    if not visibility.has_labelled(member, item):
        return ""
    able = Membership.objects.in_project(member.project).with_role_in(RIGHTS["adjudicate"])
    others = able.exclude(pk=member.pk)
    labelled = Label.objects.current().of_item(item).at_stages(WORK_LIKE_STAGES).values("member")
    names = list(others.exclude(pk__in=labelled).values_list("alias", flat=True)[:3])
    return f"You have labelled this item. Leave it to {' or '.join(names)}." if names else ""


def _take_slot(member: Membership, item: Item, now: datetime) -> tuple[Slot | None, Offer | None]:
    """Hold the slot of the decision for the member; return the slot and the offer to decide the
    item.

    The offer is None if somebody else holds the slot or no decision was requested. A member can
    hold only one case at a time.
    """
    with transactions.transact():
        claims.lock_member(member)
        Item.objects.locked().get(pk=item.pk)
        slots = Slot.objects.in_project(item.project_id).at_stage(Stage.ADJUDICATE).of_item(item)
        slot = slots.of_member(member.pk).first()
        if slot is None:
            slot = slots.free_for(member.pk, now).locked().in_order().first()
        if slot is None:
            return _used_slot(item), None
        if slot.state != Slot.State.FILLED:
            _release_others(member, item)
            slot.hold(member.pk, labelling_slots.hold_until(member, now))
    slot.item = item
    return slot, offers.build_offer(member, slot, item.revision())


def _release_others(member: Membership, item: Item) -> None:
    held = Slot.objects.in_project(member.project_id).at_stage(Stage.ADJUDICATE).held_by(member.pk)
    for slot in held.of_others_than(item).locked():
        slot.release()


def _used_slot(item: Item) -> Slot | None:
    slots = Slot.objects.in_project(item.project_id).at_stage(Stage.ADJUDICATE).of_item(item)
    used = slots.exclude(state=Slot.State.CLOSED).select_related("member", "item")
    return used.order_by("-state", "number").first()


def _why_unavailable(slot: Slot | None, now: datetime) -> str:
    if slot is None:
        return "No adjudication is requested for this item."
    if slot.state == Slot.State.FILLED:
        return f"{slot.member} has decided this item."
    return f"{slot.member} is deciding this item now."


def _load_opinions(item: Item) -> tuple[Opinion, ...]:
    """Everybody's current label of the item's current texts, oldest first."""
    labels = Label.objects.current().of_item(item).of_revision(item.revision()).for_page()
    blind = {label.member_id: label for label in labels if label.stage == Stage.BLIND}
    shown = [label for label in labels if label.stage in _SHOWN_STAGES]
    return tuple(Opinion(label, blind.get(label.member_id)) for label in shown)


def _has_disagreement(task: TaskType, said: Iterable[Opinion]) -> bool:
    """True if the labels differ in a field that becomes part of the resolution."""
    resolved = [field.name for field in task.resolved]
    answers = [[one.label.answers.get(name) for name in resolved] for one in said]
    return any(said != answers[0] for said in answers)


def _labelled_items(member: Membership, slots: Iterable[Slot]) -> set[int]:
    """The ids of the items of these slots that the member has labelled."""
    if member.pk is None:
        return set()
    items = [slot.item_id for slot in slots]
    own = Label.objects.current().of_member(member.pk).at_stages(WORK_LIKE_STAGES)
    return set(own.filter(item__in=items).values_list("item", flat=True))


def _record(kind: str, member: Membership, item: Item) -> None:
    Event.record(kind, item.key, project_id=item.project_id, member_id=member.pk)
