"""Names of categories and abilities for the screens."""

from django import template

from annotation.items import taxonomy

register = template.Library()


@register.filter
def category_name(slug: str) -> str:
    """The name of a category; an unknown one is shown by its slug, and none is said."""
    if not slug:
        return "No category"
    try:
        return taxonomy.load().category(slug).name
    except taxonomy.UnknownSlugError:
        return slug


@register.filter
def ability_name(slug: str) -> str:
    """The name of an ability; an unknown one is shown by its slug, and none is said."""
    if not slug:
        return "No ability"
    try:
        return taxonomy.load().ability(slug).name
    except taxonomy.UnknownSlugError:
        return slug
