"""Other items made of the same question, and what the member said of them."""

from dataclasses import dataclass

from annotation import tasktypes
from annotation.labelling import blind_names
from annotation.models import WORK_LIKE_STAGES, Item, Label, Membership

MAX_SIBLINGS = 100


@dataclass(frozen=True)
class Sibling:
    """An item of the same cluster; `said` is the member's choice in words, empty if there is none.

    `text` is its text under judgement, shown only once the member has labelled the item: before
    that it would give away what an item shown blind asks.
    """

    item: Item
    said: str
    text: str


def list_siblings(member: Membership, item: Item) -> list[Sibling] | None:
    """The item's siblings; None as long as the member has the item to judge blind."""
    if blind_names.is_blind(member, item):
        return None
    task = tasktypes.load_task_type(member.project)
    others = list(Item.objects.in_project(member.project).of_cluster(item)[:MAX_SIBLINGS])
    labels = Label.objects.current().of_member(member.pk).at_stages(WORK_LIKE_STAGES)
    said = {label.item_id: label for label in labels.for_items(others)}
    blind = member.project.blind_first
    return [
        _sibling(task, other, said.get(other.pk))
        for other in others
        # Silent checks too: one that came up only once it is labelled would give itself away.
        if other.pk in said or (other.purpose != "practice" and not blind)
    ]


def _sibling(task: tasktypes.TaskType, item: Item, label: Label | None) -> Sibling:
    if label is None:
        return Sibling(item, "", "")
    judged = task.diff[1] if task.diff else task.correctable
    text = label.revision.texts.get(judged, "")
    return Sibling(item, task.title_of(label.choice), text if isinstance(text, str) else "")
