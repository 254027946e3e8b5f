"""A member's actions on an item: label, correct, undo, reopen, skip and flag.

Storing a label is the queue's hot path. Each action stores an event.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from annotation import tasktypes
from annotation.db import sql, transactions
from annotation.errors import FieldError, Refused, Stale
from annotation.items import revisions
from annotation.items.diffing import stored
from annotation.labelling import (
    answer_key,
    blind_names,
    effects,
    qualification,
    slots,
    submissions,
    work_order,
)
from annotation.labelling.correct_answers import PRACTICE, PROBE
from annotation.labelling.queue import ahead, claims, offers
from annotation.labelling.queue.claims import Claim
from annotation.labelling.queue.offers import Offer
from annotation.labelling.submissions import Submission
from annotation.models import (
    WORK_LIKE_STAGES,
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
from annotation.tasktypes import TaskType


def build_event(kind: str, member: Membership, item: Item, **data: object) -> Event:
    who = {"project_id": item.project_id, "member_id": member.pk}
    return Event(kind=kind, subject=item.key, data=data, **who)


def record_event(kind: str, member: Membership, item: Item, **data: object) -> None:
    sql.insert_rows(build_event(kind, member, item, **data))


def store_label(
    member: Membership,
    sent: Submission,
    *,
    stage: str = Stage.LABEL,
    given_at: datetime | None = None,
    now: datetime | None = None,
) -> Label:
    """Store the member's label of the shown revision. Sending the same key twice stores it once.

    `stage` is the page that the label was sent to, as in `next_offer`: keys of other pages are
    refused. The label counts if it fills a slot: the slot that the page showed or, if somebody else
    has that slot now, a free slot of the item. An item that was sent ahead is held by nobody: its
    label takes a free slot now. Otherwise the label is kept as extra. Raises
    `Refused` for a key, item or answer that was not offered, for a key that was already sent with
    other answers, and for a second first look; `Stale` if the texts have been corrected.

    `given_at` is when the member chose the answer, which may have waited in the browser for a
    connection. Raises `Refused` if they have labelled the item again since, elsewhere.
    """
    now = now or timezone.now()
    ticket = submissions.read_token(sent.key, member)
    today = task = tasktypes.load_task_type(member.project)
    if stage == Stage.LABEL:
        task = submissions.load_asked_task(member, ticket)
    asked = Stage.BLIND if ticket.blind else Stage.LABEL
    answers, sent = sent.answers, replace(sent, answers=task.clean(sent.answers, stage=asked))
    with transactions.transact():
        if ticket.item_id:
            # After the first look, the item waits for the second one.
            hold = ticket.blind and ahead.has_room(member)
            ticket = ahead.find_slot(member, ticket, now, hold=hold)
        claims.lock_member_and_item(member, ticket.slot_id)
        given = given_at or now
        claim = claims.load_claim(member, ticket.slot_id, sent.key, given, blind=ticket.blind)
        claims.check_stage(claim.slot, stage)
        if claim.sent is not None:
            made = Label.objects.select_related("revision").get(pk=claim.sent)
            with suppress(FieldError):  # then the answers differ, which is told below
                sent = _with_passages(sent, task, made.revision, asked)
            return _check_same(made, sent)
        if task is not today:
            # Rules of today aggregate what is still asked; the label keeps what is asked no more.
            still = {field.name for field in today.fields_at(asked)}
            today.clean({name: answers[name] for name in answers.keys() & still}, stage=asked)
        claims.check_item(member, claim.slot.item, ticket, sent)
        claims.check_fresh(claim.slot.item, ticket, sent)
        if ticket.blind and claim.label is not None:
            # A page that was loaded before the change was shown would replace it unnoticed.
            raise Refused("You have given your first look at this item. Go on with the second one.")
        claims.check_order(today, member, claim.slot, ticket)
        claims.check_latest(claim, given_at)
        if task.names_changes(sent.answers):
            stored.pin_shown(claim.revision, ticket.diff)
        sent = _with_passages(sent, task, claim.revision, asked)
        label = _build_label(member, claim, sent, task, now)
        label.first_shown = ticket.first
        label.task_type_id = ticket.task_type or label.task_type_id
        made = _save_label(label, claim, sent)
        effects.apply_label(made, today, now)
        if made.stage == Stage.LABEL and made.counted and work_order.finishes_begun(member.project):
            Slot.objects.mark_begun([made.item_id])
    return made


def _with_passages(sent: Submission, task: TaskType, revision: Revision, asked: str) -> Submission:
    """The submission with each passage as the texts have it. The revision comes without its texts,
    which are read only for passages. Raises `FieldError`."""
    if not task.marks_texts(sent.answers, stage=asked):
        return sent
    return replace(sent, answers=task.check_texts(sent.answers, revision.texts, stage=asked))


def store_correction(
    member: Membership,
    shown: Submission,
    texts: Mapping[str, str],
    *,
    note: str = "",
    now: datetime | None = None,
) -> Offer:
    """Store a new revision with the corrected text; its author keeps the slot.

    Labels of older revisions stop counting and their slots reopen. A correction that equals the
    item's current texts changes nothing, so sending it twice stores it once. A corrected control
    item stops being a control item, since its known answer was about the old texts. Raises
    `Refused` and `Stale` like `store_label`.
    """
    now = now or timezone.now()
    _check_correction(member, texts)
    ticket = submissions.read_token(shown.key, member)
    with transactions.transact():
        ticket = ahead.find_slot(member, ticket, now, hold=True)
        slot, current = claims.lock_shown(member, ticket, shown)
        _check_correctable(member, slot, ticket)
        claims.check_revision(ticket, shown)
        corrected = revisions.merge_texts(slot.item.revision(shown.revision).texts, texts)
        if corrected == current.texts:
            return offers.build_offer(member, slot, current)
        claims.check_fresh(slot.item, ticket, shown)
        revisions.add_revision(slot.item, corrected, author=member, note=note, now=now)
        slots.move_held_behind(member, slot.item, now)
        slot.hold(member.pk, slots.hold_until(member, now))
        effects.apply_correction(slot.item, now)
        numbers = {"old": {"revision": current.number}, "new": {"revision": current.number + 1}}
        record_event("correct", member, slot.item, note=note, **numbers)
    return offers.build_offer(member, *claims.load_slot(slot.pk))


def _build_label(
    member: Membership, claim: Claim, sent: Submission, task: TaskType, now: datetime
) -> Label:
    """Build the label for the claim, with the versions of task type and guidelines, without storing
    it."""
    return Label(
        project_id=member.project_id,
        member=member,
        item=claim.slot.item,
        revision=claim.revision,
        task_type=member.project.task_type,
        guidelines_id=claim.guidelines,
        taxonomy_id=member.project.taxonomy_id,
        stage=claim.stage,
        choice=task.choice_of(sent.answers, claim.stage),
        answers=sent.answers,
        comment=sent.comment,
        seconds=sent.seconds,
        submission=claim.submission,
        supersedes_id=claim.label,
        evaluator_seen=claim.slot.item.first_reply_at is not None,
        informed=claim.informed,
        created_at=now,
    )


def _save_label(label: Label, claim: Claim, sent: Submission) -> Label:
    """Store the label in the slot that it fills, superseding the member's previous label."""
    member, first = label.member, label.stage in WORK_LIKE_STAGES and claim.label is None
    new = {"choice": label.choice, "revision": claim.revision.number, "stage": label.stage}
    facts: dict[str, Any] = {"new": new}
    if claim.label is not None:
        before = Label.objects.values("choice", "revision__number").get(pk=claim.label)
        old = {"choice": before["choice"], "revision": before["revision__number"]}
        facts = {"old": old, "new": new}
    event = build_event("label", member, claim.slot.item, **facts)
    if not (first and claims.store_first_label(claim.slot, label, event)):
        label.slot = _fill_slot(member, claim.slot, label.stage, label.created_at)
        label.counted = label.slot is not None
        if first:
            claims.adjust_label_count(member, 1)
        if claim.label is not None:
            Label.objects.filter(pk=claim.label).update(current=False)
        sql.insert_rows(label, event)
    if claim.drafted and label.stage != Stage.BLIND:
        for draft in Draft.objects.of_member(member.pk).filter(item=claim.slot.item):
            # What was written on another page meanwhile is not in this label.
            if sent.knows(draft):
                draft.sent()
    return label


