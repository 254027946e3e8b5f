"""Texts of items on the screens, in the way that the person likes to read them."""

from typing import Any

from django import template
from django.template import Context
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe

from annotation.items.diffing.difference import Difference
from annotation.items.rendering import sheet, texts
from annotation.items.rendering.sheet import Comparison, ItemSheet, Pane, ReadingPreferences
from annotation.tasktypes import TaskType

register = template.Library()


@register.simple_tag(takes_context=True)
def reading_of(
    context: Context, task: TaskType, texts: dict[str, Any], difference: Difference | None
) -> ItemSheet:
    """What is read of these texts; `difference` None where nothing is compared, or not yet."""
    return sheet.build_sheet(task, texts, difference or None, _habits(context))


@register.filter
def drawn(pane: Pane) -> SafeString:
    """The HTML of a pane."""
    return mark_safe(pane.html)  # noqa: S308 (rendering and drawing make safe HTML alone)


@register.simple_tag(takes_context=True)
def turned(context: Context, name: str, value: str) -> str:
    """The address of this page with another habit, for a page without a script."""
    asked = request.GET if (request := context.get("request")) else {}
    kept = {key: asked[key] for key in ("item", "revision") if key in asked}
    return "?" + urlencode({**kept, name: value})


@register.filter
def strip_of(comparison: Comparison) -> SafeString:
    """The shapes that show where in the text the changes are."""
    return mark_safe(comparison.strip)  # noqa: S308 (numbers and names of ours)


@register.simple_tag(takes_context=True)
def formatted(context: Context, text: str) -> SafeString:
    """A text in the format that the reader chose, or else the project."""
    safe = texts.render_text(text, _habits(context).format)
    return mark_safe(safe)  # noqa: S308 (rendering makes safe HTML alone)


@register.filter
def markdown(text: str) -> SafeString:
    """A text in Markdown, such as guidelines; hostile ones too."""
    return mark_safe(texts.render_text(text, "markdown"))  # noqa: S308 (as above)


def _habits(context: Context) -> ReadingPreferences:
    request, project = context.get("request"), context.get("project")
    asked, kept = (request.GET, request.COOKIES) if request else ({}, {})
    return ReadingPreferences.of(
        asked, kept, getattr(project, "slug", ""), getattr(project, "text_format", "")
    )
