"""Names of categories and abilities on pages."""

from collections.abc import Iterable

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from annotation.items import taxonomy
from annotation.models import Project
from annotation.reports.grouping import Grouping

register = template.Library()


@register.filter
def category_name(slug: str, project: Project) -> str:
    """The name of a category in the project; the slug of an unknown category; "No category" for
    ""."""
    found = taxonomy.load_taxonomy(project).find(slug)
    return found.name if found else slug or "No category"


@register.filter
def word_groups(text: str, project: Project) -> str:
    """One of our texts with the project's word for a group of categories, where it says ability."""
    return taxonomy.load_taxonomy(project).word_groups(text)


@register.filter
def ability_name(slug: str, project: Project) -> str:
    """The name of an ability in the project, or of the group that runs make of score-invariant
    items; the slug of an unknown ability; "No ability" for "", in the project's word."""
    known = taxonomy.load_taxonomy(project)
    return (
        Grouping("ability", "", known).title_of(slug) if slug else known.word_groups("No ability")
    )


@register.filter
def ability_names(slugs: Iterable[str], project: Project) -> str:
    """The names of those abilities that the project has, with commas."""
    known = taxonomy.load_taxonomy(project).ability_names()
    return ", ".join(known[slug] for slug in slugs if slug in known)


@register.filter
def ability_mark(slug: str, project: Project) -> SafeString | str:
    """A mark in the colour of an ability; "" if it has no colour."""
    known = taxonomy.load_taxonomy(project)
    colour = next((one.colour for one in known.abilities if one.slug == slug), 0)
    mark = '<span class="group-mark" data-colour="{}"></span>'
    return format_html(mark, colour) if colour else ""


@register.filter
def category_mark(slug: str, project: Project) -> SafeString | str:
    """A mark in the colour of the ability of a category; "" if it has no colour."""
    found = taxonomy.load_taxonomy(project).find(slug)
    return ability_mark(found.ability, project) if found else ""
