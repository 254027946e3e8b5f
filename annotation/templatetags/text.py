"""Tags that show texts of items in the view and format that the reader prefers."""

from functools import lru_cache
from typing import Any

from django import template
from django.template import Context
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe

from annotation.items.diffing.difference import Difference
from annotation.items.rendering import sheet, texts
from annotation.items.rendering.sheet import (
    Comparison,
    ItemSheet,
    Pane,
    ReadingPreferences,
    TextSheet,
)
from annotation.models import Item
from annotation.tasktypes import TaskType

register = template.Library()


@register.simple_tag(takes_context=True)
def reading_of(
    context: Context, task: TaskType, texts: dict[str, Any], difference: Difference | None
) -> ItemSheet:
    """Build the sheet of these texts; `difference` is None if no texts are compared, or not yet
    compared."""
    return sheet.build_sheet(task, texts, difference or None, _habits(context))


@register.filter
def drawn(pane: Pane) -> SafeString:
    """The HTML of a pane, marked as safe."""
    return mark_safe(pane.html)  # noqa: S308 (rendering and drawing make safe HTML alone)


@register.filter
def places_in(sheet: Comparison, name: str) -> str:
    """Where each change begins in the text of this name, as "3:120 9:450"; "" for another text."""
    return " ".join(f"{number}:{at}" for number, at in sheet.places.get(name, {}).items())


@register.simple_tag(takes_context=True)
def turned(context: Context, name: str, value: str) -> str:
    """The query string of this page with another view or format, for pages without JavaScript."""
    asked = request.GET if (request := context.get("request")) else {}
    kept = {key: asked[key] for key in ("item", "revision") if key in asked}
    return "?" + urlencode({**kept, name: value})


@register.filter
def strip_of(comparison: Comparison) -> SafeString:
    """The SVG shapes that show where in the text the changes are."""
    return mark_safe(comparison.strip)  # noqa: S308 (numbers and names of ours)


@register.simple_tag(takes_context=True)
def side_texts(context: Context, task: TaskType, texts: dict[str, Any]) -> list[TextSheet]:
    """The texts that stand next to the item, in the reader's format."""
    return sheet.build_side_sheets(task, texts, _habits(context))


@register.simple_tag(takes_context=True)
def original_texts(context: Context, task: TaskType, item: Item) -> list[TextSheet]:
    """The texts from which an item was translated, in the reader's format."""
    return sheet.build_original_sheets(task, item.fields, _habits(context))


@register.filter
def markdown(text: str) -> SafeString:
    """Convert a Markdown text, such as guidelines, to HTML that is safe even if the text is
    hostile."""
    return mark_safe(_render_markdown(text))  # noqa: S308 (as above)


# Guidelines are shown often and may be long: 200,000 characters take up to four seconds.
@lru_cache(maxsize=32)
def _render_markdown(text: str) -> str:
    return texts.render_text(text, "markdown")


def _habits(context: Context) -> ReadingPreferences:
    request, project = context.get("request"), context.get("project")
    asked, kept = (request.GET, request.COOKIES) if request else ({}, {})
    return ReadingPreferences.from_request(
        asked, kept, getattr(project, "slug", ""), getattr(project, "text_format", "")
    )
