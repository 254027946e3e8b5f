"""What an item is called while somebody has it to judge blind.

Keys often tell the category ("number-errors-12"). So a first look goes under a name that is made
for one reader and one item: the same each time, and with nothing to be read from it.
"""

from collections.abc import Iterable

from django.utils.crypto import salted_hmac

from annotation.labelling.correct_answers import PRACTICE
from annotation.models import Item, Label, Membership, Stage

PREFIX = "first-look-"
_SALT = "annotation.veils"


def blind_name(member: Membership, item: Item) -> str:
    """The name under which the member has the item to judge blind."""
    of = f"{member.pk}:{item.pk}"
    return PREFIX + salted_hmac(_SALT, of, algorithm="sha256").hexdigest()[:12]


def matches_name(name: str, member: Membership, item: Item) -> bool:
    """Whether a page of the member's calls the item so: by its key, or as at a first look."""
    return name == item.key or name == blind_name(member, item)


def readable_name(name: str) -> str:
    """How a sentence begins that speaks of the item of this name; a veil is not read out."""
    return "The item" if name.startswith(PREFIX) else name


def display_names(member: Membership, items: Iterable[Item]) -> dict[int, str]:
    """What the member's pages call the items, by their ids."""
    items = list(items)
    seen = _unblinded_ids(member, items)
    return {i.pk: i.key if i.pk in seen else blind_name(member, i) for i in items}


def is_blind(member: Membership, item: Item) -> bool:
    """Whether the member has yet to judge the item blind, before anything is told of it."""
    return item.pk not in _unblinded_ids(member, [item])


def find_item(member: Membership, name: str) -> Item | None:
    """The project's item of this key, or one that the member has on the desk under this name."""
    there = Item.objects.in_project(member.project)
    if name.startswith(PREFIX):
        for item in there.on_the_desk_of(member.pk):
            if blind_name(member, item) == name:
                return item
    return there.with_keys([name]).first()


def _unblinded_ids(member: Membership, items: list[Item]) -> set[int]:
    """The ids of those that need no veil; practice is never blind."""
    if not member.project.blind_first:
        return {item.pk for item in items}
    labels = Label.objects.current().of_member(member.pk).at_stage(Stage.BLIND)
    practised = {item.pk for item in items if item.purpose == PRACTICE}
    return practised | set(labels.for_items(items).values_list("item", flat=True))
