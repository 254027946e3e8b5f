"""Titles of the reasons why an item waits for a decision and why annotators disagreed."""

from django import template

from annotation.labelling.cases import DISAGREEMENT_REASONS
from annotation.models import Reason

register = template.Library()


@register.filter
def reason_title(reason: str) -> str:
    """The title of a reason why an item waits; an unknown reason is shown as it is."""
    return str(Reason(reason).label) if reason in Reason.values else reason


@register.filter
def why_title(code: str) -> str:
    """The title of a reason for a disagreement; an unknown code is shown as it is."""
    return DISAGREEMENT_REASONS.get(code, code)
