"""Names of categories and abilities on pages."""

from django import template

from annotation.items import taxonomy
from annotation.models import Project

register = template.Library()


@register.filter
def category_name(slug: str, project: Project) -> str:
    """The name of a category in the project; the slug of an unknown category; "No category" for
    ""."""
    found = taxonomy.load_taxonomy(project).find(slug)
    return found.name if found else slug or "No category"


@register.filter
def ability_name(slug: str, project: Project) -> str:
    """The name of an ability in the project; the slug of an unknown ability; "No ability" for
    ""."""
    return taxonomy.load_taxonomy(project).ability_names().get(slug, slug) or "No ability"
