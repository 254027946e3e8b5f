"""Who works on which item next, and what becomes of what they say (design 3, rules 1 to 5).

Every function is one short transaction that first locks the member's own row: a person who
presses eight times at once is served one press after the other. Then it locks the item, then its
slots, always in this order, so that no two wait for each other; taking the next item alone locks
a slot at once, and passes over those that are locked.
"""

import random
from collections.abc import Mapping
from datetime import datetime

from django.utils import timezone

from annotation import (
    fields,
    following,
    offers,
    picking,
    places,
    practising,
    prepared,
    revising,
    taking,
    tasktypes,
    tickets,
    writing,
)
from annotation.models import (
    LIKE_WORK,
    Draft,
    Event,
    Item,
    Label,
    Mark,
    Membership,
    Revision,
    Slot,
    Stage,
)
from annotation.offers import Offer, Progress, Refused, Stale, Waiting, progress, recent

__all__ = [
    "Offer",
    "Progress",
    "Refused",
    "Stale",
    "Waiting",
    "correct",
    "flag",
    "label",
    "next_offer",
    "progress",
    "recent",
    "renew",
    "reopen",
    "skip",
    "undo",
]


def next_offer(
    member: Membership,
    *,
    stage: str = Stage.WORK,
    ahead: bool = False,
    now: datetime | None = None,
    draw: float | None = None,
) -> Offer | Waiting:
    """The item that the member holds or takes now, or why there is none.

    `ahead` asks for the item after that one, which is held as well; Stage.WORK hands out
    everything of the workbench; `draw`, in 0 to 1, decides whether a new one is a silent check.
    """
    now = now or timezone.now()
    draw = random.random() if draw is None else draw
    choose = taking.after_current if ahead else taking.current
    with writing.transact():
        turn = picking.lock(member, stage)
        slot_id = choose(member, stage, turn, now, draw)
    if slot_id is None:
        return offers.waiting(member, stage, now)
    return offers.of(member, *picking.shown(slot_id))


def label(
    member: Membership,
    *,
    key: str,
    item_key: str,
    revision: int,
    answers: Mapping[str, object],
    comment: str = "",
    seconds: float | None = None,
    stage: str = Stage.WORK,
    now: datetime | None = None,
) -> Label:
    """Store what the member says of the shown revision. The same key twice stores it once.

    `stage` is where it is sent to, as in `next_offer`: a key of another desk is refused there. It
    counts if it fills a slot: the one it was taken for or, if that was given away, one of the
    item that is free. Else it is kept as extra. Raises `Refused` for a key, item or answer that
    was not offered or a key that said something else before, and `Stale` if the texts were
    corrected meanwhile.
    """
    now = now or timezone.now()
    ticket = _ticket(member, key)
    task = tasktypes.of_project(member.project)
    try:
        cleaned = task.clean(answers, stage=Stage.BLIND if ticket.blind else Stage.WORK)
    except fields.FieldError as error:
        raise Refused(str(error)) from error
    submission = tickets.digest(key)
    with writing.transact():
        picking.lock_with_item(member, ticket.slot_id)
        slot, shown, before = picking.claimed(
            member, ticket.slot_id, blind=ticket.blind, submission=submission
        )
        _check_desk(slot, stage)
        asked = Stage.BLIND if ticket.blind else Stage(slot.stage)
        if before.sent is not None:
            return _same(Label.objects.get(pk=before.sent), cleaned, comment)
        _check_shown(member, slot.item, item_key)
        _check_fresh(slot.item, ticket, revision)
        slot.item.project = member.project  # so that nobody reads it again
        first = asked in LIKE_WORK and before.label is None
        place = _filled(member, slot, asked, now, counting=int(first))
        if before.label is not None:
            Label.objects.filter(pk=before.label).update(current=False)
        said = Label(
            slot=place,
            counted=place is not None,
            stage=asked,
            choice=task.choice_of(cleaned, asked),
            answers=cleaned,
            comment=comment,
            seconds=seconds,
            submission=submission,
            **_pinned(member, slot.item, shown, before),
            created_at=now,
        )
        event = _event("label", member, slot.item, choice=said.choice, revision=revision)
        made = prepared.insert(said, event)
        if before.drafted and asked != Stage.BLIND:
            for draft in Draft.objects.of(member.pk).filter(item=slot.item):
                draft.sent()
        following.after(made, task, now)
    return made


