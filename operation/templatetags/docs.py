"""Words of the glossary on other pages."""

from functools import cache

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from operation.docs import pages

register = template.Library()
GLOSSARY = "glossary"


@register.simple_tag
def term(name: str, shown: str = "") -> SafeString:
    """Return a link to a word of docs/glossary.md, with its explanation on hover. `shown` is the
    form of the word in its sentence. Raises `KeyError` for a word that the glossary lacks."""
    section = _sections()[name.lower()]
    address = f"{reverse('docs-page', args=[GLOSSARY])}#{section.anchor}"
    return format_html(
        '<a class="term" href="{}" title="{}">{}</a>', address, section.text, shown or name
    )


@cache
def _sections() -> dict[str, pages.Section]:
    found = pages.list_sections(pages.pages_by_slug()[GLOSSARY])
    return {section.title.lower(): section for section in found}
