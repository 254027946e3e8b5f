"""Who works on which item next, and what becomes of what they say (design 3, rules 1 to 5).

Every function is one short transaction that first locks the member's own row: a person who
presses eight times at once is served one press after the other.
"""

import hashlib
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.core import signing
from django.utils import timezone

from annotation import fields, resolving, tasktypes, writing
from annotation.models import (
    Cursor,
    Event,
    GuidelinesVersion,
    Item,
    Label,
    Membership,
    Resolution,
    Revision,
    Slot,
    Stage,
    texts_digest,
)
from annotation.querysets import SlotQuerySet


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
    until = now + timedelta(minutes=member.project.hold_minutes)
    with writing.transact():
        _lock(member)
        held = Slot.objects.at(member.project_id, stage).filter(member=member, state="held")
        slot = held.select_related("item").first() or _free_slot(member, stage, now)
        if slot:
            slot.hold(member.pk, until)
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

    It counts if it fills a slot; a label that comes after its slot was given away is kept as
    extra. Raises `Refused` for a key, item or answer that was not offered and `Stale` if the
    texts were corrected meanwhile.
    """
    now = now or timezone.now()
    task = tasktypes.from_definition(member.project.task_type.definition)
    try:
        cleaned = task.clean(answers)
    except fields.FieldError as error:
        raise Refused(str(error)) from error
    with writing.transact():
        _lock(member)
        sent = Label.objects.filter(submission=_digest(key)).first()
        if sent:
            return sent
        slot = _shown_slot(member, key, item_key, revision)
        made = _store(member, slot, key, cleaned, comment, seconds, now)
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

    Labels of older revisions stop counting and their slots reopen. Texts that equal the shown
    ones change nothing.
    """
    now = now or timezone.now()
    _check_correction(member, texts)
    with writing.transact():
        _lock(member)
        slot = _shown_slot(member, key, item_key, revision)
        if slot.member_id != member.pk:
            raise Stale(
                "This item went to somebody else meanwhile. Your text is still here: copy it."
            )
        shown = slot.item.revision()
        corrected = {**shown.texts, **texts}
        if corrected == shown.texts:
            return _offer(member, slot)
        _revise(slot.item, corrected, member, note, now)
        _stop_older_labels(slot.item, member, now)
        slot.hold(member.pk, now + timedelta(minutes=member.project.hold_minutes))
        resolving.settle(slot.item, now=now)
        _record("correct", member, slot.item, revision=slot.item.revision_number, note=note)
    return _offer(member, slot)


def undo(
    member: Membership, *, stage: str = Stage.WORK, now: datetime | None = None
) -> Offer | None:
    """Take the member's last label back and hold its item again; None if there is none.

    The label stays on record as withdrawn. If its slot went to somebody else, the label is
    withdrawn all the same and the next item is offered.
    """
    now = now or timezone.now()
    until = now + timedelta(minutes=member.project.hold_minutes)
    with writing.transact():
        _lock(member)
        last = Label.objects.current().by_member(member.pk, stage).select_related("item").first()
        if last is None:
            return None
        last.withdraw(now)
        slot = _reopen(member, last, until)
        resolving.settle(last.item, now=now)
        _record("undo", member, last.item, choice=last.choice)
    return _offer(member, slot) if slot else None


def progress(member: Membership) -> Progress:
    """How far the project and the member have come, in items."""
    items = Item.objects.in_project(member.project).originals()
    total = items.count()
    resolved = (
        Resolution.objects.of_current_texts()
        .filter(item__project=member.project, item__deleted_at=None, item__duplicate_of=None)
        .count()
    )
    mine = Label.objects.current().by_member(member.pk, Stage.WORK).count() if member.pk else 0
    return Progress(mine, resolved, total, total - resolved)


def _lock(member: Membership) -> None:
    # A statement of its own: in one with the pick the snapshot would be older than the lock.
    Membership.objects.select_for_update().only("pk").get(pk=member.pk)


def _free_slot(member: Membership, stage: str, now: datetime) -> Slot | None:
    cursor, _ = Cursor.objects.get_or_create(member=member, stage=stage)
    for candidates in _searches(member.project_id, stage, cursor, now):
        slot = (
            candidates.untouched_by(member.pk)
            .in_order()
            .select_related("item")
            .select_for_update(skip_locked=True, of=("self",))
            .first()
        )
        if slot:
            if slot.state == Slot.State.OPEN and not slot.returned:
                cursor.move(slot.priority, slot.position)
            return slot
    return None


def _searches(project_id: int, stage: str, cursor: Cursor, now: datetime) -> Iterator[SlotQuerySet]:
    """Where to look for a slot, best first; each is one probe of its own partial index."""
    slots = Slot.objects.at(project_id, stage)
    yield slots.returned()
    yield slots.expired(now)
    yield slots.fresh().filter(priority=cursor.priority, position__gt=cursor.position)
    yield slots.fresh().filter(priority__gt=cursor.priority)
    # Slots behind the cursor: locked when it passed by, or added later with a higher priority.
    yield slots.fresh()


