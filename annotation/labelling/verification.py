"""Verification: a second person sees the result of an item's labels, and confirms or contests it.

The effects are in `effects`.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils.crypto import salted_hmac

from annotation import tasktypes
from annotation.db import transactions
from annotation.errors import FieldError, Refused, Stale
from annotation.items.text_digest import digest_texts
from annotation.labelling import effects, qualification, queue, resolution, visibility
from annotation.labelling.queue import Offer, Waiting, claims, offers
from annotation.labelling.submissions import Submission
from annotation.models import Item, Label, Membership, Project, Stage
from annotation.tasktypes import TaskType
from stats.estimates import Estimate
from stats.rates import clustered_wilson, sum_clusters

_SALT = "annotation.verification"


@dataclass(frozen=True)
class Verification:
    """An item to verify, with the first label that agrees with the result, and the answers that a
    confirmation stores: those of that label or, if no label agrees, the result by field."""

    offer: Offer
    first: Label
    decided: dict[str, Any]
    can_confirm: bool
    """False if nobody can give these answers: a number between two options, or a required answer in
    words that no rule combines."""

    @property
    def is_label(self) -> bool:
        """True if somebody gave these answers. A median of several fields, say, may be nobody's."""
        return self.first.answers == self.decided

    @property
    def of(self) -> str:
        """What a verdict names, so that it is of nothing else than what the person saw."""
        return _name_shown(self.first, self.decided)


@dataclass(frozen=True)
class ContestRate:
    """The number of verified items, the number of contested items, and the share contested with its
    interval."""

    verified: int
    contested: int
    share: Estimate


def take_next(member: Membership, *, now: datetime) -> Verification | Waiting:
    """Offer the item that the member verifies now, or say why there is no item.

    Nobody gets an item that they labelled, or any item while qualification is due. Records that the
    member sees the label, unless the project verifies blind.
    """
    if qualification.is_due(member):
        return offers.explain_waiting(member, Stage.VERIFY, now)
    while True:
        offer = queue.next_offer(member, stage=Stage.VERIFY, now=now)
        if isinstance(offer, Waiting):
            return offer
        first, decided = _decided_label(offer.item)
        if first is not None and decided is not None:
            break
        _withdraw_from_verification(offer, now)
    if not member.project.verify_blind:
        visibility.record_seen(member, offer.item, now=now)
    task = tasktypes.load_task_type(member.project)
    return Verification(offer, first, decided, _can_be_given(task, decided))


def answer(
    member: Membership, sent: Submission, *, of: str, confirming: bool, now: datetime
) -> Label:
    """Confirm or contest the label, or in a project that verifies blind store the answers, which do
    either. Raises like `confirm` and `contest`, but blind no comment is needed."""
    if not member.project.verify_blind:
        return (confirm if confirming else contest)(member, sent, of=of, now=now)
    with transactions.transact():
        _check_unchanged(member, sent, of)
        return queue.store_label(member, sent, stage=Stage.VERIFY, now=now)


def confirm(
    member: Membership,
    sent: Submission,
    *,
    of: str,
    now: datetime,
) -> Label:
    """Store the result of the labels as the member's answer, ignoring `sent.answers`; `of` is that
    of the shown `Verification`.

    Raises `Stale` if the result has changed, `Refused` if nobody can give it as an answer, else
    like `queue.store_label`.
    """
    with transactions.transact():
        decided = _check_unchanged(member, sent, of)
        if not _can_be_given(tasktypes.load_task_type(member.project), decided):
            raise Refused(
                "Nobody can give this result as an answer. Contest it with the answer that is "
                "right; the same answer in full confirms it."
            )
        sent = replace(sent, answers=decided)
        return queue.store_label(member, sent, stage=Stage.VERIFY, now=now)


def contest(
    member: Membership,
    sent: Submission,
    *,
    of: str,
    now: datetime,
) -> Label:
    """Store answers that differ from the labels, with a comment, and send the item to adjudication.

    Raises `Refused` without a comment, or if the answers equal a result that can be confirmed, else
    like `confirm`. If nobody can give the result as an answer, equal answers in full confirm it.
    """
    if not sent.comment.strip():
        raise Refused("Write in the comment why the label is wrong, then contest it.")
    task = tasktypes.load_task_type(member.project)
    cleaned = task.clean(sent.answers)
    with transactions.transact():
        decided = _check_unchanged(member, sent, of)
        is_same = effects.is_confirmation(task, cleaned, decided)
        if is_same and _can_be_given(task, decided):
            raise Refused("Your answer equals the label. Confirm it, or choose another answer.")
        return queue.store_label(member, sent, stage=Stage.VERIFY, now=now)


def measure_contest_rate(project: Project) -> ContestRate:
    """Measure how often verification contested the labels; n counts items.

    A label that confirmed has the same timestamp as the resolution that it set; resolutions are
    never deleted.
    """
    clusters: dict[str, list[bool]] = {}
    found = Label.objects.in_project(project).in_data_set().counted().at_stage(Stage.VERIFY)
    for cluster, confirmed in found.with_confirmed().values_list("item__cluster", "confirmed"):
        clusters.setdefault(cluster, []).append(not confirmed)
    sums = sum_clusters((len(said), sum(said)) for said in clusters.values())
    return ContestRate(sums.n, int(sums.y), clustered_wilson(sums))


def _withdraw_from_verification(offer: Offer, now: datetime) -> None:
    """Close the offered slot if the labels give no result any more: a label was undone in the
    meantime, or a lead chose another rule. If no more labels are expected, the item is then
    treated as a disagreement."""
    with transactions.transact():
        item = Item.objects.locked().get(pk=offer.item.pk)
        item.project = offer.item.project
        first, decided = _decided_label(item)
        if first is None or decided is None:
            offer.slot.close()
        if decided is None:
            resolution.update_resolution(item, now=now)


def _decided_label(item: Item) -> tuple[Label | None, dict[str, Any] | None]:
    """The first counted label that agrees with the result, and its answers. If no label agrees, the
    first label and the result; (None, None) if the labels give no result."""
    decided = resolution.aggregate_labels(item)
    if decided is None:
        return None, None
    task = tasktypes.load_task_type(item.project)
    labels = Label.objects.counted().of_item(item).at_stage(Stage.LABEL)
    found = list(labels.of_revision(item.revision()).for_page())
    same = [label for label in found if effects.is_confirmation(task, label.answers, decided)]
    first = (same or found or [None])[0]
    return first, (first.answers if same else decided)


def _can_be_given(task: TaskType, decided: Mapping[str, Any]) -> bool:
    with suppress(FieldError):
        return effects.is_confirmation(task, task.clean(decided), decided)
    return False


def _name_shown(first: Label, decided: dict[str, Any]) -> str:
    if first.answers == decided:
        return first.submission
    # Without the key, whoever verifies blind could try out results.
    of = f"{first.submission} {digest_texts(decided)}"
    return salted_hmac(_SALT, of, algorithm="sha256").hexdigest()


def _check_unchanged(member: Membership, shown: Submission, of: str) -> dict[str, Any]:
    """Lock the member and the item, and return the result of the labels. Raises `Stale` if the page
    showed another label or result."""
    claims.lock_member(member)
    items = Item.objects.locked().in_project(member.project).select_related("project__task_type")
    item = items.filter(key=shown.item_key).first()
    if item is None:
        raise Refused("The page showed another item. Reload the page.")
    first, decided = _decided_label(item)
    if first is None or decided is None or _name_shown(first, decided) != of:
        raise Stale("The label has changed. Read the new one, then confirm or contest it.")
    return decided
