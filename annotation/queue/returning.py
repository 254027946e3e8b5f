"""Items that a member takes back, opens again, puts aside, flags or holds on to."""

from datetime import datetime

from django.utils import timezone

from annotation import following, places, practising, tasktypes, veils, writing
from annotation.errors import Refused
from annotation.models import LIKE_WORK, Item, Mark, Membership, Slot, Stage
from annotation.picking import holding, showing, turns
from annotation.queue import admitting, events, offers
from annotation.queue.offers import Offer
from annotation.submissions import Shown


def undo(
    member: Membership, *, stage: str = Stage.WORK, now: datetime | None = None
) -> Offer | None:
    """Take the member's last label back and hold its item again; None if there is none.

    The label stays on record as withdrawn. If its slot went to somebody else and the item has no
    free one, the item is offered all the same: a new label is then an extra one.
    """
    now = now or timezone.now()
    with writing.transact():
        turns.lock(member)
        last = offers.last_label(member, places.stages_of(stage))
        if last is None or not practising.can_undo(last):
            return None
        item = Item.objects.locked().get(pk=last.item_id)
        last.withdraw(now)
        if last.stage in LIKE_WORK:
            holding.count_label(member, -1)
        slot = places.hold_again(member, item, last.stage, last.slot, now)
        following.after_withdrawal(last, tasktypes.of_project(member.project), now)
        events.record("undo", member, item, old={"choice": last.choice}, new={})
    return offers.of(member, *showing.shown(slot.pk), previous=last) if slot else None


def reopen(member: Membership, item_key: str, *, now: datetime | None = None) -> Offer:
    """An item that the member knows already, to be labelled, again or after all.

    One they have labelled keeps its label until a new one supersedes it. One that they skipped or
    began to write on is held again, if it has a free place; else a label will be an extra one.
    Raises `Refused` for any other item.
    """
    now = now or timezone.now()
    with writing.transact():
        turns.lock(member)
        item = _named(member, item_key)
        if item is None or item.deleted_at or not offers.knows(member, item):
            raise Refused("This item is not one of yours. Go on with the next.")
        own = Slot.objects.in_project(member.project_id).of_member(member.pk).of_item(item)
        slot = own.at_any(LIKE_WORK).first()
        if item.purpose == Stage.PRACTICE:
            raise Refused("What you said in practice stands; your practice page shows it.")
        if slot is None or slot.state != Slot.State.FILLED:
            stage = slot.stage if slot else Stage.WORK
            slot = places.hold_again(member, item, stage, slot, now)
        for mark in Mark.objects.of(member.pk, Mark.Kind.SKIP).filter(item=item):
            mark.end(now)
    if slot is None:
        raise Refused("This item is not to be labelled any more. Go on with the next.")
    return offers.of(member, *showing.shown(slot.pk))


def skip(
    member: Membership,
    shown: Shown,
    *,
    note: str = "",
    now: datetime | None = None,
) -> None:
    """Give the shown item back; the queue brings it no more until the member reopens it."""
    now = now or timezone.now()
    ticket = admitting.ticket(member, shown)
    with writing.transact():
        slot, _ = admitting.locked(member, ticket, shown)
        if slot.stage == Stage.PRACTICE:
            raise Refused("Practice items cannot be skipped. Answer as well as you can.")
        if slot.state == Slot.State.FILLED and slot.member_id == member.pk:
            raise Refused("You have labelled this item. Go on with the next, or label it again.")
        _, made = Mark.objects.get_or_create(
            member=member,
            item=slot.item,
            kind=Mark.Kind.SKIP,
            ended_at=None,
            defaults={"note": note, "created_at": now},
        )
        if slot.member_id == member.pk:
            slot.give_back()
        if made:
            events.record("skip", member, slot.item, note=note, revision=shown.revision)


def flag(member: Membership, item_key: str, *, note: str = "", now: datetime | None = None) -> bool:
    """Ask a lead to look at an item that the member knows, or take that back; whether it stands."""
    now = now or timezone.now()
    with writing.transact():
        turns.lock(member)
        item = _named(member, item_key)
        if item is None or item.deleted_at or not offers.knows(member, item):
            raise Refused("This item is not one of yours. Load the page again.")
        standing = Mark.objects.of(member.pk, Mark.Kind.FLAG).filter(item=item).first()
        if standing:
            standing.end(now)
        else:
            Mark.objects.create(member=member, item=item, kind="flag", note=note, created_at=now)
        events.record("unflag" if standing else "flag", member, item, note=note)
    return standing is None


def renew(member: Membership, *, now: datetime | None = None) -> frozenset[str]:
    """Hold on to what the member holds; what pages call the items that are still theirs."""
    now = now or timezone.now()
    with writing.transact():
        turns.lock(member)
        held = Slot.objects.in_project(member.project_id).held_by(member.pk)
        held.update(held_until=places.until(member, now))
        slots = list(held.select_related("item").defer("item__fields"))
    names = veils.names(member, [slot.item for slot in slots if slot.stage in LIKE_WORK])
    return frozenset(names.get(slot.item_id, slot.item.key) for slot in slots)


def _named(member: Membership, item_key: str) -> Item | None:
    """The item that a page of the member's calls so, locked."""
    item = veils.find(member, item_key)
    return item and Item.objects.locked().get(pk=item.pk)
