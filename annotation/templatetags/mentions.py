"""Mentions in comments: suggested names, and the number of a member's unread mentions."""

from collections.abc import Iterable

from django import template

from annotation.labelling import comments as labelling_comments
from annotation.models import Comment, Label, Membership

register = template.Library()


@register.simple_tag
def people_to_name(member: Membership, comments: Iterable[Comment | Label]) -> list[str]:
    """The aliases that a member who comments here may want to mention."""
    return labelling_comments.suggest_names(member, comments)


@register.filter
def unread_mentions(member: Membership | None) -> int:
    """The number of a member's unread mentions, in one query; 0 without a member."""
    return Comment.objects.unread_by(member).count() if member else 0