def _fill_slot(member: Membership, shown: Slot, stage: str, now: datetime) -> Slot | None:
    """Fill a slot for the label and return it; None for an extra label."""
    if stage == Stage.BLIND:
        blind = (
            Slot.objects.in_project(member.project_id)
            .at_stage(stage)
            .of_member(member.pk)
            .of_item(shown.item)
        )
        return blind.first() or slots.create_held_slot(member, shown.item, stage)
    if Slot.objects.fill(shown.pk, member.pk):
        return shown
    slot = slots.find_slot_to_fill(member, shown, now)
    if slot:
        slot.fill(member.pk)
    elif shown.stage == Stage.CONTROL and shown.item.purpose == PROBE:
        # As in `reopen_item`: a label from a page that was left counts, as of any other item.
        slot = slots.create_held_slot(member, shown.item, Stage.CONTROL)
    return slot


def _check_same(stored: Label, sent: Submission) -> Label:
    """Return the stored label if its answers equal the answers sent now.

    Raises `Refused` for other answers: an old page was sent again, and its answers must not be
    dropped silently.
    """
    if stored.withdrawn_at:
        raise Refused("The label from this page was undone. Reload the page to give another.")
    if (stored.answers, stored.comment) != (sent.answers, sent.comment):
        raise Refused(
            f"You already sent this page, as {stored.choice!r}. Undo that label to change it."
        )
    return stored


