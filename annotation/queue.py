"""Who works on which item next, and what becomes of what they say (design 3, rules 1 to 5).

Every function is one short transaction that first locks the member's own row: a person who
presses eight times at once is served one press after the other. Then it locks the item, then its
slots, always in this order, so that no two wait for each other; taking the next item alone locks
a slot at once, and passes over those that are locked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from annotation import fields, places, resolving, revising, tasktypes, tickets, writing
from annotation.models import (
    Event,
    GuidelinesVersion,
    Item,
    Label,
    Membership,
    Resolution,
    Revision,
    Slot,
    Stage,
)


class Refused(ValueError):
    """A submission that cannot be taken; the message says what to do."""


class Stale(Refused):
    """The texts changed after the page was made; nothing was stored."""


@dataclass(frozen=True)
class Offer:
    """An item to work on, the revision to show, and the key that its submission must carry."""

    slot: Slot
    item: Item
    revision: Revision
    key: str


@dataclass(frozen=True)
class Waiting:
    """Nothing for this member now. `held_by_others` > 0 is not "all done"."""

    open: int
    held_by_others: int
    next_free: datetime | None
    done: int


@dataclass(frozen=True)
class _Said:
    answers: dict[str, object]
    comment: str
    seconds: float | None


@dataclass(frozen=True)
class Progress:
    """Counts of items: labelled by the member, resolved, in the project, still to be resolved."""

    mine: int
    resolved: int
    total: int
    left: int


def next_offer(
    member: Membership, *, stage: str = Stage.WORK, now: datetime | None = None
) -> Offer | Waiting:
    """The item that the member holds or takes now, or why there is none."""
    now = now or timezone.now()
    slot = take(member, stage=stage, now=now)
    return _offer(member, slot) if slot else _waiting(member, stage, now)


def take(member: Membership, *, stage: str, now: datetime) -> Slot | None:
    """The slot that the member holds, renewed, or a newly taken one; None if there is none."""
    with writing.transact():
        _lock(member)
        # Locked, for its time may be over and somebody else be taking it over right now.
        held = Slot.objects.at(member.project_id, stage).held_by(member.pk).of_live_items()
        slot = held.locked().select_related("item").first() or places.free(member, stage, now)
        if slot:
            slot.hold(member.pk, places.until(member, now))
    return slot


def label(
    member: Membership,
    *,
    key: str,
    item_key: str,
    revision: int,
    answers: Mapping[str, object],
    comment: str = "",
    seconds: float | None = None,
    now: datetime | None = None,
) -> Label:
    """Store what the member says of the shown revision. The same key twice stores it once.

    It counts if it fills a slot: the one it was taken for or, if that was given away, one of the
    item that is free. Else it is kept as extra. Raises `Refused` for a key, item or answer that
    was not offered or a key that said something else before, and `Stale` if the texts were
    corrected meanwhile.
    """
    now = now or timezone.now()
    task = tasktypes.from_definition(member.project.task_type.definition)
    try:
        cleaned = task.clean(answers)
    except fields.FieldError as error:
        raise Refused(str(error)) from error
    said = _Said(cleaned, comment, seconds)
    ticket = _ticket(member, key)
    with writing.transact():
        _lock(member)
        sent = Label.objects.filter(submission=tickets.digest(key)).first()
        if sent:
            return _same(sent, said)
        slot = _shown_slot(member, ticket, item_key, revision)
        _check_fresh(slot.item, revision)
        made = _store(member, slot, tickets.digest(key), said, now)
        resolving.settle(slot.item, now=now)
        _record("label", member, slot.item, choice=made.choice, revision=revision)
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
    already change nothing, so the same correction sent twice is one. Raises `Refused` and
    `Stale` as `label` does.
    """
    now = now or timezone.now()
    _check_correction(member, texts)
    ticket = _ticket(member, key)
    with writing.transact():
        _lock(member)
        slot = _shown_slot(member, ticket, item_key, revision)
        if slot.member_id != member.pk:
            raise Stale(
                "This item went to somebody else meanwhile. Your text is still here: copy it."
            )
        corrected = revising.corrected(slot.item.revision(revision).texts, texts)
        if corrected == slot.item.revision().texts:
            return _offer(member, slot)
        _check_fresh(slot.item, revision)
        revising.revise(slot.item, corrected, author=member, note=note, now=now)
        places.give_back_others(member, slot.stage, slot.item)
        slot.hold(member.pk, places.until(member, now))
        resolving.settle(slot.item, now=now)
        _record("correct", member, slot.item, revision=slot.item.revision_number, note=note)
    return _offer(member, slot)


