"""What a list of items or labels can be narrowed to, on the page and in the API alike."""

from typing import Any

import django_filters as filters
from django import forms

from annotation import taxonomy
from annotation.models import Item, Label
from annotation.querysets import ItemQuerySet, LabelQuerySet

UNRESOLVED = "none"
FLAGS = [("identical", "Identical"), ("white-space-only", "White space only")]


def _categories() -> list[tuple[str, str]]:
    return [(category.slug, category.name) for category in taxonomy.load()]


def _abilities() -> list[tuple[str, str]]:
    return [(ability.slug, ability.name) for ability in taxonomy.load().abilities]


class ItemFilter(filters.FilterSet):
    """Items by category, ability, resolution ("none": unresolved), flag and part of the key."""

    category = filters.ChoiceFilter(choices=_categories, empty_label="Any", label="Category")
    ability = filters.ChoiceFilter(choices=_abilities, empty_label="Any", label="Ability")
    resolution = filters.CharFilter(method="resolved_as", label="Resolution", max_length=40)
    flag = filters.ChoiceFilter(choices=FLAGS, method="flagged", empty_label="Any", label="Flag")
    search = filters.CharFilter(method="search_key", label="Key holds", max_length=200)

    class Meta:
        model = Item
        fields: list[str] = []

    def resolved_as(self, items: ItemQuerySet, name: str, value: str) -> ItemQuerySet:
        return items.unresolved() if value == UNRESOLVED else items.resolved_as(value)

    def flagged(self, items: ItemQuerySet, name: str, value: str) -> ItemQuerySet:
        return items.flagged(value)

    def search_key(self, items: ItemQuerySet, name: str, value: str) -> ItemQuerySet:
        return items.with_key_like(value)


class ItemPageFilter(ItemFilter):
    """The same, with the project's choices to pick a resolution from."""

    def __init__(self, *args: Any, choices: list[tuple[str, str]], **values: Any) -> None:
        super().__init__(*args, **values)
        offered = [("", "Any"), (UNRESOLVED, "Unresolved"), *choices]
        self.form.fields["resolution"] = forms.ChoiceField(
            choices=offered, required=False, label="Resolution"
        )


class LabelFilter(filters.FilterSet):
    """Labels of one item, of one annotator, or only those that are in force."""

    item = filters.CharFilter(field_name="item__key", max_length=200)
    annotator = filters.CharFilter(field_name="member__alias", max_length=80)
    choice = filters.CharFilter(max_length=40)
    current = filters.BooleanFilter()
    counted = filters.BooleanFilter(method="counting")

    class Meta:
        model = Label
        fields: list[str] = []

    def counting(self, labels: LabelQuerySet, name: str, value: bool) -> LabelQuerySet:
        return labels.counted() if value else labels.not_counted()
