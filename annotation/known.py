"""Items whose right answers are known beforehand: for practice, and for silent checks.

Such an item asks nobody for work and belongs to no run. What is right of it is a resolution of
source `known`: `values` holds the right answer of every field that is compared, `comment` why.
An item that people have labelled can become one only once it is resolved, so that no place is
closed under somebody's hands; its labels stay, and releasing the item makes them count again.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.utils import timezone

from annotation import answers, assigning, awaiting, places, tasktypes, writing
from annotation.answers import PRACTICE, PURPOSES
from annotation.errors import Refused
from annotation.models import (
    Event,
    Item,
    Label,
    Membership,
    Project,
    Resolution,
    Revision,
    Slot,
    Stage,
)
from stats.lots import lot

TEST = "test"
_TELLING = re.compile(r"probe|practi[cs]e|check|known|trap|control", re.IGNORECASE)


def set_answer(
    project: Project,
    item: Item,
    purpose: str,
    right: Mapping[str, object],
    explanation: str,
    member: Membership | None,
    *,
    now: datetime | None = None,
) -> Resolution:
    """Make the item one of practice or a probe, or say anew what is right of it.

    Raises `Refused` while somebody works on it, and for answers that the task type does not take.
    """
    now = now or timezone.now()
    task = tasktypes.of_project(project)
    answer = answers.check(task, purpose, right, explanation)
    with writing.transact():
        item = Item.objects.locked().get(pk=item.pk, project=project)
        awaiting.check(item)
        _check_free(item, now)
        _close(item, Stage.WORK)
        if item.purpose not in (purpose, TEST):
            _close(item, Stage.PRACTICE, Stage.PROBE)
        Resolution.objects.current().of_item(item).update(current=False, ended_at=now)
        item.purpose = purpose
        item.save(update_fields=["purpose"])
        known = resolution(item.revision(), answer, member, now)
        known.save()
        _record("known", item, member, purpose=purpose, values=answer.values)
    return known


def release(item: Item, member: Membership | None, *, now: datetime | None = None) -> None:
    """Make the item one to work on again, as it was before its answer was known.

    Labels that it had count again, a resolution from elsewhere is held true again, and places
    that it lacks are opened. Who practised on it was told the answer: that is marked. Raises
    `Refused` if practice would be left without enough items.
    """
    now = now or timezone.now()
    with writing.transact():
        item = Item.objects.locked().select_related("project").get(pk=item.pk)
        if item.purpose not in PURPOSES:
            raise Refused("This item has no known answer.")
        _check_enough_left(item)
        purpose, item.purpose = item.purpose, TEST
        item.save(update_fields=["purpose"])
        _close(item, Stage.PRACTICE, Stage.PROBE)
        known = Resolution.objects.current().of_item(item).first()
        if known:
            known.end(now)
        if not _restored(item, now):
            assigning.refill(item, now=now)
        _record("known-release", item, member, purpose=purpose)


def resolution(
    revision: Revision, answer: answers.Answer, member: Membership | None, now: datetime
) -> Resolution:
    """What is known of a revision, to be stored."""
    return Resolution(
        item=revision.item,
        revision=revision,
        value=answer.value,
        values=answer.values,
        comment=answer.explanation,
        rule="known answer",
        source=Resolution.Source.KNOWN,
        member=member,
        created_at=now,
    )


def items(project: Project, purpose: str) -> list[Item]:
    """The items of a purpose whose current texts have a known answer."""
    return list(Item.objects.in_project(project).with_known_answer(purpose))


def unknown(project: Project) -> list[Item]:
    """Items of practice and probes whose current texts have no known answer, so nobody gets them.

    Their texts were corrected since it was said.
    """
    found = {item.pk for purpose in PURPOSES for item in items(project, purpose)}
    meant = Item.objects.in_project(project).for_purposes(PURPOSES)
    return [item for item in meant if item.pk not in found]


def gives_away(item: Item) -> bool:
    """Whether the key, which every annotator reads, says that the item is a check."""
    return bool(_TELLING.search(item.key))


def answers_at(labels: Iterable[Label]) -> dict[int, Resolution]:
    """What was known of the texts that each label speaks of, when it was given; by the label's id.

    For practice, which is about what the person was told then. Labels of texts of which nothing
    was known then are left out.
    """
    labels = list(labels)
    of_revision: dict[int, list[Resolution]] = defaultdict(list)
    revisions = {label.revision_id for label in labels}
    for resolution in Resolution.objects.known().of_revisions(revisions):
        of_revision[resolution.revision_id].append(resolution)
    found = {}
    for label in labels:
        for resolution in of_revision[label.revision_id]:  # the last one that fits stands
            if _held_at(resolution, label.created_at):
                found[label.pk] = resolution
    return found


def answers_by_now(revisions: Iterable[int]) -> dict[int, Resolution]:
    """What is known of texts, by the revision's id: what was said last, also where that ended.

    For silent checks: nobody is told what was known, and a lead may have mended it since. Texts
    of which nothing was ever known are left out.
    """
    found = Resolution.objects.known().of_revisions(revisions)
    return {resolution.revision_id: resolution for resolution in found}


def in_order_of(member: Membership, found: Iterable[Item]) -> list[Item]:
    """The items in an order of the member's own: the same in every copy of the project."""
    of = f"known\0{member.project.slug}\0{member.alias}"
    return sorted(found, key=lambda item: lot(f"{of}\0{item.key}"))


