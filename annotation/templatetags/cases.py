"""Why an item waits for a decision, and why people had disagreed, in words."""

from django import template

from annotation.labelling.cases import DISAGREEMENT_REASONS
from annotation.models import Reason

register = template.Library()

# Apart from the labels of the choices, which a migration would have to follow.
_REASON_TITLES = {
    Reason.SHARE: "Double-annotated sample",
    Reason.DISPUTED: "Annotators disagree",
    Reason.NAMED: "Reserved for a member",
    Reason.EXPERT: "Needs an expert",
    Reason.GOLD_ERROR: "The gold answer looks wrong",
    Reason.CONTESTED: "The label is contested",
    Reason.REQUESTED: "Requested by a lead",
}


@register.filter
def reason_title(reason: str) -> str:
    """Why an item waits; an unknown reason is shown as it is."""
    return _REASON_TITLES[Reason(reason)] if reason in Reason.values else reason


@register.filter
def why_title(code: str) -> str:
    """A reason code in words."""
    return DISAGREEMENT_REASONS.get(code, code)
