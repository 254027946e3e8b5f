"""Record who has seen others' labels of an item, so that later labels are marked as informed."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from django.core.exceptions import PermissionDenied

from annotation.db import transactions
from annotation.items.models import ItemQuerySet
from annotation.models import Item, Label, Mark, Membership, Resolution, Stage

# The stages at which members give labels of their own, whatever the item's purpose.
OWN_LABEL_STAGES = (Stage.LABEL, Stage.CONTROL, Stage.BASELINE, Stage.QUALIFICATION)
# The filters of an item list that depend on people's labels.
PEOPLE_FILTERS = ("annotator", "choice", "longer_than", "wrote", "agreement")
# The filters that tell something about the items which a list leaves out.
TELLING_FILTERS = (*PEOPLE_FILTERS, "resolution")
# A list of so few items also tells something about an item that it leaves out.
MOST_LEFT_OUT = 200
# The filters that depend on the items' own fields, which may hold the correct answer.
FIELD_FILTERS = ("fields", "pairwise")
# Small enough for a batch to commit well within 200 ms, so that people can label meanwhile.
BATCH = 200


def record_seen(member: Membership, item: Item, *, now: datetime) -> None:
    """Record that the member sees others' labels, comments or the resolution of the item, if there
    are any.

    The member's later labels of the item count as informed. This is recorded once per item, and not
    for a site admin without a membership, who cannot label.
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
    """Like `record_seen` for the items with these ids; every item must have labels by others.

    Takes one statement for a list, and a few more when its items are shown for the first time.
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
    """Like `record_seen` for a list of items loaded `with_resolution`; records those with a
    resolution.

    `asked` has the filters of the list. If the list is filtered by one of `PEOPLE_FILTERS`, all its
    items are recorded.
    """
    told = any(asked.get(name) for name in PEOPLE_FILTERS)
    record_all_seen(member, [i.pk for i in items if told or i.resolution is not None], now=now)


def record_left_out(
    member: Membership,
    others: Callable[[], ItemQuerySet],
    *,
    asked: Mapping[str, Any],
    now: datetime,
) -> None:
    """Like `record_seen` for the items that a list leaves out because of one of `TELLING_FILTERS`.

    An item that is missing in the list of one choice has another. `others` returns the items that
    match the other filters; of more than `MOST_LEFT_OUT`, none is recorded. A list of final labels
    tells of those items only that have one.
    """
    if member.pk is None or not any(asked.get(name) for name in TELLING_FILTERS):
        return
    ids = list(others().order_by().values_list("pk", flat=True)[: MOST_LEFT_OUT + 1])
    if len(ids) <= MOST_LEFT_OUT:
        said: Any = Resolution.objects.current().filter(item__in=ids)
        if any(asked.get(name) for name in PEOPLE_FILTERS):
            said = Label.objects.filter(item__in=ids).of_others_than(member.pk)
        record_all_seen(member, said.values_list("item", flat=True), now=now)


def record_named(member: Membership, asked: Mapping[str, Any], *, now: datetime) -> None:
    """Like `record_seen` for the item whose key a list of labels or resolutions is filtered by. A
    list without rows tells as much about it: that nobody chose the answer asked for."""
    keys = [asked["item"]] if asked.get("item") else []
    for item in Item.objects.in_project(member.project).with_keys(keys):
        record_seen(member, item, now=now)


def check_filters(member: Membership, asked: Mapping[str, Any]) -> None:
    """Raise `PermissionDenied` if a list of items is filtered by what the member may not see: the
    items' own fields, without the right to see results."""
    if not member.can_see_results and any(asked.get(name) for name in FIELD_FILTERS):
        raise PermissionDenied(
            f"Your role in this project ({member.role}) does not show the fields of items."
        )


def has_labelled(member: Membership, item: Item) -> bool:
    """True if the member has a current label of the item, and so may see others' labels."""
    labels = Label.objects.current().of_item(item).at_stages(OWN_LABEL_STAGES)
    return member.pk is not None and labels.of_member(member.pk).exists()


def may_see(member: Membership, item: Item) -> bool:
    """True if the member may see others' labels of the item and the comments on it."""
    return member.can_see_items or has_labelled(member, item)


def _have_others_said(member: Membership, item: Item) -> bool:
    others = Label.objects.of_item(item).of_others_than(member.pk)
    comments = item.comments.of_others_than(member.pk)
    resolutions = Resolution.objects.of_item(item)
    return others.exists() or resolutions.exists() or comments.exists()
