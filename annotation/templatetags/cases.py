"""Why an item waits for a decision, and why people had disagreed, in words."""

from django import template

from annotation.labelling.cases import DISAGREEMENT_REASONS
from annotation.models import Reason

register = template.Library()


@register.filter
def reason_title(reason: str) -> str:
    """Why an item waits; an unknown reason is shown as it is."""
    return str(Reason(reason).label) if reason in Reason.values else reason


@register.filter
def why_title(code: str) -> str:
    """A reason code in words."""
    return DISAGREEMENT_REASONS.get(code, code)
