"""Which of two texts a member sees as A, for task types whose items have a pair of texts.

The order is drawn for each item and member, so that over many labels no text is favoured by its
place. It depends on nothing else: a reload, a draft, an undone label or a second visit show the
same order. Verification, adjudication and the pages of leads do not draw: they show the texts by
their own titles, since other people's labels and comments stand beside them.
"""

from annotation.labelling.slots import WORKBENCH_STAGES
from annotation.models import Membership, Slot
from annotation.tasktypes import TaskType
from stats.lots import draw_number


def draw_first(task: TaskType, member: Membership, slot: Slot) -> str:
    """Return the name of the text that the member sees as A on the label screen, each with
    probability 1/2; "" if the task type has no pair of texts or the page does not draw."""
    if task.pair is None or slot.stage not in WORKBENCH_STAGES:
        return ""
    return task.pair.texts[draw_number(f"pair order:{slot.item_id}:{member.pk}", bits=1)]
