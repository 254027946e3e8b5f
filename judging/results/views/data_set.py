"""Data set: labels, categories, words, and shares of any field (study 000, table 1; study 001,
tables 2 and 3, figures 4 and 8).

Shows the rows of the table `dataset` by group, with titles and links to their items.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from annotation.reports.grouping import Grouping
from annotation.tasktypes import main_field
from annotation.templatetags import figures as written
from judging.results import undetected
from judging.results.data_set import ANSWERS, CATEGORY, FIELDS, LABEL, WORDS
from judging.results.views import cells, group_fields, stacked_charts
from judging.results.views.cells import Cell, Column, Grid, GridLine, LineBlock, Row
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    TableQuery,
    ViewContent,
    study_figures,
)

OPEN = "open"

# The rows of a group's items, by kind and value.
GroupValues = tuple[str, ...]
RowsOfGroup = dict[tuple[str, str | None], Row]


def title_kind(asked: PageQuery, column: str, value: str) -> str:
    """The title of a kind of shares."""
    return kind_title(value) if column == "of" else ""


def group_rows(rows: Rows, by: Sequence[str]) -> dict[GroupValues, RowsOfGroup]:
    """The rows by group, then by kind and value; groups are in the order of their fields'
    values."""
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
    """The rows of a group for one kind, such as one field."""
    return [row for (kind, _), row in rows.items() if kind == of]


def get_size(rows: RowsOfGroup) -> int:
    """The number of items of a group. Every row of the group has this number, so pass at least one
    row."""
    return int(next(iter(rows.values()))["n"])


def list_kinds(rows: Rows) -> list[str]:
    """The kinds of rows: fields of the items, then other answers, labels and categories."""
    order = (FIELDS, ANSWERS, LABEL, CATEGORY)
    kinds = {row["of"] for row in rows if row["of"] != WORDS}
    return sorted(kinds, key=lambda of: ([of.startswith(one) for one in order].index(True), of))


def list_values(rows: Iterable[Row], of: str) -> list[str | None]:
    """The values of a kind, the most frequent first; "open" is last."""
    counts: dict[str | None, int] = {}
    for row in rows:
        if row["of"] == of:
            counts[row["value"]] = counts.get(row["value"], 0) + row["count"]
    return sorted(counts, key=lambda value: (value is None, -counts[value], value or ""))


@dataclass(frozen=True)
class GroupedItems:
    """The items of one view, grouped by fields: columns, cells and links."""

    asked: PageQuery
    by: Sequence[str]

    @cached_property
    def labels(self) -> dict[str, str]:
        """The titles of the answers to the deciding question."""
        return dict(main_field.load_main_field(self.asked.project).options)

    def columns(self) -> list[Column]:
        """The columns of the grouping fields; [] without fields."""
        titles = self.asked.groups
        return [Column(titles.get(name, name), name, is_number=False) for name in self.by]

    def heads(self, group: GroupValues) -> list[Cell]:
        """The first cells of a group's line: the title of each value."""
        named = zip(self.by, group, strict=True)
        return [
            cells.text_cell(Grouping(name, name).title_of(value), value) for name, value in named
        ]

    def column(self, of: str, value: str | None) -> Column:
        """The column of one value, with its field as a note."""
        note = "" if of == LABEL else kind_title(of)
        return Column(value_title(of, value, self.labels), f"{of}-{value}", note)

    def count(self, group: GroupValues, rows: RowsOfGroup) -> Cell:
        """The number of all items of a group."""
        return cells.count_cell(get_size(rows), self.items(group))

    def count_of(self, group: GroupValues, row: Row) -> Cell:
        """The number of a group's items with the value of a row."""
        return cells.count_cell(row["count"], self.items(group, row["of"], row["value"]))

    def share_of(self, group: GroupValues, rows: RowsOfGroup, of: str, value: str | None) -> Cell:
        """The number of a group's items with a value, and their share; 0 if there are no such
        items."""
        row = rows.get((of, value))
        return cells.share_cell(
            row["count"] if row else 0, get_size(rows), self.items(group, of, value)
        )

    def items(self, group: GroupValues, of: str = "", value: str | None = "") -> str:
        """The URL of these items; "" if no list shows exactly these items, for example items
        without a value."""
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
    """The title of a field or answer, from its name without the prefix."""
    name = of.removeprefix(FIELDS).removeprefix(ANSWERS)
    return name.replace("_", " ").capitalize()


def field_value_title(of: str, value: str | None) -> str:
    """The title of a value; None is shown like ""."""
    return Grouping(of, of).title_of(value or "")


def label_title(value: str | None, labels: Mapping[str, str]) -> str:
    """The title of a final label; `OPEN` for None, the value itself if it has no title."""
    return OPEN if value is None else labels.get(value, value)


