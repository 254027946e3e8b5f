"""Rows of the table `dataset`: by group, what they are of in words, and where their items are."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from annotation.reports.grouping import Grouping
from annotation.tasktypes import main_field
from judging.results import undetected
from judging.results.data_set import ANSWERS, CATEGORY, FIELDS, LABEL, WORDS
from judging.results.views import cells
from judging.results.views.cells import Row
from judging.results.views.grids import Cell, Column
from judging.results.views.page_parts import PageQuery, Rows

OPEN = "open"

# The rows of the items of one group, by what they are of and its value.
GroupValues = tuple[str, ...]
RowsOfGroup = dict[tuple[str, str | None], Row]


def title_kind(asked: PageQuery, column: str, value: str) -> str:
    """What shares are of, as one chooses it."""
    return kind_title(value) if column == "of" else ""


def group_rows(rows: Rows, by: Sequence[str]) -> dict[GroupValues, RowsOfGroup]:
    found: dict[GroupValues, RowsOfGroup] = {}
    for row in rows:
        of_group = found.setdefault(tuple(row[name] for name in by), {})
        of_group[row["of"], row["value"]] = row
    order = [Grouping(name, name) for name in by]
    return dict(
        sorted(
            found.items(),
            key=lambda one: [g.place_of(v) for g, v in zip(order, one[0], strict=True)],
        )
    )


def select_kind(rows: RowsOfGroup, of: str) -> list[Row]:
    return [row for (kind, _), row in rows.items() if kind == of]


def get_size(rows: RowsOfGroup) -> int:
    return int(next(iter(rows.values()))["n"])


def list_kinds(rows: Rows) -> list[str]:
    """What rows are of: fields of the items, then other answers, labels and categories."""
    order = (FIELDS, ANSWERS, LABEL, CATEGORY)
    kinds = {row["of"] for row in rows if row["of"] != WORDS}
    return sorted(kinds, key=lambda of: ([of.startswith(one) for one in order].index(True), of))


def list_values(rows: Iterable[Row], of: str) -> list[str | None]:
    """The values of a kind, the most frequent first; what is open comes last."""
    counts: dict[str | None, int] = {}
    for row in rows:
        if row["of"] == of:
            counts[row["value"]] = counts.get(row["value"], 0) + row["count"]
    return sorted(counts, key=lambda value: (value is None, -counts[value], value or ""))


@dataclass(frozen=True)
class GroupedItems:
    """The items of one view by some fields: its lines, and where their items are listed."""

    asked: PageQuery
    by: Sequence[str]

    @cached_property
    def labels(self) -> dict[str, str]:
        """The answers to the deciding question, in words."""
        return dict(main_field.load_main_field(self.asked.project).options)

    def columns(self) -> list[Column]:
        """What stands before the figures; of no field nothing."""
        titles = self.asked.groups
        return [Column(titles.get(name, name), name, is_number=False) for name in self.by]

    def heads(self, group: GroupValues) -> list[Cell]:
        named = zip(self.by, group, strict=True)
        return [
            cells.text_cell(Grouping(name, name).title_of(value), value) for name, value in named
        ]

    def column(self, of: str, value: str | None) -> Column:
        """Of one value, below which a field is named."""
        note = "" if of == LABEL else kind_title(of)
        return Column(value_title(of, value, self.labels), f"{of}-{value}", note)

    def count(self, group: GroupValues, rows: RowsOfGroup) -> Cell:
        """All items of a group."""
        return cells.count_cell(get_size(rows), self.items(group))

    def count_of(self, group: GroupValues, row: Row) -> Cell:
        """Those of a group that have the value of a row."""
        return cells.count_cell(row["count"], self.items(group, row["of"], row["value"]))

    def share_of(self, group: GroupValues, rows: RowsOfGroup, of: str, value: str | None) -> Cell:
        """The same with their share; nought where none has the value."""
        row = rows.get((of, value))
        return cells.share_cell(
            row["count"] if row else 0, get_size(rows), self.items(group, of, value)
        )

    def items(self, group: GroupValues, of: str = "", value: str | None = "") -> str:
        """Where these items are listed; "" where no list holds just them, such as those that lack
        what others have."""
        said = {name: one for name, one in zip(self.by, group, strict=True) if one}
        if of == CATEGORY:
            said[CATEGORY] = value or ""
        if of.startswith(FIELDS):
            said[of.removeprefix(FIELDS)] = value or ""
        if len(said) < len(group):
            return ""
        query = {"items": "tests"}
        if of.startswith(ANSWERS):
            query["answers"] = json.dumps({of.removeprefix(ANSWERS): value}, ensure_ascii=False)
        if said:
            query["fields"] = json.dumps(said, ensure_ascii=False)
        if of == LABEL:
            query["resolution"] = value or "none"
        return f"{reverse('items', args=[self.asked.project.slug])}?{urlencode(query)}"


def kind_title(of: str) -> str:
    name = of.removeprefix(FIELDS).removeprefix(ANSWERS)
    return name.replace("_", " ").capitalize()


def field_value_title(of: str, value: str | None) -> str:
    return Grouping(of, of).title_of(value or "")


def label_title(value: str | None, labels: Mapping[str, str]) -> str:
    return OPEN if value is None else labels.get(value, value)


def value_title(of: str, value: str | None, labels: Mapping[str, str]) -> str:
    return label_title(value, labels) if of == LABEL else field_value_title(of, value)


def category_order(row: Row) -> Any:
    """Where a category stands: as the taxonomy has it."""
    return undetected.taxonomy_order({"category": row["value"]}), row["value"]
