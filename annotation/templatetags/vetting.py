"""Labels in the words that people saw when they gave them."""

from collections.abc import Mapping
from typing import Any

from django import template

from annotation.models import Item, Label
from annotation.tasktypes import TaskType

register = template.Library()


@register.filter
def choice_title(label: Label, task: TaskType) -> str:
    """A label's choice in a word or two."""
    return task.title_of(label.choice) or "no choice"


@register.filter
def held_title(value: str | None, task: TaskType) -> str:
    """What is held true of an item in a word or two; nothing if nothing is."""
    return task.title_of(value) if value else ""


@register.filter
def first_look(label: Label, task: TaskType) -> list[tuple[str, str]]:
    """What somebody said of an item before they saw what was changed, by the titles of fields.

    Answers to fields that the task type no longer has keep their names.
    """
    asked = {field.name: field for field in (task.blind.fields if task.blind else ())}
    given = label.answers
    known = [(asked[name].title, asked[name].shown(given[name])) for name in asked if name in given]
    return known + [(name, str(given[name])) for name in given if name not in asked]


@register.filter
def called(item: Item, names: Mapping[int, str]) -> str:
    """What this page calls an item, where its key would tell too much."""
    return names.get(item.pk, item.key)


@register.simple_tag
def side_texts(task: TaskType, texts: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """The texts that stand beside the item, each as its title and one or more texts."""
    given = [(text.title, texts.get(text.name)) for text in task.texts if text.place == "side"]
    return [(title, one if isinstance(one, list) else [one]) for title, one in given if one]
