"""Labels in the words that people saw when they gave them."""

from collections.abc import Mapping
from typing import Any

from django import template

from annotation.models import Label
from annotation.tasktypes import TaskType

register = template.Library()


@register.filter
def choice_title(label: Label, task: TaskType) -> str:
    """A label's choice in a word or two."""
    return task.title_of(label.choice) or "no choice"


@register.filter
def first_look(label: Label, task: TaskType) -> str:
    """What somebody said of an item before they saw what was changed."""
    asked = task.blind.fields if task.blind else ()
    given = label.answers
    said = [field.shown(given[field.name]) for field in asked if field.name in given]
    return "; ".join(said) or label.choice


@register.simple_tag
def side_texts(task: TaskType, texts: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """The texts that stand beside the item, each as its title and one or more texts."""
    given = [(text.title, texts.get(text.name)) for text in task.texts if text.place == "side"]
    return [(title, one if isinstance(one, list) else [one]) for title, one in given if one]
