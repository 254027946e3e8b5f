"""How items can be grouped in reports: by a column that all items have, or by one of their own
fields."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F, TextField
from django.db.models.functions import Cast, Length

from annotation import tasktypes
from annotation.db.batches import packed_id_batches
from annotation.db.sql import ObjectKeyText
from annotation.items import taxonomy
from annotation.items.taxonomy import Taxonomy
from annotation.labelling.models.labels import SI_ITEM
from annotation.models import Item, Project

CATEGORY = "category"
GROUPING_COLUMNS = {
    CATEGORY: "Category",
    "ability": "Ability",
    "source_ability": "Source ability",
    "origin": "Origin",
}
TAXONOMY_COLUMNS = (CATEGORY, "ability")
# So many of the first and of the last items are enough to find the fields: all items of an import
# have the same fields, and generated items come last.
SAMPLE_ITEMS = 200
# Fields may have megabytes: few items are fetched at once, no more once those of either end have so
# many characters, and beginnings of texts are kept alone.
FETCHED_TOGETHER = 20
SAMPLE_LENGTH = 10_000_000
# A file may name its columns anew in each row, and a page would list them all.
MOST_NAMES = 1_000
MAX_GROUPS = 50
# A longer value is a sentence, not the name of a group.
MAX_LENGTH, MAX_WORDS = 80, 8
# What the program that made an item writes into its fields to trace it, besides its own name and
# the model. A prefix says whose they are, as in `gold_made_on`.
_TRACE = re.compile(r"(?:[a-z]+_)*(?:made_on|request|seed)|source_item|translated_from")
_MAKERS = ("generator", "perturber")


@dataclass(frozen=True)
class Grouping:
    """One way to group the items of a project; if the name is empty, all items form one group.
    `categories` are the project's; they matter for titles and order alone."""

    name: str
    title: str
    categories: Taxonomy = field(default_factory=taxonomy.load_shipped)

    @property
    def is_field(self) -> bool:
        """True if it is by one of the items' own fields."""
        return self.name not in GROUPING_COLUMNS

    def expression(self, prefix: str = "") -> Any:
        """Return the group of an item as SQL; `prefix` leads to the item, such as "item__" from a
        label."""
        if not self.is_field:
            return F(f"{prefix}{self.name}")
        return ObjectKeyText(self.name, f"{prefix}fields")

    def title_of(self, group: str) -> str:
        """Return the title of a group."""
        if not group:
            return "(none)"
        if self.is_field:
            return group
        names = self.categories.ability_names()
        if self.name == CATEGORY:
            names = self.categories.category_names()
        # In runs, items with this final label are a group of their own.
        return names.get(group) or {SI_ITEM: "Score-invariant"}.get(group, group)

    def place_of(self, group: str) -> tuple[int, str]:
        """Return the sort key of a group: categories and abilities in the order of the taxonomy,
        others by name."""
        known = self.categories
        order = [one.slug for one in known] if self.name == CATEGORY else []
        if self.name in ("ability", "source_ability"):
            order = [one.slug for one in known.abilities]
        return (order.index(group) if group in order else len(order), group)


def list_groupings(project: Project) -> list[Grouping]:
    """List the ways to group the project's items, the default first.

    Task types without categories have no taxonomy columns, so a field is first.
    """
    sample = _read_sample(project)
    known = taxonomy.load_taxonomy(project)
    fields = [
        Grouping(name, name.replace("_", " ").capitalize(), known)
        for name in _grouping_fields(sample)
    ]
    with_categories = tasktypes.load_task_type(project).categories
    shared = [
        Grouping(name, known.word_groups(title), known)
        for name, title in GROUPING_COLUMNS.items()
        if any(row[name] for row in sample)
        and (with_categories or name not in TAXONOMY_COLUMNS)
        and (name != "source_ability" or not with_categories or known.sorts != known.abilities)
    ]
    found = [*shared, *fields] if with_categories else [*fields, *shared]
    return found or [Grouping("origin", "Origin", known)]


def list_field_names(project: Project) -> list[str]:
    """List the names of the items' own fields, also of those that are not suited for grouping."""
    return sorted({name for row in _read_sample(project) for name in row["fields"]})


def _read_sample(project: Project) -> list[dict[str, Any]]:
    """Return the grouping columns and the shortened fields of the first and of the last items."""
    items = Item.objects.in_project(project)
    names, sample = set[str](), dict[int, dict[str, Any]]()
    for order in ("position", "-position"):
        length = 0
        for row in _read_rows(items, order, sample.keys()):
            sample[row["pk"]] = {**row, "fields": _take_fields(row["fields"], names)}
            length += row["length"]
            if length >= SAMPLE_LENGTH:
                break
    return list(sample.values())


def _read_rows(items: Any, order: str, known: Collection[int]) -> Iterator[dict[str, Any]]:
    """Read the grouping columns and the fields of the first items in this order, with the length of
    the fields, a few at once; those that are known are left out."""
    for ids in packed_id_batches(items.order_by(order)[:SAMPLE_ITEMS], "fields", SAMPLE_ITEMS):
        rows = items.filter(pk__in=[pk for pk in ids if pk not in known]).order_by(order)
        rows = rows.annotate(length=Length(Cast("fields", TextField())))
        rows = rows.values("pk", "fields", "length", *GROUPING_COLUMNS)
        yield from rows.iterator(FETCHED_TOGETHER)


def _grouping_fields(sample: list[dict[str, Any]]) -> list[str]:
    """Return the fields suited for grouping, by name; fields whose values are nearly unique are
    last. Fields with sentences and those that only trace how an item was generated are left out."""
    values: dict[str, set[str]] = defaultdict(set)
    unsuited = set[str]()
    for row in sample:
        # Looked up once, since a row may have thousands of fields.
        is_made = any(name.endswith(_MAKERS) for name in row["fields"])
        for name, value in row["fields"].items():
            # In items that no program made, such names may mean something else.
            if _is_sentence(value) or (is_made and _TRACE.fullmatch(name)):
                unsuited.add(name)
            elif isinstance(value, str | int | float):
                values[name].add(str(value))
    suited = values.keys() - unsuited
    return sorted(suited, key=lambda name: (len(values[name]) > MAX_GROUPS, name))


def _take_fields(fields: Mapping[str, Any], names: set[str]) -> dict[str, object]:
    """Return the fields with the beginnings of their values. Their names are added to `names`;
    where these are `MOST_NAMES`, fields of other names are left out."""
    taken = {}
    for name, value in fields.items():
        if name in names or len(names) < MOST_NAMES:
            names.add(name)
            taken[name] = _shorten(value)
    return taken


def _shorten(value: object) -> object:
    """Return the beginning of a text, which is too long to name a group if the text is. Lists and
    objects name none."""
    if isinstance(value, str):
        return value[: MAX_LENGTH + 1]
    return value if isinstance(value, int | float) else None


def _is_sentence(value: object) -> bool:
    """True for a text too long to name a group."""
    return isinstance(value, str) and (len(value) > MAX_LENGTH or len(value.split()) > MAX_WORDS)
