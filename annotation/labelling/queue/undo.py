"""Items that a member takes back, opens again, puts aside, flags or holds on to."""

from datetime import datetime

from django.utils import timezone

from annotation import tasktypes
from annotation.db import transactions
from annotation.errors import Refused
from annotation.labelling import blind_names, effects, qualification
from annotation.labelling import slots as labelling_slots
from annotation.labelling.correct_answers import PRACTICE
from annotation.labelling.queue import claims, labels, load, offers, validation
from annotation.labelling.queue.offers import Offer
from annotation.labelling.submissions import ShownItem
from annotation.models import WORK_LIKE_STAGES, Item, Mark, Membership, Slot, Stage


def undo_label(
    member: Membership, *, stage: str = Stage.LABEL, now: datetime | None = None
) -> Offer | None:
    """Take the member's last label back and hold its item again; None if there is none.

    The label stays on record as withdrawn. If its slot went to somebody else and the item has no
    free one, the item is offered all the same: a new label is then an extra one.
    """
    now = now or timezone.now()
    with transactions.transact():
        claims.lock_member(member)
        last = offers.last_label(member, labelling_slots.related_stages(stage))
        if last is None or not qualification.can_undo(last):
            return None
        item = Item.objects.locked().get(pk=last.item_id)
        last.withdraw(now)
        if last.stage in WORK_LIKE_STAGES:
            claims.adjust_label_count(member, -1)
        slot = labelling_slots.hold_again(member, item, last.stage, last.slot, now)
        effects.apply_withdrawal(last, tasktypes.load_task_type(member.project), now)
        labels.record_event("undo", member, item, old={"choice": last.choice}, new={})
    return offers.build_offer(member, *load.load_slot(slot.pk), previous=last) if slot else None


def reopen_item(member: Membership, item_key: str, *, now: datetime | None = None) -> Offer:
    """An item that the member knows already, to be labelled, again or after all.

    One they have labelled keeps its label until a new one supersedes it. One that they skipped or
    began to write on is held again, if it has a free place; else a label will be an extra one.
    Raises `Refused` for any other item.
    """
    now = now or timezone.now()
    with transactions.transact():
        claims.lock_member(member)
        item = _find_item(member, item_key)
        if item is None or item.deleted_at or not offers.has_met_item(member, item):
            raise Refused("This item is not assigned to you. Continue with the next one.")
        own = Slot.objects.in_project(member.project_id).of_member(member.pk).of_item(item)
        slot = own.at_any(WORK_LIKE_STAGES).first()
        if item.purpose == PRACTICE:
            raise Refused("Qualification answers cannot be undone. See your qualification page.")
        if slot is None or slot.state != Slot.State.FILLED:
            stage = slot.stage if slot else Stage.LABEL
            slot = labelling_slots.hold_again(member, item, stage, slot, now)
        for mark in Mark.objects.of_member(member.pk, Mark.Kind.SKIP).filter(item=item):
            mark.end(now)
    if slot is None:
        raise Refused("This item no longer needs labels. Continue with the next one.")
    return offers.build_offer(member, *load.load_slot(slot.pk))


def skip_item(
    member: Membership,
    shown: ShownItem,
    *,
    note: str = "",
    now: datetime | None = None,
) -> None:
    """Give the shown item back; the queue brings it no more until the member reopens it."""
    now = now or timezone.now()
    ticket = validation.read_own_token(member, shown)
    with transactions.transact():
        slot, _ = validation.lock_shown(member, ticket, shown)
        if slot.stage == Stage.QUALIFICATION:
            raise Refused("Qualification items cannot be skipped. Choose the best answer.")
        if slot.state == Slot.State.FILLED and slot.member_id == member.pk:
            raise Refused(
                "You have labelled this item. Continue with the next one, or label it again."
            )
        _, made = Mark.objects.get_or_create(
            member=member,
            item=slot.item,
            kind=Mark.Kind.SKIP,
            ended_at=None,
            defaults={"note": note, "created_at": now},
        )
        if slot.member_id == member.pk:
            slot.release()
        if made:
            labels.record_event("skip", member, slot.item, note=note, revision=shown.revision)


def toggle_flag(
    member: Membership, item_key: str, *, note: str = "", now: datetime | None = None
) -> bool:
    """Ask a lead to look at an item that the member knows, or take that back; whether it stands."""
    now = now or timezone.now()
    with transactions.transact():
        claims.lock_member(member)
        item = _find_item(member, item_key)
        if item is None or item.deleted_at or not offers.has_met_item(member, item):
            raise Refused("This item is not assigned to you. Reload the page.")
        standing = Mark.objects.of_member(member.pk, Mark.Kind.FLAG).filter(item=item).first()
        if standing:
            standing.end(now)
        else:
            Mark.objects.create(member=member, item=item, kind="flag", note=note, created_at=now)
        labels.record_event("unflag" if standing else "flag", member, item, note=note)
    return standing is None


def renew_holds(member: Membership, *, now: datetime | None = None) -> frozenset[str]:
    """Hold on to what the member holds; what pages call the items that are still theirs."""
    now = now or timezone.now()
    with transactions.transact():
        claims.lock_member(member)
        held = Slot.objects.in_project(member.project_id).held_by(member.pk)
        held.hold_longer(labelling_slots.hold_until(member, now))
        slots = list(held.select_related("item").defer("item__fields"))
    names = blind_names.display_names(
        member, [slot.item for slot in slots if slot.stage in WORK_LIKE_STAGES]
    )
    return frozenset(names.get(slot.item_id, slot.item.key) for slot in slots)


def _find_item(member: Membership, item_key: str) -> Item | None:
    """The item that a page of the member's calls so, locked."""
    item = blind_names.find_item(member, item_key)
    return item and Item.objects.locked().get(pk=item.pk)