def _offer(member: Membership, slot: Slot) -> Offer:
    revision = slot.item.revision()
    ticket = [slot.pk, member.pk, revision.number, secrets.token_hex(8)]
    return Offer(slot, slot.item, revision, signing.dumps(ticket, salt="queue.offer"))


def _waiting(member: Membership, stage: str, now: datetime) -> Waiting:
    slots = Slot.objects.at(member.project_id, stage)
    others = slots.held(now).untouched_by(member.pk).order_by("held_until")
    first = others.first()
    return Waiting(
        open=slots.filter(state="open").count(),
        held_by_others=others.count(),
        next_free=first.held_until if first else None,
        done=Label.objects.current().by_member(member.pk, stage).count(),
    )


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def _shown_slot(member: Membership, key: str, item_key: str, revision: int) -> Slot:
    """The slot that the key was made for, locked, if the page showed what is submitted now."""
    try:
        slot_id, member_id, shown, _ = signing.loads(key, salt="queue.offer")
    except (signing.BadSignature, ValueError, TypeError) as error:
        raise Refused("This page's key is not valid. Load the page again.") from error
    slot = (
        Slot.objects.select_for_update(of=("self",))
        .select_related("item")
        .filter(pk=slot_id, project_id=member.project_id)
        .first()
    )
    if slot is None or member_id != member.pk:
        raise Refused("This page was made for somebody else. Load the page again.")
    if slot.item.key != item_key or shown != revision:
        raise Refused("This is not the item that the page showed. Load the page again.")
    item = Item.objects.select_for_update().get(pk=slot.item_id)
    slot.item = item
    if item.revision_number != revision:
        raise Stale("The texts were corrected meanwhile. Look at the new ones and label again.")
    if item.deleted_at:
        raise Refused("This item was taken out of the project. Go on with the next.")
    return slot


def _store(
    member: Membership,
    slot: Slot,
    key: str,
    answers: dict[str, object],
    comment: str,
    seconds: float | None,
    now: datetime,
) -> Label:
    counted = slot.member_id == member.pk or _claim_back(member, slot)
    earlier = (
        Label.objects.current().filter(member=member, item=slot.item, stage=slot.stage).first()
    )
    if earlier:
        earlier.stop_counting()
    if counted:
        slot.fill(member.pk)
    task_type = member.project.task_type
    return Label.objects.create(
        project_id=member.project_id,
        item=slot.item,
        revision=slot.item.revision(),
        slot=slot if counted else None,
        stage=slot.stage,
        member=member,
        choice=answers[tasktypes.from_definition(task_type.definition).deciding.name],
        answers=answers,
        comment=comment,
        submission=_digest(key),
        task_type=task_type,
        guidelines=GuidelinesVersion.objects.filter(project=member.project).last(),
        supersedes=earlier,
        counted=counted,
        seconds=seconds,
        evaluator_seen=slot.item.first_reply_at is not None,
        created_at=now,
    )


def _claim_back(member: Membership, slot: Slot) -> bool:
    """Whether a slot that the member lost is free for them still."""
    if slot.state != Slot.State.OPEN:
        return False
    return not Slot.objects.filter(item=slot.item, stage=slot.stage, member=member).exists()


def _check_correction(member: Membership, texts: Mapping[str, str]) -> None:
    task = tasktypes.from_definition(member.project.task_type.definition)
    if set(texts) != {task.correctable}:
        raise Refused(f"Only the {task.correctable} text can be corrected.")
    if not texts[task.correctable].strip():
        raise Refused("The corrected text is empty. Write the whole text, or label the item.")


def _revise(
    item: Item, texts: dict[str, str], author: Membership, note: str, now: datetime
) -> None:
    item.revision_number += 1
    item.save(update_fields=["revision_number"])
    Revision.objects.create(
        item=item,
        number=item.revision_number,
        texts=texts,
        digest=texts_digest(texts),
        author=author,
        note=note,
        created_at=now,
    )


def _stop_older_labels(item: Item, author: Membership, now: datetime) -> None:
    counted = Label.objects.counted().filter(item=item).select_related("slot")
    for older in counted:
        older.counted = False
        older.save(update_fields=["counted"])
        if older.slot and older.member_id != author.pk:
            older.slot.give_back()
    # Somebody who is looking at the old texts now is told so by `Stale` when they submit.
    Resolution.objects.current().filter(item=item).update(current=False, ended_at=now)


def _reopen(member: Membership, withdrawn: Label, until: datetime) -> Slot | None:
    """Hold the withdrawn label's slot again, and give back what else the member holds."""
    for other in Slot.objects.filter(member=member, stage=withdrawn.stage, state="held"):
        other.give_back()
    if withdrawn.slot_id is None:
        return None
    slot = (
        Slot.objects.select_for_update(of=("self",))
        .select_related("item")
        .get(pk=withdrawn.slot_id)
    )
    if slot.member_id != member.pk:
        return None
    slot.hold(member.pk, until)
    return slot


def _record(kind: str, member: Membership, item: Item, **data: object) -> None:
    Event.record(kind, item.key, project_id=item.project_id, member_id=member.pk, **data)
