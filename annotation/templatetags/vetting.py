"""Labels and final labels in the words of the label screen."""

from collections.abc import Mapping

from django import template

from annotation.models import Item, Label
from annotation.tasktypes import TaskType

register = template.Library()


@register.filter
def choice_title(label: Label, task: TaskType) -> str:
    """The title of a label's choice, as the page said it on which the label was given; "no choice"
    without one."""
    return task.in_order(label.first_shown).title_of(label.choice) or "no choice"


@register.filter
def held_title(value: str | None, task: TaskType) -> str:
    """The title of a final label; "" if there is none."""
    return task.title_of(value) if value else ""


@register.filter
def first_look(label: Label, task: TaskType) -> list[tuple[str, str]]:
    """The answers of a label in the blind view, as (title of the field, answer).

    For fields that the task type no longer has, the name replaces the title.
    """
    asked = {field.name: field for field in (task.blind.fields if task.blind else ())}
    given = label.answers
    known = [
        (asked[name].title, asked[name].describe(given[name])) for name in asked if name in given
    ]
    return known + [(name, str(given[name])) for name in given if name not in asked]


@register.filter
def passages(label: Label, task: TaskType) -> list[tuple[str, str]]:
    """The passages that a label marks, as (title of the field, quotes)."""
    asked = (task.field(name) for name in label.answers)
    marked = [field for field in asked if field and field.marks_texts]
    return [(field.title, field.describe(label.answers[field.name])) for field in marked]


@register.filter
def called(item: Item, names: Mapping[int, str]) -> str:
    """The name of an item on this page; it replaces a key that could reveal too much."""
    return names.get(item.pk, item.key)
