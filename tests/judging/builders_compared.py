"""Projects in which people compare the responses of two systems."""

from typing import Any

from annotation.labelling import queue
from annotation.models import Item, Membership, Project
from tests.builders import make_item, make_member, make_project, make_resolution

TEXTS = {"prompt": "Name a river.", "response_1": "The Rhine.", "response_2": "The lake."}
FIRST, SECOND, GOOD, BAD = "response_1", "response_2", "both_good", "both_bad"


def make_pair(project: Project, one: str, other: str, said: str = "", **values: Any) -> Item:
    """An item with the responses of two systems and, if said, a final label."""
    fields = {"system_1": one, "system_2": other}
    item = make_item(project, texts=TEXTS, category="", **{"fields": fields, **values})
    if said:
        make_resolution(item, said)
    return item


def say_better(member: Membership, said: str) -> queue.Offer:
    """The member's label of the next item; what was offered."""
    offer = queue.next_offer(member)
    assert isinstance(offer, queue.Offer)
    queue.store_label(member, offer.submission({"preference": said}))
    return offer


def make_compared(slug: str, size: int = 1) -> Project:
    """Three systems, each two of them compared four times, or a multiple; one annotator."""
    project = make_project(slug, task_type="pairwise")
    for number in range(12 * size):
        one, other = (("a", "b"), ("b", "c"), ("c", "a"))[number % 3]
        make_pair(project, one, other, (FIRST, FIRST, SECOND, GOOD)[number // 3 % 4])
    member = make_member(project)
    for number in range(6 * size):
        say_better(member, (FIRST, SECOND, BAD)[number % 3])
    return project
