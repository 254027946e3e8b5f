"""Names of categories and abilities on pages."""

from django import template

from annotation.items import taxonomy

register = template.Library()


@register.filter
def category_name(slug: str) -> str:
    """The name of a category; the slug of an unknown category; "No category" for ""."""
    if not slug:
        return "No category"
    try:
        return taxonomy.load().category(slug).name
    except taxonomy.UnknownSlugError:
        return slug


@register.filter
def ability_name(slug: str) -> str:
    """The name of an ability; the slug of an unknown ability; "No ability" for ""."""
    if not slug:
        return "No ability"
    try:
        return taxonomy.load().ability(slug).name
    except taxonomy.UnknownSlugError:
        return slug
