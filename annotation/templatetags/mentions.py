"""Who can be named in comments, and how many name a member that they have not read yet."""

from collections.abc import Iterable

from django import template

from annotation.labelling import comments as labelling_comments
from annotation.models import Comment, Membership

register = template.Library()


@register.simple_tag
def people_to_name(member: Membership, comments: Iterable[Comment]) -> list[str]:
    """Aliases that somebody who writes among these comments may want to name."""
    return labelling_comments.suggest_names(member, comments)


@register.filter
def unread_mentions(member: Membership | None) -> int:
    return labelling_comments.count_unread(member) if member else 0
