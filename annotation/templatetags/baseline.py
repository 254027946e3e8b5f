"""Shares as people read them."""

from django import template

register = template.Library()


@register.filter
def share(value: float | None) -> str:
    """A fraction of 1 in percent; a dash if there is none."""
    return "–" if value is None else f"{100 * value:.0f} %"
