"""The name that an item has on the pages of a member who labels it blind.

Keys often reveal the category ("number-errors-12"). So the first look shows a name that reveals
nothing: it is specific to the member and the item, and never changes. Until that look the item does
not answer to its key either: keys follow a pattern, and whoever tries them out would find it.
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


def matches_name(name: str, member: Membership, item: Item, *, blind: bool) -> bool:
    """True if the name is the item's blind name for the member or, unless the page asked for the
    first look, its key."""
    return name == blind_name(member, item) or (name == item.key and not blind)


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
    is no such item, or if the member must not know its key yet."""
    there = Item.objects.in_project(member.project)
    if name.startswith(PREFIX):
        for item in there.on_the_desk_of(member.pk):
            if blind_name(member, item) == name:
                return item
    named = there.with_keys([name]).first()
    return None if named and _hides_key(member, named) else named


def _hides_key(member: Membership, item: Item) -> bool:
    """True if the member must label the item blind and has not met its key elsewhere: in the list
    of items, or at a label from before the project asked for a first look."""
    if member.can_see_items or not is_blind(member, item):
        return False
    return not Label.objects.of_member(member.pk).of_item(item).exists()


def _unblinded_ids(member: Membership, items: list[Item]) -> set[int]:
    """The ids of the items that the member may see by their keys; qualification items are never
    blind."""
    if not member.project.blind_first:
        return {item.pk for item in items}
    labels = Label.objects.current().of_member(member.pk).at_stage(Stage.BLIND)
    practised = {item.pk for item in items if item.purpose == PRACTICE}
    return practised | set(labels.for_items(items).values_list("item", flat=True))
