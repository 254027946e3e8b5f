"""The name that an item has on the pages of a member who labels it blind.

Keys often reveal the category ("number-errors-12"). So the first look shows a name that reveals
nothing: it is specific to the member and the item, and never changes.
"""

from collections.abc import Iterable

from django.utils.crypto import salted_hmac

from annotation.labelling.correct_answers import PRACTICE
from annotation.models import Item, Label, Membership, Stage

PREFIX = "first-look-"
_SALT = "annotation.veils"


def blind_name(member: Membership, item: Item) -> str:
    """The name under which the member sees the item at the first look."""
    of = f"{member.pk}:{item.pk}"
    return PREFIX + salted_hmac(_SALT, of, algorithm="sha256").hexdigest()[:12]


def matches_name(name: str, member: Membership, item: Item) -> bool:
    """True if the name is the item's key, or its blind name for the member."""
    return name == item.key or name == blind_name(member, item)


def readable_name(name: str) -> str:
    """What a sentence calls the item: its key, or "The item" if the name is a blind name."""
    return "The item" if name.startswith(PREFIX) else name


def display_names(member: Membership, items: Iterable[Item]) -> dict[int, str]:
    """The names of the items on the member's pages, by the items' ids."""
    items = list(items)
    seen = _unblinded_ids(member, items)
    return {i.pk: i.key if i.pk in seen else blind_name(member, i) for i in items}


def is_blind(member: Membership, item: Item) -> bool:
    """True if the member must still label the item blind."""
    return item.pk not in _unblinded_ids(member, [item])


def find_item(member: Membership, name: str) -> Item | None:
    """Find the project's item with this key, or with this blind name for the member; None if there
    is no such item."""
    there = Item.objects.in_project(member.project)
    if name.startswith(PREFIX):
        for item in there.on_the_desk_of(member.pk):
            if blind_name(member, item) == name:
                return item
    return there.with_keys([name]).first()


def _unblinded_ids(member: Membership, items: list[Item]) -> set[int]:
    """The ids of the items that the member may see by their keys; qualification items are never
    blind."""
    if not member.project.blind_first:
        return {item.pk for item in items}
    labels = Label.objects.current().of_member(member.pk).at_stage(Stage.BLIND)
    practised = {item.pk for item in items if item.purpose == PRACTICE}
    return practised | set(labels.for_items(items).values_list("item", flat=True))