def correct(
    member: Membership,
    *,
    key: str,
    item_key: str,
    revision: int,
    texts: Mapping[str, str],
    note: str = "",
    now: datetime | None = None,
) -> Offer:
    """A new revision with the corrected text; its author keeps the slot.

    Labels of older revisions stop counting and their slots reopen. Texts that the item has
    already change nothing, so the same correction sent twice is one. A silent check that is
    corrected is none any more, since its known answer was of the old texts. Raises `Refused` and
    `Stale` as `label` does.
    """
    now = now or timezone.now()
    _check_correction(member, texts)
    ticket = _ticket(member, key)
    with writing.transact():
        slot, current = _shown(member, ticket)
        _check_desk(slot, Stage.WORK)
        _check_shown(member, slot.item, item_key)
        _check_correctable(member, slot, ticket)
        corrected = revising.corrected(slot.item.revision(revision).texts, texts)
        if corrected == current.texts:
            return offers.of(member, slot, current)
        _check_fresh(slot.item, ticket, revision)
        revising.revise(slot.item, corrected, author=member, note=note, now=now)
        places.push_back(member, slot.item, now)
        slot.hold(member.pk, places.until(member, now))
        following.after_correction(slot.item, now)
        _record("correct", member, slot.item, revision=slot.item.revision_number, note=note)
    return offers.of(member, *picking.shown(slot.pk))


def undo(
    member: Membership, *, stage: str = Stage.WORK, now: datetime | None = None
) -> Offer | None:
    """Take the member's last label back and hold its item again; None if there is none.

    The label stays on record as withdrawn. If its slot went to somebody else and the item has no
    free one, the item is offered all the same: a new label is then an extra one.
    """
    now = now or timezone.now()
    with writing.transact():
        picking.lock(member)
        last = offers.last_label(member, places.stages_of(stage))
        if last is None or not practising.can_undo(last):
            return None
        item = Item.objects.locked().get(pk=last.item_id)
        last.withdraw(now)
        if last.stage in LIKE_WORK:
            picking.count_label(member, -1)
        slot = places.hold_again(member, item, last.stage, last.slot, now)
        following.after_withdrawal(last, tasktypes.of_project(member.project), now)
        _record("undo", member, item, choice=last.choice)
    return offers.of(member, *picking.shown(slot.pk), previous=last) if slot else None


def reopen(member: Membership, item_key: str, *, now: datetime | None = None) -> Offer:
    """An item that the member knows already, to be labelled, again or after all.

    One they have labelled keeps its label until a new one supersedes it. One that they skipped or
    began to write on is held again, if it has a free place; else a label will be an extra one.
    Raises `Refused` for any other item.
    """
    now = now or timezone.now()
    with writing.transact():
        picking.lock(member)
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
    return offers.of(member, *picking.shown(slot.pk))


def skip(
    member: Membership,
    *,
    key: str,
    item_key: str,
    revision: int,
    note: str = "",
    now: datetime | None = None,
) -> None:
    """Give the shown item back; the queue brings it no more until the member reopens it."""
    now = now or timezone.now()
    ticket = _ticket(member, key)
    with writing.transact():
        slot, _ = _shown(member, ticket)
        _check_desk(slot, Stage.WORK)
        _check_shown(member, slot.item, item_key)
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
            _record("skip", member, slot.item, note=note, revision=revision)


def flag(member: Membership, item_key: str, *, note: str = "", now: datetime | None = None) -> bool:
    """Ask a lead to look at an item that the member knows, or take that back; whether it stands."""
    now = now or timezone.now()
    with writing.transact():
        picking.lock(member)
        item = _named(member, item_key)
        if item is None or item.deleted_at or not offers.knows(member, item):
            raise Refused("This item is not one of yours. Load the page again.")
        standing = Mark.objects.of(member.pk, Mark.Kind.FLAG).filter(item=item).first()
        if standing:
            standing.end(now)
        else:
            Mark.objects.create(member=member, item=item, kind="flag", note=note, created_at=now)
        _record("unflag" if standing else "flag", member, item, note=note)
    return standing is None


def renew(member: Membership, *, now: datetime | None = None) -> frozenset[str]:
    """Hold on to what the member holds; the keys of the items that are still theirs."""
    now = now or timezone.now()
    with writing.transact():
        picking.lock(member)
        held = Slot.objects.in_project(member.project_id).held_by(member.pk)
        held.update(held_until=places.until(member, now))
        return frozenset(held.values_list("item__key", flat=True))