def undo(
    member: Membership, *, stage: str = Stage.WORK, now: datetime | None = None
) -> Offer | None:
    """Take the member's last label back and hold its item again; None if there is none.

    The label stays on record as withdrawn. If its slot went to somebody else and the item has no
    free one, the item is offered all the same: a new label is then an extra one.
    """
    now = now or timezone.now()
    with writing.transact():
        _lock(member)
        last = Label.objects.current().by_member(member.pk, stage).first()
        if last is None:
            return None
        item = Item.objects.locked().get(pk=last.item_id)
        last.withdraw(now)
        slot = places.hold_again(member, last, item, now)
        resolving.settle(item, now=now)
        _record("undo", member, item, choice=last.choice)
    return _offer(member, slot) if slot else None


def progress(member: Membership) -> Progress:
    """How far the project and the member have come, in items."""
    items = Item.objects.in_project(member.project).originals()
    total = items.count()
    resolved = Resolution.objects.of_live_originals().filter(item__project=member.project).count()
    mine = Label.objects.current().by_member(member.pk, Stage.WORK).count() if member.pk else 0
    return Progress(mine, resolved, total, total - resolved)


def _lock(member: Membership) -> None:
    # A statement of its own: in one with the pick the snapshot would be older than the lock.
    Membership.objects.select_for_update(no_key=True).only("pk").get(pk=member.pk)


def _offer(member: Membership, slot: Slot) -> Offer:
    revision = slot.item.revision()
    key = tickets.issue(tickets.Ticket(slot.pk, member.pk, revision.number))
    return Offer(slot, slot.item, revision, key)


def _waiting(member: Membership, stage: str, now: datetime) -> Waiting:
    slots = Slot.objects.at(member.project_id, stage)
    slots = slots.of_live_items().untouched_by(member.pk)
    others = slots.held(now).order_by("held_until")
    first = others.first()
    return Waiting(
        open=slots.filter(state="open").count(),
        held_by_others=others.count(),
        next_free=first.held_until if first else None,
        done=Label.objects.current().by_member(member.pk, stage).count(),
    )


def _ticket(member: Membership, key: str) -> tickets.Ticket:
    try:
        ticket = tickets.read(key)
    except tickets.BadTicket as error:
        raise Refused(str(error)) from error
    if ticket.member_id != member.pk:
        raise Refused("This page was made for somebody else. Load the page again.")
    return ticket


def _shown_slot(member: Membership, ticket: tickets.Ticket, item_key: str, revision: int) -> Slot:
    """The slot that the key was made for, locked, if the page showed what is submitted now."""
    items = Item.objects.locked().filter(project=member.project_id, slots=ticket.slot_id)
    item = items.first()
    if item is None or item.key != item_key or ticket.revision != revision:
        raise Refused("This is not the item that the page showed. Load the page again.")
    if item.deleted_at:
        raise Refused("This item was taken out of the project. Go on with the next.")
    slot = Slot.objects.locked().get(pk=ticket.slot_id)
    slot.item = item
    return slot


def _check_fresh(item: Item, revision: int) -> None:
    if item.revision_number != revision:
        raise Stale("The texts were corrected meanwhile. Look at the new ones and label again.")


def _same(sent: Label, said: _Said) -> Label:
    """The stored label, if it still says what is said now.

    Else the person went back to an old page, and what they say now must not be dropped in silence.
    """
    if sent.withdrawn_at:
        raise Refused("This page's label was taken back. Load the page again to give another.")
    if (sent.answers, sent.comment) != (said.answers, said.comment):
        raise Refused(f"This page was sent before, as {sent.choice!r}. Undo that to change it.")
    return sent


def _store(member: Membership, shown: Slot, submission: str, said: _Said, now: datetime) -> Label:
    item, stage = shown.item, shown.stage
    slot = places.to_fill(member, shown, now)
    earlier = Label.objects.current().filter(member=member, item=item, stage=stage).first()
    if earlier:
        earlier.give_way()
    if slot:
        slot.fill(member.pk)
    task_type = member.project.task_type
    deciding = tasktypes.from_definition(task_type.definition).deciding
    return Label.objects.create(
        project_id=member.project_id,
        item=item,
        revision=item.revision(),
        slot=slot,
        stage=stage,
        member=member,
        choice=str(said.answers[deciding.name]),
        answers=said.answers,
        comment=said.comment,
        submission=submission,
        task_type=task_type,
        guidelines=GuidelinesVersion.objects.filter(project=member.project_id).last(),
        supersedes=earlier,
        counted=slot is not None,
        seconds=said.seconds,
        evaluator_seen=item.first_reply_at is not None,
        created_at=now,
    )


def _check_correction(member: Membership, texts: Mapping[str, str]) -> None:
    task = tasktypes.from_definition(member.project.task_type.definition)
    if set(texts) != {task.correctable}:
        raise Refused(f"Only the {task.correctable} text can be corrected.")
    if not texts[task.correctable].strip():
        raise Refused("The corrected text is empty. Write the whole text, or label the item.")


def _record(kind: str, member: Membership, item: Item, **data: object) -> None:
    Event.record(kind, item.key, project_id=item.project_id, member_id=member.pk, **data)