def _check_correctable(member: Membership, slot: Slot, ticket: submissions.SubmissionToken) -> None:
    if slot.member_id != member.pk:
        raise Stale("This item has been reassigned. Your text is still on this page: copy it.")
    if ticket.blind:
        raise Refused("Answer the first look before you correct the text.")
    if slot.stage == Stage.QUALIFICATION:
        raise Refused(
            "Qualification items cannot be corrected. Write in a comment what you would change."
        )


def _check_correction(member: Membership, texts: Mapping[str, str]) -> None:
    task = tasktypes.load_task_type(member.project)
    if not task.correctable:
        raise Refused("This task type has no text that can be corrected. Write a comment instead.")
    if set(texts) != {task.correctable}:
        raise Refused(f"Only the {task.correctable} text can be corrected.")
    if not texts[task.correctable].strip():
        raise Refused("The corrected text is empty. Enter the complete text, or label the item.")


def undo_label(
    member: Membership,
    *,
    stage: str = Stage.LABEL,
    shown: str = "",
    only_shown: bool = False,
    now: datetime | None = None,
) -> Offer | None:
    """Withdraw the member's last label and hold its item again; return None if there is no label.

    The withdrawn label stays on record. If another annotator has its slot now and the item has no
    free slot, the item is offered nevertheless, and a new label is an extra label.

    `shown` is the label that the page showed as the last: its `submission`, or the key of the page
    that it was sent from; "" if unknown. A request that comes twice undoes it once: if it is
    withdrawn already, its item is offered again. Raises `Refused` if the member does not hold that
    item any more, and with `only_shown` if another label is the last one.
    """
    now = now or timezone.now()
    with transactions.transact():
        claims.lock_member(member)
        stages = slots.related_stages(stage)
        if undone := offers.find_undone(member, stages, shown):
            return _offer_undone(member, undone)
        last, item = offers.last_label(member, stages), None
        while last and (item is None or item.pk != last.item_id):
            item = Item.objects.locked().get(pk=last.item_id)
            # A lead may just have carried it over to corrected texts.
            last = offers.last_label(member, stages)
        if last is None or item is None or not qualification.can_undo(last):
            return None
        if only_shown and last.submission not in (shown, submissions.digest_token(shown)):
            raise Refused("This is not your last label. Only the last one can be undone.")
        last.withdraw(now)
        if last.stage in WORK_LIKE_STAGES:
            claims.adjust_label_count(member, -1)
        slot = slots.hold_again(member, item, last.stage, last.slot, now)
        effects.apply_withdrawal(last, tasktypes.load_task_type(member.project), now)
        if work_order.finishes_begun(member.project):
            Slot.objects.mark_begun([item.pk])
        record_event("undo", member, item, old={"choice": last.choice}, new={})
    return offers.build_offer(member, *claims.load_slot(slot.pk), previous=last) if slot else None


