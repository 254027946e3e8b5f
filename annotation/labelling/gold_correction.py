"""Correct a wrong gold answer in all items that share it."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from functools import cache
from hashlib import sha256
from typing import Any

from annotation import tasktypes
from annotation.db import transactions
from annotation.errors import Refused, Stale
from annotation.items import revisions, taxonomy
from annotation.items.diffing import difference, merging, stored
from annotation.labelling import assignment, effects, submissions
from annotation.labelling.correct_answers import PURPOSES
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

GOLD, PERTURBED = "gold", "perturbed"
_EXCLUDED = "This item is no longer in the project. Go back to the list."
GoldAnswer = str | list[str]


@dataclass(frozen=True)
class CorrectionResult:
    """The keys of the items that got a new revision, and the number of labels carried over."""

    items: tuple[str, ...]
    carried: int


@dataclass(frozen=True)
class CorrectionPreview:
    """What a correction would do, as keys of items in order.

    both: the perturbed answer gets the correction too. gold_only: it cannot, since its own change
    is at the same place; labels of these items are never kept. unpaired: they have no perturbed
    answer, or several gold answers. accepted, score_invariant, known: those of all these items that
    were accepted without review, are of a score-invariant category, or are qualification or control
    items. ended: those with labels that end even if labels are kept, other than gold_only.
    """

    gold: GoldAnswer
    both: tuple[str, ...]
    gold_only: tuple[str, ...]
    unpaired: tuple[str, ...]
    accepted: tuple[str, ...]
    score_invariant: tuple[str, ...]
    known: tuple[str, ...]
    ended: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Another digest means that the correction does something else."""
        return sha256(repr(astuple(self)).encode()).hexdigest()


def get_gold(revision: Revision) -> GoldAnswer | None:
    """The gold answer of the texts, or a list of several equally good gold answers; None if there
    is none."""
    return revision.texts.get(GOLD)


def items_sharing_gold(item: Item, gold: GoldAnswer) -> list[Item]:
    """The live items of the same source question with exactly this gold answer, in order."""
    of_cluster = Item.objects.in_project(item.project).with_current_texts()
    found: list[Any] = list(of_cluster.filter(cluster=item.cluster).order_by("position"))
    return [one for one in found if one.current_revisions[0].texts.get(GOLD) == gold]


def preview_correction(item: Item, *, revision: int, gold: Sequence[str]) -> CorrectionPreview:
    """Return what `correct_gold` would do, without storing anything. Raises like it."""
    before = _check_correctable(item, revision, gold)
    after = _normalise_gold(before, gold)
    sharing = items_sharing_gold(item, before)
    invariant = taxonomy.load_taxonomy(item.project).with_effect("none")
    imported = Resolution.objects.current().filter(source=Resolution.Source.IMPORTED)
    accepted = set(imported.filter(item__in=sharing).values_list("item", flat=True))
    labels, ended = dict[int, list[Label]](), dict[str, None]()
    for label in Label.objects.counted().filter(item__in=sharing).select_related("revision"):
        labels.setdefault(label.item_id, []).append(label)
    by_fate: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for one in sharing:
        texts = one.current_revisions[0].texts
        corrected = _correct_texts(texts, after)
        by_fate[corrected is not None if _is_pair(texts) else None].append(one.key)
        for label in labels.get(one.pk, []):
            if corrected and _carry_answers(label, one, texts, corrected) is None:
                ended.setdefault(one.key)
    return CorrectionPreview(
        gold=after,
        both=tuple(by_fate[True]),
        gold_only=tuple(by_fate[False]),
        unpaired=tuple(by_fate[None]),
        accepted=tuple(one.key for one in sharing if one.pk in accepted),
        score_invariant=tuple(one.key for one in sharing if one.category in invariant),
        known=tuple(one.key for one in sharing if one.purpose in PURPOSES),
        ended=tuple(ended),
    )


