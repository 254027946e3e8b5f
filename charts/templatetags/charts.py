"""`{% chart "name" spec "What it shows" %}` draws a chart; the page must load the chart scripts."""

from typing import Any

from django import template

register = template.Library()


@register.inclusion_tag("components/_chart.html")
def chart(name: str, spec: dict[str, Any], caption: str) -> dict[str, Any]:
    """A figure with a caption. `name` is its id, unique on the page."""
    return {"name": name, "spec": spec, "caption": caption}
