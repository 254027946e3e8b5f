"""Figures as people read them, and what evaluators said of an item."""

from typing import Any

from django import template

from annotation.models import Item
from judging.models import Outcome
from judging.querysets import OutcomeQuerySet

register = template.Library()

DASH = "—"
# How much of the results is rounded away must never make a part look like the whole.
LEAST = 0.0005


@register.filter
def percent(value: float | None) -> str:
    """A fraction of 1 as percent with one digit; a dash where there is none.

    0.0 % and 100.0 % are said of exactly none and exactly all.
    """
    if value is None:
        return DASH
    if 0 < value < LEAST:
        return "< 0.1 %"
    if 1 - LEAST < value < 1:
        return "> 99.9 %"
    return f"{100 * value:.1f} %"


@register.filter
def count(value: int) -> str:
    """A number of things, in groups of three digits."""
    return f"{value:,}"


@register.simple_tag
def outcomes_of(item: Item) -> OutcomeQuerySet:
    """What every run says of an item, newest run first."""
    return Outcome.objects.of_item(item)


@register.filter
def said(outcome: Outcome) -> str:
    """An outcome's result in words; on a score-invariant item a detection is a false alarm."""
    words = {
        ("detected", True): "false alarm",
        ("undetected", True): "left unmoved",
    }
    return words.get((outcome.result, outcome.invariant), outcome.result)


@register.filter
def pretty(value: Any) -> str:
    """A value of an outcome or a reading on one line, None as a dash."""
    if value is None:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")
