"""By what items can be grouped in reports: a column that all have, or a field of their own."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from django.db.models import F
from django.db.models.fields.json import KeyTextTransform

from annotation import tasktypes
from annotation.items import taxonomy
from annotation.models import Item, Project

CATEGORY = "category"
GROUPING_COLUMNS = {
    CATEGORY: "Category",
    "ability": "Ability",
    "source_ability": "Source ability",
    "origin": "Origin",
}
TAXONOMY_COLUMNS = (CATEGORY, "ability")
# So many items tell which fields items have: their import gave all of them the same.
SAMPLE_ITEMS = 200
MAX_GROUPS = 50


@dataclass(frozen=True)
class Grouping:
    """One way to group a project's items; without a name all are one group."""

    name: str
    title: str

    def of(self, prefix: str = "") -> Any:
        """The group of an item, in SQL; `prefix` leads to the item, "item__" from a label."""
        if self.name in GROUPING_COLUMNS:
            return F(f"{prefix}{self.name}")
        return KeyTextTransform(self.name, f"{prefix}fields")

    def title_of(self, group: str) -> str:
        """A group in words."""
        if not group:
            return "(none)"
        if self.name == CATEGORY:
            found = taxonomy.load().find(group)
            return found.name if found else group
        if self.name in GROUPING_COLUMNS:
            names = {ability.slug: ability.name for ability in taxonomy.load().abilities}
            return names.get(group, group)
        return group

    def place_of(self, group: str) -> tuple[int, str]:
        """Sort key: categories and abilities as the taxonomy has them, the rest by name."""
        known = taxonomy.load()
        order = [one.slug for one in known] if self.name == CATEGORY else []
        if self.name in ("ability", "source_ability"):
            order = [one.slug for one in known.abilities]
        return (order.index(group) if group in order else len(order), group)


def list_groupings(project: Project) -> list[Grouping]:
    """What the project's items can be grouped by, the usual one first.

    Items of task types without categories have none, so that what comes first is a field.
    """
    sample = list(
        Item.objects.in_project(project).values("fields", *GROUPING_COLUMNS)[:SAMPLE_ITEMS]
    )
    fields = [
        Grouping(name, name.replace("_", " ").capitalize()) for name in _grouping_fields(sample)
    ]
    with_categories = tasktypes.load_task_type(project).categories
    shared = [
        Grouping(name, title)
        for name, title in GROUPING_COLUMNS.items()
        if any(row[name] for row in sample) and (with_categories or name not in TAXONOMY_COLUMNS)
    ]
    found = [*shared, *fields] if with_categories else [*fields, *shared]
    return found or [Grouping("origin", "Origin")]


def _grouping_fields(sample: list[dict[str, Any]]) -> list[str]:
    """Fields that can name a group, by name; last those that nearly every item has of its own."""
    values: dict[str, set[str]] = defaultdict(set)
    for row in sample:
        for name, value in row["fields"].items():
            if _can_name_group(value):
                values[name].add(str(value))
    return sorted(values, key=lambda name: (len(values[name]) > MAX_GROUPS, name))


def _can_name_group(value: object) -> bool:
    """Whether a field can name a group: a word or a number, not a text or a list."""
    return isinstance(value, str | int | float) and len(str(value)) <= 80
