"""Who has seen what others say of an item (design 3, rule 6): noted, so that labels can tell."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from annotation.db import transactions
from annotation.models import Item, Label, Mark, Membership, Resolution, Stage

# The stages at which a member gives a label of their own, whatever the item is there for.
OWN_LABEL_STAGES = (Stage.LABEL, Stage.CONTROL, Stage.BASELINE, Stage.QUALIFICATION)
# What a list of items can be narrowed to that people said.
PEOPLE_FILTERS = ("annotator", "choice", "longer_than", "agreement")
# Small enough that a batch commits well within 200 ms, so that people can label meanwhile.
BATCH = 200


def record_seen(member: Membership, item: Item, *, now: datetime) -> None:
    """Note that the member sees now what others say of the item, if anybody says anything.

    A label that the member gives from now on is an informed one. Noted once an item; a site admin
    without a place in the project can give no label, so nothing is noted.
    """
    if (
        member.pk is None
        or Mark.objects.of_member(member.pk, Mark.Kind.SEEN).of_item(item).exists()
    ):
        return
    if not _have_others_said(member, item):
        return
    with transactions.transact():
        Mark.objects.get_or_create(
            member=member,
            item=item,
            kind=Mark.Kind.SEEN,
            ended_at=None,
            defaults={"created_at": now},
        )


def record_all_seen(member: Membership, items: Iterable[int], *, now: datetime) -> None:
    """The same of the items with these ids, of each of which others have said what is shown.

    So a list costs one statement, and a few more the first time that its items are on it.
    """
    if member.pk is None:
        return
    shown = set(items)
    known = Mark.objects.of_member(member.pk, Mark.Kind.SEEN).of_items(shown)
    fresh = iter(sorted(shown.difference(known.values_list("item", flat=True))))
    while batch := list(islice(fresh, BATCH)):
        marks = [
            Mark(member=member, item_id=item, kind=Mark.Kind.SEEN, created_at=now) for item in batch
        ]
        with transactions.transact():
            Mark.objects.bulk_create(marks, ignore_conflicts=True)


def record_list_seen(
    member: Membership, items: Iterable[Any], *, asked: Mapping[str, Any], now: datetime
) -> None:
    """The same of items that are shown `with_resolution`: of those that have one.

    `asked` is what the list was narrowed to: of all of them, if that is what people said.
    """
    told = any(asked.get(name) for name in PEOPLE_FILTERS)
    record_all_seen(member, [i.pk for i in items if told or i.resolution is not None], now=now)


def has_labelled(member: Membership, item: Item) -> bool:
    """Whether a label of the member's own is in force, so that they may see what others say."""
    labels = Label.objects.current().of_item(item).at_stages(OWN_LABEL_STAGES)
    return member.pk is not None and labels.of_member(member.pk).exists()


def may_see(member: Membership, item: Item) -> bool:
    """Whether the member may see what others say of the item."""
    return member.can_see_items or has_labelled(member, item)


def _have_others_said(member: Membership, item: Item) -> bool:
    others = Label.objects.of_item(item).of_others_than(member.pk)
    comments = item.comments.of_others_than(member.pk)
    resolutions = Resolution.objects.of_item(item)
    return others.exists() or resolutions.exists() or comments.exists()
