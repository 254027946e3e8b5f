"""A member's five lists of items: to do, drafts, done, skipped, reserved by others."""

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from annotation import tasktypes
from annotation.labelling import blind_names, drafts
from annotation.labelling.models.labels import LabelQuerySet
from annotation.labelling.models.notes import MarkQuerySet
from annotation.labelling.models.slots import SlotQuerySet
from annotation.labelling.queue import MemberProgress
from annotation.models import WORK_LIKE_STAGES, Item, Label, Mark, Membership, Slot, Stage


@dataclass(frozen=True)
class MyItemCounts:
    """The length of each list; `todo` counts the items that the member can still label."""

    todo: int
    drafts: int
    done: int
    skipped: int
    reserved: int


@dataclass(frozen=True)
class LabelSearch:
    """A search among the member's labels, by part of an item's key, choice and category."""

    key: str = ""
    choice: str = ""
    category: str = ""


def count_my_items(
    member: Membership, progress: MemberProgress, now: datetime | None = None
) -> MyItemCounts:
    """Count the items of all five lists. Each count uses an index of the member's rows or of held
    slots, so it is fast in a large project."""
    return MyItemCounts(
        todo=progress.todo,
        drafts=drafts.list_drafts(member).count(),
        done=member.labelled,
        skipped=skipped_marks(member).count(),
        reserved=slots_held_by_others(member, now).count(),
    )


def my_held_slots(member: Membership) -> SlotQuerySet:
    """The slots that the member holds, for the current item and the next item."""
    held = Slot.objects.in_project(member.project_id).held_by(member.pk)
    return held.at_any(WORK_LIKE_STAGES).of_live_items().for_my_items()


def find_labels(member: Membership, search: LabelSearch | None = None) -> LabelQuerySet:
    """The member's current labels, the latest first, including those of control items."""
    search = search or LabelSearch()
    labels = Label.objects.current().of_member(member.pk).at_stages(WORK_LIKE_STAGES)
    return labels.for_my_items(search.key, search.choice, search.category)


def skipped_marks(member: Membership) -> MarkQuerySet:
    """The items that the member skipped, the latest first."""
    return Mark.objects.of_member(member.pk, Mark.Kind.SKIP).for_my_items()


def slots_held_by_others(member: Membership, now: datetime | None = None) -> SlotQuerySet:
    """The slots that others hold now, ordered by when the reservation ends."""
    slots = (
        Slot.objects.in_project(member.project_id).at_stage(Stage.LABEL).held(now or timezone.now())
    )
    return slots.of_others(member.pk).for_my_items()


def past_labels(member: Membership, item: Item) -> LabelQuerySet:
    """All labels that the member ever gave the item, oldest first."""
    labels = Label.objects.of_member(member.pk).of_item(item)
    return labels.at_stages(WORK_LIKE_STAGES).order_by("created_at", "pk")


MAX_SIBLINGS = 100


@dataclass(frozen=True)
class Sibling:
    """Another item of the same cluster; `said` is the title of the member's choice, "" without a
    label.

    `text` is the judged text, shown only once the member has labelled the item: before that it
    could reveal the answer to an item shown blind.
    """

    item: Item
    said: str
    text: str


def list_siblings(member: Membership, item: Item) -> list[Sibling] | None:
    """List the item's siblings; None while the member still has to label the item blind."""
    if blind_names.is_blind(member, item):
        return None
    task = tasktypes.load_task_type(member.project)
    cluster = Item.objects.in_project(member.project).of_cluster(item)
    others = list(cluster.defer("fields")[:MAX_SIBLINGS])
    labels = Label.objects.current().of_member(member.pk).at_stages(WORK_LIKE_STAGES)
    said = {label.item_id: label for label in labels.for_items(others)}
    blind = member.project.blind_first
    return [
        _sibling(task, other, said.get(other.pk))
        for other in others
        # Control items are listed too: a sibling that appeared only after it is labelled would be
        # recognised as one.
        if other.pk in said or (other.purpose != "practice" and not blind)
    ]


def _sibling(task: tasktypes.TaskType, item: Item, label: Label | None) -> Sibling:
    if label is None:
        return Sibling(item, "", "")
    judged = task.diff[1] if task.diff else task.correctable
    text = label.revision.texts.get(judged, "")
    said = task.in_order(label.first_shown).title_of(label.choice)
    return Sibling(item, said, text if isinstance(text, str) else "")