def value_title(of: str, value: str | None, labels: Mapping[str, str]) -> str:
    """The title of a value of this kind: a final label, or a field's value."""
    return label_title(value, labels) if of == LABEL else field_value_title(of, value)


def category_order(row: Row) -> Any:
    """Sort key of a category in the order of the taxonomy."""
    return undetected.taxonomy_order({"category": row["value"]}), row["value"]


ABILITY = Grouping("ability", "Ability")
EMPTY = "The project has no items yet. Import items to see this page."
ITEMS_WORDS = (
    "Duplicates and qualification items are left out. Shares are of all items in the row, "
    "including open ones; an item may have several error categories. Words are counted with "
    "the ROUGE-L tokeniser, in any script."
)
SHARES_WORDS = (
    "Shares are of all items in the group. An item may have several values of a field, so "
    "shares can add up to more than 100 %. Fields with more than 50 values or with long "
    "texts are not listed."
)
# With more labels the shades are indistinguishable; the rarest are merged.
MOST_LABELS = 5
OTHER_LABELS = "all others"
# A chart with more bars is unreadable; the table has all of them.
MOST_BARS = 40


def build_items(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per group: number of items, final labels, and length of texts."""
    page = GroupedItems(asked, asked.fields(TableQuery("")))
    groups = group_rows(tables[0], page.by)
    every = sum(get_size(rows) for rows in groups.values())
    counted, texts = _counted_values(tables[0]), list_values(tables[0], WORDS)
    columns = (
        *(page.columns() or [Column("Items of", is_number=False)]),
        Column("Items", "n"),
        Column("Share of all", "share"),
        *(page.column(*one) for one in counted),
        *(Column(str(name), f"words-{name}", "mean words") for name in texts),
    )

    def line(group: GroupValues, rows: RowsOfGroup) -> GridLine:
        sizes = (page.count(group, rows), cells.percent_cell(get_size(rows) / every))
        shares = (page.share_of(group, rows, *one) for one in counted)
        means = (_mean(rows.get((WORDS, name))) for name in texts)
        return GridLine((*_heads(page, group), *sizes, *shares, *means))

    lines = [line(*one) for one in groups.items()]
    return ViewContent(
        cells.build_grid("Items by group", columns, lines), _draw_labels(page, groups), ITEMS_WORDS
    )


def build_categories(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """Categories below their abilities, with their numbers of items (study 000, table 1)."""
    page = GroupedItems(asked, [ABILITY.name])
    groups = group_rows(tables[0], page.by)
    every = sum(get_size(rows) for rows in groups.values())
    found = [
        (
            group,
            rows,
            sorted(select_kind(rows, CATEGORY), key=category_order),
        )
        for group, rows in sorted(groups.items(), key=lambda one: ABILITY.place_of(one[0][0]))
    ]
    columns = (
        Column("Ability and category", is_number=False),
        Column("Items", "n"),
        Column("Of all items", "share"),
        Column("Share of its ability", "part"),
    )
    bars = [
        (
            field_value_title(CATEGORY, row["value"]),
            row["count"] / every,
            row["count"],
        )
        for _, _, rows in found
        for row in rows
    ]
    words = "Duplicates and qualification items are left out."
    caption = "Items by category, in the order of the taxonomy."
    blocks = tuple(_block(page, *one, every) for one in found)
    grid = Grid("Items by ability and category", columns, blocks)
    return ViewContent(grid, _draw_bars(bars, "Share of all items", caption), words)


def build_shares(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One block per field of the items, with the number of items for each value."""
    page = GroupedItems(asked, asked.fields(TableQuery("")))
    rows = [row for row in tables[0] if row["of"] != WORDS]
    kinds = list_kinds(rows)
    columns = (
        Column("Value", is_number=False),
        *page.columns(),
        Column("Items", "count"),
        Column("Share", "share"),
    )

    def block(of: str) -> LineBlock:
        lines = (_line(page, row) for row in rows if row["of"] == of)
        return LineBlock((_block_head(kind_title(of), len(columns)), *lines))

    grid = Grid("Shares of the values of each field", columns, tuple(map(block, kinds)))
    return ViewContent(grid, _draw_first(page, rows, kinds), SHARES_WORDS)


def _counted_values(rows: Rows) -> list[tuple[str, str | None]]:
    """The values counted in columns: final labels, then other answers."""
    of = [LABEL, *(one for one in list_kinds(rows) if one.startswith(ANSWERS))]
    return [(one, value) for one in of for value in list_values(rows, one)]


def _heads(page: GroupedItems, group: GroupValues) -> list[Cell]:
    return page.heads(group) or [cells.text_cell("All items")]


def _block_head(title: str, width: int) -> GridLine:
    return GridLine((Cell(title, is_number=False), *[Cell("")] * (width - 1)), "group")


def _line(page: GroupedItems, row: Row) -> GridLine:
    group = tuple(row[name] for name in page.by)
    return GridLine(
        (
            cells.text_cell(value_title(row["of"], row["value"], page.labels)),
            *page.heads(group),
            page.count_of(group, row),
            Cell(written.share(row["share"]), row["share"], n=row["n"]),
        )
    )


def _block(
    page: GroupedItems, group: GroupValues, of_group: RowsOfGroup, rows: list[Row], every: int
) -> LineBlock:
    share = cells.percent_cell(get_size(of_group) / every)
    head = Cell(ABILITY.title_of(group[0]), is_number=False)
    lines = [
        GridLine(
            (
                cells.text_cell(field_value_title(CATEGORY, row["value"])),
                page.count_of(group, row),
                cells.percent_cell(row["count"] / every),
                cells.percent_cell(row["share"]),
            )
        )
        for row in rows
    ]
    return LineBlock(
        (GridLine((head, page.count(group, of_group), share, Cell("")), "group"), *lines)
    )


def _mean(row: Row | None) -> Cell:
    if row is None:
        return Cell(reason="no such text")
    return Cell(written.number(row["mean"]), row["mean"], n=row["count"])


def _draw_labels(page: GroupedItems, groups: Mapping[GroupValues, RowsOfGroup]) -> ChartSpec | None:
    """The final labels of the items of each group; the rarest are merged."""
    rows = [row for of_group in groups.values() for row in of_group.values()]
    held = list_values(rows, LABEL)
    own = held if len(held) <= MOST_LABELS else held[: MOST_LABELS - 1]
    titles = [label_title(value, page.labels) for value in own]
    kinds = {f"k{place}": title for place, title in enumerate(titles)}
    kinds |= {"rest": OTHER_LABELS} if len(own) < len(held) else {}
    bars = []
    for group, of_group in groups.items():
        counts = {value: row["count"] for (of, value), row in of_group.items() if of == LABEL}
        bar = {f"k{place}": counts.get(value, 0) for place, value in enumerate(own)}
        bar["rest"] = sum(counts.values()) - sum(bar.values())
        bars.append((": ".join(cell.text for cell in _heads(page, group)[:2]), bar))
    caption = "Final labels of the items, as shares of each row; numbers are items."
    return stacked_charts.draw_bars(bars, kinds, "Share of the items", caption)


def _draw_first(page: GroupedItems, rows: Rows, kinds: Sequence[str]) -> ChartSpec | None:
    """The shares of the first kind that is shown."""
    if not kinds:
        return None
    of = kinds[0]
    bars = [(_label(page, row), row["share"], row["count"]) for row in rows if row["of"] == of]
    caption = f"{kind_title(of)}: the share of the items with each value."
    if len(kinds) > 1:
        caption += " Choose another field above."
    return _draw_bars(bars, "Share of the items", caption)


def _label(page: GroupedItems, row: Row) -> str:
    """A value, and on a second line its group."""
    value = value_title(row["of"], row["value"], page.labels)
    heads = page.heads(tuple(row[name] for name in page.by))
    return ": ".join((value, *(cell.text for cell in heads[:1])))


def _draw_bars(
    found: Iterable[tuple[str, float, int]], title: str, caption: str
) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import bars

    every = [bars.Bar(name, share, written.share(share), n) for name, share, n in found]
    if not every:
        return None
    if len(every) > MOST_BARS:
        caption += f" The first {MOST_BARS} of {len(every)}; the table has them all."
    return ChartSpec(bars.draw_bars(every[:MOST_BARS], title=title), caption)


VIEWS = (
    ResultView(
        slug="items",
        title="Items",
        asks=(TableQuery("dataset"),),
        build=build_items,
        studies={"001": study_figures("table 2", by=("task", "response_model"))},
        empty=EMPTY,
        groups=group_fields.list_fields,
        of_runs=False,
    ),
    ResultView(
        slug="categories",
        title="Categories",
        asks=(TableQuery("dataset", "ability"),),
        build=build_categories,
        studies={"000": study_figures("table 1")},
        empty=EMPTY,
        of_runs=False,
    ),
    ResultView(
        slug="shares",
        title="Shares of any field",
        asks=(TableQuery("dataset"),),
        build=build_shares,
        studies={"001": study_figures("table 3", "figure 4", "figure 8")},
        empty=EMPTY,
        groups=group_fields.list_fields,
        columns=("of",),
        titles={"of": "Field"},
        named=title_kind,
        of_runs=False,
    ),
)
