"""A person's five lists: to do, drafts, done, skipped, reserved by others."""

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from annotation.labelling import drafts
from annotation.labelling.models.labels import LabelQuerySet
from annotation.labelling.models.notes import MarkQuerySet
from annotation.labelling.models.slots import SlotQuerySet
from annotation.labelling.queue import MemberProgress
from annotation.models import WORK_LIKE_STAGES, Item, Label, Mark, Membership, Slot, Stage


@dataclass(frozen=True)
class MyItemCounts:
    """How many each list has; `todo` are the items of the project without a final label."""

    todo: int
    drafts: int
    done: int
    skipped: int
    reserved: int


@dataclass(frozen=True)
class LabelSearch:
    """What to look for among one's labels: part of an item's key, a choice, a category."""

    key: str = ""
    choice: str = ""
    category: str = ""


def count_my_items(
    member: Membership, progress: MemberProgress, now: datetime | None = None
) -> MyItemCounts:
    """All five, each by an index of one person or of reserved slots: cheap in a large project."""
    return MyItemCounts(
        todo=progress.at_work,
        drafts=drafts.list_drafts(member).count(),
        done=member.labelled,
        skipped=skipped_marks(member).count(),
        reserved=slots_held_by_others(member, now).count(),
    )


def my_held_slots(member: Membership) -> SlotQuerySet:
    """What the member holds now: the item on the screen and the one after it."""
    held = Slot.objects.in_project(member.project_id).held_by(member.pk)
    return held.at_any(WORK_LIKE_STAGES).of_live_items().for_my_items()


def find_labels(member: Membership, search: LabelSearch | None = None) -> LabelQuerySet:
    """The member's labels in force, the latest first; control items are among them."""
    search = search or LabelSearch()
    labels = Label.objects.current().of_member(member.pk).at_stages(WORK_LIKE_STAGES)
    return labels.for_my_items(search.key, search.choice, search.category)


def skipped_marks(member: Membership) -> MarkQuerySet:
    """What the member skipped, the latest first."""
    return Mark.objects.of_member(member.pk, Mark.Kind.SKIP).for_my_items()


def slots_held_by_others(member: Membership, now: datetime | None = None) -> SlotQuerySet:
    """What is reserved by others now, the one whose reservation ends first in front."""
    slots = (
        Slot.objects.in_project(member.project_id).at_stage(Stage.LABEL).held(now or timezone.now())
    )
    return slots.of_others(member.pk).for_my_items()


def past_labels(member: Membership, item: Item) -> LabelQuerySet:
    """All labels that the member ever gave the item, the oldest first."""
    labels = Label.objects.of_member(member.pk).of_item(item)
    return labels.at_stages(WORK_LIKE_STAGES).order_by("created_at", "pk")
