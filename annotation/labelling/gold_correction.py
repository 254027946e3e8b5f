"""Correct a wrong gold answer in all items that share it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from annotation import tasktypes
from annotation.db import transactions
from annotation.errors import Refused, Stale
from annotation.items import revisions
from annotation.labelling import effects, submissions
from annotation.labelling import resolution as labelling_resolution
from annotation.labelling.queue import claims
from annotation.models import (
    Event,
    Item,
    Label,
    Membership,
    Reason,
    Resolution,
    Revision,
    Slot,
    Stage,
)

GOLD = "gold"
# Resolutions from these sources also apply to the corrected texts: no labels in this project could
# restore them.
_EXTERNAL_SOURCES = (Resolution.Source.KNOWN, Resolution.Source.IMPORTED)
GoldAnswer = str | list[str]


@dataclass(frozen=True)
class CorrectionResult:
    """The keys of the items that got a new revision, and the number of labels carried over."""

    items: tuple[str, ...]
    carried: int


def get_gold(revision: Revision) -> GoldAnswer | None:
    """The gold answer of the texts, or a list of several equally good gold answers; None if there
    is none."""
    return revision.texts.get(GOLD)


def items_sharing_gold(item: Item, gold: GoldAnswer) -> list[Item]:
    """The live items of the same source question with exactly this gold answer, in order."""
    of_cluster = Item.objects.in_project(item.project).with_current_texts()
    found: list[Any] = list(of_cluster.filter(cluster=item.cluster).order_by("position"))
    return [one for one in found if one.current_revisions[0].texts.get(GOLD) == gold]


def correct_gold(
    member: Membership,
    *,
    item_key: str,
    revision: int,
    gold: Sequence[str],
    note: str = "",
    carry: bool = False,
    now: datetime,
) -> CorrectionResult:
    """Replace the gold answer in every item of the source question that has the same gold answer.

    Labels of the old texts stop counting and their slots reopen. With `carry`, the labels count for
    the new texts: each label is copied to a new row that supersedes the old label. The event
    records who carried it, and adjudicated resolutions are renewed. Labels that report a wrong gold
    answer are never carried over, since that answer is corrected now. Raises `Refused` for an
    invalid text, and `Stale` if the item's texts have changed.
    """
    with transactions.transact():
        claims.lock_member(member)
        shown = Item.objects.in_project(member.project).filter(key=item_key).first()
        if shown is None:
            raise Refused("This item is no longer in the project. Go back to the list.")
        items = list(
            Item.objects.locked()
            .in_project(member.project)
            .filter(cluster=shown.cluster)
            .select_related("project__task_type")
            .order_by("pk")
        )
        before = _check_correctable(
            next(item for item in items if item.pk == shown.pk), revision, gold
        )
        after = _normalise_gold(before, gold)
        sharing = [item for item in items if get_gold(item.revision()) == before]
        carried = sum(_add_revision(item, after, member, note, carry, now) for item in sharing)
    keys = tuple(item.key for item in sorted(sharing, key=lambda item: item.position))
    return CorrectionResult(keys, carried)


def _check_correctable(item: Item, revision: int, gold: Sequence[str]) -> GoldAnswer:
    if item.revision_number != revision:
        raise Stale("The texts have been corrected. Read the new ones, then correct them.")
    before = get_gold(item.revision())
    if before is None:
        raise Refused("This item has no gold answer.")
    if not gold or not all(text.strip() for text in gold):
        raise Refused("A gold answer is empty. Enter the complete text.")
    if any("\0" in text for text in gold):
        raise Refused("The text contains a NUL character, which cannot be saved. Remove it.")
    if _normalise_gold(before, gold) == before:
        raise Refused(
            "The gold answer is unchanged. Change it, or decide the item without a correction."
        )
    return before


def _normalise_gold(before: GoldAnswer, gold: Sequence[str]) -> GoldAnswer:
    """Give the new gold answer the same kind of line breaks as the old gold answer."""
    old = [before] if isinstance(before, str) else before
    shown = dict(enumerate(old))
    new = [
        revisions.match_line_breaks(shown.get(place, ""), text) for place, text in enumerate(gold)
    ]
    return new[0] if isinstance(before, str) else new


def _add_revision(
    item: Item, gold: GoldAnswer, member: Membership, note: str, carry: bool, now: datetime
) -> int:
    """Add a revision to the item, which must be locked; return the number of labels carried
    over."""
    labels = list(Label.objects.counted().of_item(item).select_related("slot"))
    held_true = Resolution.objects.current().of_item(item).first()
    texts = {**item.revision().texts, GOLD: gold}
    revisions.add_revision(item, texts, author=member, note=note, now=now)
    kept = [label for label in labels if carry and not _reports_gold_error(item, label)]
    for label in labels:
        if label not in kept and label.slot and label.member_id == member.pk:
            label.slot.release()
    new = [_carry_label(label, item) for label in kept]
    if held_true and _still_holds(held_true, carry, all_kept=len(kept) == len(labels)):
        _renew_resolution(held_true, item, now)
    _release_case(item)
    effects.apply_correction(item, now)
    Event.record(
        "mend gold",
        item.key,
        project_id=item.project_id,
        member_id=member.pk,
        revision=item.revision_number,
        note=note,
        carried=[label.submission for label in new],
    )
    return len(new)


def _reports_gold_error(item: Item, label: Label) -> bool:
    task = tasktypes.load_task_type(item.project)
    return task.route_of(label.answers) == effects.GOLD_ERROR


def _carry_label(label: Label, item: Item) -> Label:
    """Copy the label for the new texts, with the original time and duration."""
    old, slot = label.pk, label.slot
    Label.objects.filter(pk=old).update(current=False, counted=False)
    if slot:
        slot.fill(label.member_id)
    label.pk = None
    label.revision = item.revision()
    label.supersedes_id = old
    label.submission = submissions.digest_token(
        f"carried {label.submission} {item.revision_number}"
    )
    label.current = label.counted = True
    label.save(force_insert=True)
    return label


def _still_holds(resolution: Resolution, carry: bool, *, all_kept: bool) -> bool:
    """True if the resolution applies to the corrected texts, although labels alone would not
    restore it."""
    if resolution.source in _EXTERNAL_SOURCES:
        return True
    confirmed = resolution.rule == labelling_resolution.VERIFIED and all_kept
    return carry and (confirmed or resolution.source == Resolution.Source.ADJUDICATED)


def _renew_resolution(resolution: Resolution, item: Item, now: datetime) -> None:
    resolution.pk, resolution.current, resolution.ended_at = None, True, None
    resolution.revision, resolution.created_at = item.revision(), now
    resolution.save(force_insert=True)


def _release_case(item: Item) -> None:
    """Release held decisions about the gold answer, since it is corrected now."""
    slots = Slot.objects.in_project(item.project_id).at_stage(Stage.ADJUDICATE).of_item(item)
    for slot in slots.filter(state=Slot.State.HELD, reason=Reason.GOLD_ERROR):
        slot.release()