def _named(member: Membership, item_key: str) -> Item | None:
    """The project's item of this key, locked; PostgreSQL refuses to look for a NUL."""
    if "\0" in item_key:
        return None
    return Item.objects.locked().filter(project=member.project_id, key=item_key).first()


def _ticket(member: Membership, key: str) -> tickets.Ticket:
    try:
        ticket = tickets.read(key)
    except tickets.BadTicket as error:
        raise Refused(str(error)) from error
    if ticket.member_id != member.pk:
        raise Refused("This page was made for somebody else. Load the page again.")
    return ticket


def _shown(member: Membership, ticket: tickets.Ticket) -> tuple[Slot, Revision]:
    """The slot that the key was made for and the item's current texts; member and item locked."""
    picking.lock_with_item(member, ticket.slot_id)
    slot, revision = picking.shown(ticket.slot_id)
    if slot.item.project_id == member.project_id:
        slot.item.project = member.project  # so that nobody reads it again
    return slot, revision


def _check_desk(slot: Slot, stage: str) -> None:
    if slot.stage not in places.stages_of(stage):
        raise Refused("This page belongs to another desk. Load the page again.")


def _check_shown(member: Membership, item: Item, item_key: str) -> None:
    if item.project_id != member.project_id or item.key != item_key:
        raise Refused("This is not the item that the page showed. Load the page again.")
    if item.deleted_at:
        raise Refused("This item was taken out of the project. Go on with the next.")


def _check_fresh(item: Item, ticket: tickets.Ticket, revision: int) -> None:
    if ticket.revision != revision:
        raise Refused("This is not the item that the page showed. Load the page again.")
    if item.revision_number != revision:
        raise Stale("The texts were corrected meanwhile. Look at the new ones and label again.")


def _check_correctable(member: Membership, slot: Slot, ticket: tickets.Ticket) -> None:
    if slot.member_id != member.pk:
        raise Stale("This item went to somebody else meanwhile. Your text is still here: copy it.")
    if ticket.blind:
        raise Refused("Say first what you see; the text can be corrected after that.")
    if slot.stage == Stage.PRACTICE:
        raise Refused("Practice items are not corrected. Say in a comment what you would mend.")


def _check_correction(member: Membership, texts: Mapping[str, str]) -> None:
    task = tasktypes.of_project(member.project)
    if set(texts) != {task.correctable}:
        raise Refused(f"Only the {task.correctable} text can be corrected.")
    if not texts[task.correctable].strip():
        raise Refused("The corrected text is empty. Write the whole text, or label the item.")


def _same(sent: Label, answers: Mapping[str, object], comment: str) -> Label:
    """The stored label, if it still says what is said now.

    Else the person went back to an old page, and what they say now must not be dropped in silence.
    """
    if sent.withdrawn_at:
        raise Refused("This page's label was taken back. Load the page again to give another.")
    if (sent.answers, sent.comment) != (answers, comment):
        raise Refused(f"This page was sent before, as {sent.choice!r}. Undo that to change it.")
    return sent


def _pinned(
    member: Membership, item: Item, revision: Revision, before: picking.Before
) -> dict[str, object]:
    """What a label names: whose it is, of what, and under which versions it was made."""
    return {
        "project_id": member.project_id,
        "member": member,
        "item": item,
        "revision": revision,
        "task_type": member.project.task_type,
        "guidelines_id": before.guidelines,
        "supersedes_id": before.label,
        "evaluator_seen": item.first_reply_at is not None,
        "informed": before.informed,
    }


def _filled(
    member: Membership, shown: Slot, stage: str, now: datetime, *, counting: int
) -> Slot | None:
    """The slot that the label fills, None for an extra one; and the member's count with it."""
    if stage == Stage.BLIND:
        blind = Slot.objects.at(member.project_id, stage).of_member(member.pk).of_item(shown.item)
        return blind.first() or places.own(member, shown.item, stage)
    if picking.fill(shown.pk, member, counting=counting):
        return shown
    slot = places.to_fill(member, shown, now)
    if slot:
        slot.fill(member.pk)
    return slot


def _record(kind: str, member: Membership, item: Item, **data: object) -> None:
    prepared.insert(_event(kind, member, item, **data))


def _event(kind: str, member: Membership, item: Item, **data: object) -> Event:
    of = {"project_id": item.project_id, "member_id": member.pk}
    return Event(kind=kind, subject=item.key, data=data, **of)
