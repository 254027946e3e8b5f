"""The progress of imports on pages."""

from django import template

from annotation.importing import jobs
from annotation.models import Project

register = template.Library()


@register.simple_tag
def import_under_way(project: Project) -> str:
    """The progress of a running import in words; "" if there is none."""
    return jobs.describe_progress(project)