def hold(item: Item, stage: str, member: Membership, now: datetime) -> Slot:
    """A place of the member's own for the item, held; inside the queue's transaction."""
    item = Item.objects.locked().get(pk=item.pk)
    until = places.until(member, now)
    slot = Slot.objects.filter(item=item, stage=stage, member=member).locked().first()
    if slot:
        slot.hold(member.pk, until)
    return slot or places.own(member, item, stage, until)


def _check_free(item: Item, now: datetime) -> None:
    if item.deleted_at:
        raise Refused("This item was taken out of the project. Choose another one.")
    if item.duplicate_of_id:
        raise Refused("This item repeats another one. Choose that one.")
    if item.purpose in PURPOSES:
        return
    if Slot.objects.filter(item=item).held(now).exists():
        raise Refused("Somebody works on this item right now. Try again when they are through.")
    labelled = Label.objects.counted().filter(item=item, stage=Stage.WORK).exists()
    if labelled and not Resolution.objects.current().of_item(item).exists():
        raise Refused("People have begun to label this item. Wait until it is resolved.")


def _check_enough_left(item: Item) -> None:
    needed = item.project.practice_items
    if item.purpose == PRACTICE and 0 < needed > len(items(item.project, PRACTICE)) - 1:
        raise Refused(
            f"A round of practice has {needed} items; without this one there are too few. "
            "Add another item first, or make the rounds shorter."
        )


def _close(item: Item, *stages: str) -> None:
    """Close what nobody has filled of the item's places at these stages."""
    for slot in Slot.objects.filter(item=item, stage__in=stages).in_use().locked():
        slot.close()


def _restored(item: Item, now: datetime) -> bool:
    """Hold true again what did not come from labels when the answer became known."""
    of_item = Resolution.objects.filter(item=item, revision=item.revision())
    known = of_item.known().values("created_at")
    before = of_item.not_known().filter(ended_at__in=known).order_by("-ended_at").first()
    if before is None or before.source == Resolution.Source.LABELS:
        return False
    before.pk, before.current, before.created_at, before.ended_at = None, True, now, None
    before.save(force_insert=True)
    return True


def _held_at(resolution: Resolution, time: datetime) -> bool:
    ended = resolution.ended_at
    return resolution.created_at <= time and (ended is None or ended > time)


def _record(kind: str, item: Item, member: Membership | None, **data: object) -> None:
    member_id = member.pk if member else None
    Event.record(kind, item.key, project_id=item.project_id, member_id=member_id, **data)
