"""What pages say of imports."""

from django import template

from annotation.importing import jobs
from annotation.models import Project

register = template.Library()


@register.simple_tag
def import_under_way(project: Project) -> str:
    """How far an import is that is under way; nothing if there is none."""
    return jobs.describe_progress(project)