def correct_gold(
    member: Membership,
    *,
    item_key: str,
    revision: int,
    gold: Sequence[str],
    note: str = "",
    carry: bool = False,
    preview: str = "",
    now: datetime,
) -> CorrectionResult:
    """Replace the gold answer in every item of the source question that has the same gold answer,
    and make the same correction in the perturbed answer.

    Labels of the old texts stop counting and their slots reopen. With `carry`, the labels count for
    the new texts: each label is copied to a new row that supersedes the old label. The event
    records who carried it. An item that keeps all labels keeps its resolution, and adjudicated
    resolutions are renewed. Labels that report a wrong gold answer are never carried over, since
    that answer is corrected now, nor those that mark a corrected passage.

    Where the correction overlaps with the item's own change, only the gold answer changes: the item
    is another one then, so it loses its labels and its resolution, unless this is a known answer.

    `preview` is the digest of what the person was shown. Raises `Refused` for an invalid text, and
    `Stale` if the item's texts have changed or the correction would do something else by now.
    """
    with transactions.transact():
        claims.lock_member(member)
        shown = Item.objects.in_project(member.project).filter(key=item_key).first()
        if shown is None:
            raise Refused(_EXCLUDED)
        items = list(
            Item.objects.locked()
            .in_project(member.project)
            .filter(cluster=shown.cluster)
            .select_related("project__task_type")
            .order_by("pk")
        )
        same = next((item for item in items if item.pk == shown.pk), None)
        if same is None:  # somebody excluded it while this waited
            raise Refused(_EXCLUDED)
        before = _check_correctable(same, revision, gold)
        if preview and preview != preview_correction(shown, revision=revision, gold=gold).digest:
            raise Stale(
                "Items of this question have changed since the preview. Look at it once more."
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


def _is_pair(texts: Mapping[str, Any]) -> bool:
    return isinstance(texts[GOLD], str) and isinstance(texts.get(PERTURBED), str)


def _correct_texts(texts: Mapping[str, Any], gold: GoldAnswer) -> dict[str, Any] | None:
    """Return the texts with the correction in the gold answer, and in the perturbed answer if they
    are a pair. None if the perturbed answer has its own change at that place."""
    corrected = {**texts, GOLD: gold}
    if not _is_pair(texts):
        return corrected
    before, perturbed = texts[GOLD], texts[PERTURBED]
    assert isinstance(gold, str)  # as the gold answer before
    carried = merging.carry_correction(before, gold, perturbed)
    return None if carried is None else {**corrected, PERTURBED: carried}


def _add_revision(
    item: Item, gold: GoldAnswer, member: Membership, note: str, carry: bool, now: datetime
) -> int:
    """Add a revision to the item, which must be locked; return the number of labels carried
    over."""
    labels = list(Label.objects.counted().of_item(item).select_related("slot", "revision"))
    held_true = Resolution.objects.current().of_item(item).first()
    before = item.revision().texts
    corrected = _correct_texts(before, gold)
    overlaps = corrected is None
    after = corrected or {**before, GOLD: gold}
    revisions.add_revision(item, after, author=member, note=note, now=now)
    carry = carry and not overlaps
    answers = {one.pk: _carry_answers(one, item, before, after) for one in labels if carry}
    kept = [(one, said) for one in labels if (said := answers.get(one.pk)) is not None]
    for label in labels:
        if answers.get(label.pk) is None and label.slot and label.member_id == member.pk:
            label.slot.release()
    new = [_carry_label(label, item, said) for label, said in kept]
    _release_case(item)
    all_kept = carry and len(kept) == len(labels)
    if held_true and _still_holds(held_true, carry, overlaps, all_kept=all_kept):
        _renew_resolution(held_true, item)
    if not (held_true and all_kept):
        effects.apply_correction(item, now)
    if held_true and held_true.source == Resolution.Source.IMPORTED and overlaps:
        assignment.refill_slots(item, now=now)
    Event.record(
        "mend gold",
        item.key,
        project_id=item.project_id,
        member_id=member.pk,
        revision=item.revision_number,
        note=note,
        carried=[label.submission for label in new],
        perturbed=_is_pair(before) and not overlaps,
    )
    return len(new)


def _carry_answers(
    label: Label, item: Item, before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the label's answers for the new texts, with its passages at their new places.

    None if the label does not hold for them: it reports a wrong gold answer, marks a passage that
    was corrected, or numbers the changes by the diff of an earlier version.
    """
    task = tasktypes.load_task_type(item.project)
    if task.route_of(label.answers) == effects.GOLD_ERROR:
        return None
    if task.names_changes(label.answers) and (
        stored.shown_algorithm(label.revision) != difference.ALGORITHM
    ):
        return None

    @cache
    def places(name: str, alternative: int | None) -> merging.Places | None:
        old, new = (_get_text(texts, name, alternative) for texts in (before, after))
        return None if new is None else merging.Places(old or "", new)

    def move(name: str, alternative: int | None, start: int, end: int) -> int | None:
        found = places(name, alternative)
        return found.move(start, end) if found else None

    return task.carry_answers(label.answers, move)


def _get_text(texts: Mapping[str, Any], name: str, alternative: int | None) -> str | None:
    """The text of this name, or one of its alternatives, which are numbered from 1."""
    text = texts.get(name)
    if isinstance(text, list):
        return text[alternative - 1] if alternative and alternative <= len(text) else None
    return text


def _carry_label(label: Label, item: Item, answers: dict[str, Any]) -> Label:
    """Copy the label for the new texts with these answers, and with the original time and
    duration."""
    old, slot, revision = label.pk, label.slot, item.revision()
    if tasktypes.load_task_type(item.project).names_changes(answers):
        stored.pin_shown(revision, difference.ALGORITHM)
    Label.objects.filter(pk=old).update(current=False, counted=False)
    if slot:
        slot.fill(label.member_id)
    label.pk = None
    label.revision, label.answers = revision, answers
    label.supersedes_id = old
    label.submission = submissions.digest_token(
        f"carried {label.submission} {item.revision_number}"
    )
    label.current = label.counted = True
    label.save(force_insert=True)
    return label


def _still_holds(resolution: Resolution, carry: bool, overlaps: bool, *, all_kept: bool) -> bool:
    """True if the resolution applies to the corrected texts."""
    match resolution.source:
        case Resolution.Source.KNOWN:
            return True
        case Resolution.Source.IMPORTED:  # no labels in this project could restore it
            return not overlaps
        case Resolution.Source.ADJUDICATED:
            return carry
    return all_kept


def _renew_resolution(resolution: Resolution, item: Item) -> None:
    """Let the resolution apply to the new texts, with the time of its decision, as labels keep
    theirs."""
    resolution.pk, resolution.current, resolution.ended_at = None, True, None
    resolution.revision = item.revision()
    resolution.save(force_insert=True)


def _release_case(item: Item) -> None:
    """Release held decisions about the gold answer, since it is corrected now."""
    slots = Slot.objects.in_project(item.project_id).at_stage(Stage.ADJUDICATE).of_item(item)
    for slot in slots.filter(state=Slot.State.HELD, reason=Reason.GOLD_ERROR):
        slot.release()
