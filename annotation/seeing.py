"""Who has seen what others say of an item (design 3, rule 6): noted, so that labels can tell."""

from datetime import datetime

from annotation import writing
from annotation.models import Item, Label, Mark, Membership, Resolution, Stage

# The stages at which a member gives a label of their own, whatever the item is there for.
OWN = (Stage.WORK, Stage.PROBE, Stage.BASELINE, Stage.PRACTICE)


def note(member: Membership, item: Item, *, now: datetime) -> None:
    """Note that the member sees now what others say of the item, if anybody says anything.

    A label that the member gives from now on is an informed one. Noted once an item; a site admin
    without a place in the project can give no label, so nothing is noted.
    """
    if member.pk is None or Mark.objects.of(member.pk, Mark.Kind.SEEN).on(item).exists():
        return
    if not _said(member, item):
        return
    with writing.transact():
        Mark.objects.get_or_create(
            member=member,
            item=item,
            kind=Mark.Kind.SEEN,
            ended_at=None,
            defaults={"created_at": now},
        )


def has_labelled(member: Membership, item: Item) -> bool:
    """Whether a label of the member's own is in force, so that they may see what others say."""
    labels = Label.objects.current().of_item(item).at_stages(OWN)
    return member.pk is not None and labels.of_member(member.pk).exists()


def may_see(member: Membership, item: Item) -> bool:
    """Whether the member may see what others say of the item."""
    return member.can_see_items or has_labelled(member, item)


def _said(member: Membership, item: Item) -> bool:
    others = Label.objects.of_item(item).of_others_than(member.pk)
    comments = item.comments.of_others_than(member.pk)
    resolutions = Resolution.objects.of_item(item)
    return others.exists() or resolutions.exists() or comments.exists()
