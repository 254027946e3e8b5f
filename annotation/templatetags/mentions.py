"""How many comments name a member that they have not read yet."""

from django import template

from annotation import commenting
from annotation.models import Membership

register = template.Library()


@register.filter
def unread_mentions(member: Membership | None) -> int:
    return commenting.unread(member) if member else 0
