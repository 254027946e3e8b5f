"""The person's keys, for templates that get the name of an action from a variable."""

from collections.abc import Mapping

from django import template

register = template.Library()


@register.filter
def pressed(hotkeys: Mapping[str, str], slug: str) -> str:
    """The key of an action."""
    return hotkeys[slug]


@register.filter
def pressed_option(hotkeys: Mapping[str, str], key: str) -> str:
    """The member's key for an option that has this key in the task type; keys that are signs cannot
    be changed."""
    return hotkeys.get(f"option-{key}", key)