def _offer_undone(member: Membership, undone: Label) -> Offer:
    own = Slot.objects.of_item(undone.item).at_stage(undone.stage).of_member(member.pk)
    slot = own.filter(state=Slot.State.HELD).first()
    if slot is None:
        raise Refused("This label is undone already. To undo the one before it, try again.")
    return offers.build_offer(member, *claims.load_slot(slot.pk), previous=undone)


def reopen_item(member: Membership, item_key: str, *, now: datetime | None = None) -> Offer:
    """Offer an item that the member was shown before, to label it again or for the first time.

    A labelled item keeps its label until a new label supersedes it. A skipped or drafted item is
    held again if it has a free slot; otherwise its label will be an extra label. Raises `Refused`
    for any other item.
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
        if slot is None and item.purpose == PROBE:
            # Its slot was closed when the member left it. Other items still have theirs, so who
            # could not come back would know that it was a control item.
            slot = answer_key.hold_new_slot(item, Stage.CONTROL, member, now)
        slot = slot or _find_baseline_slot(member, item, now)
        if slot is None or slot.state != Slot.State.FILLED:
            stage = slot.stage if slot else Stage.LABEL
            slot = slots.hold_again(member, item, stage, slot, now)
        for mark in Mark.objects.of_member(member.pk, Mark.Kind.SKIP).filter(item=item):
            mark.end(now)
    if slot is None:
        raise Refused("This item no longer needs labels. Continue with the next one.")
    return offers.build_offer(member, *claims.load_slot(slot.pk))


def _find_baseline_slot(member: Membership, item: Item, now: datetime) -> Slot | None:
    """A free slot of an item that only the human baseline still needs; None if there is none."""
    free = Slot.objects.of_item(item).free_for(member.pk, now)
    return None if free.at_work().exists() else free.at_stage(Stage.BASELINE).first()


def skip_item(
    member: Membership,
    shown: Submission,
    *,
    note: str = "",
    now: datetime | None = None,
) -> None:
    """Release the shown item; the queue does not offer it again until the member reopens it."""
    now = now or timezone.now()
    ticket = submissions.read_token(shown.key, member)
    with transactions.transact():
        ticket = ahead.find_slot(member, ticket, now)
        slot, _ = claims.lock_shown(member, ticket, shown)
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
            record_event("skip", member, slot.item, note=note, revision=shown.revision)


def toggle_flag(
    member: Membership, item_key: str, *, note: str = "", now: datetime | None = None
) -> bool:
    """Flag an item for a lead, or remove the flag, if the member was shown the item; return True if
    it is flagged now."""
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
        record_event("unflag" if standing else "flag", member, item, note=note)
    return standing is None


def renew_holds(member: Membership, *, now: datetime | None = None) -> frozenset[str]:
    """Extend the member's holds; return the names, as shown on pages, of the items that the member
    still holds."""
    now = now or timezone.now()
    with transactions.transact():
        claims.lock_member(member)
        held = Slot.objects.in_project(member.project_id).held_by(member.pk)
        held.lock_in_turn()
        held.hold_longer(slots.hold_until(member, now))
        still = list(held.select_related("item").defer("item__fields"))
    names = blind_names.display_names(
        member, [slot.item for slot in still if slot.stage in WORK_LIKE_STAGES]
    )
    return frozenset(names.get(slot.item_id, slot.item.key) for slot in still)


def _find_item(member: Membership, item_key: str) -> Item | None:
    """Find and lock the item with this name on the member's pages; None if there is no such
    item."""
    item = blind_names.find_item(member, item_key)
    return item and Item.objects.locked().get(pk=item.pk)
