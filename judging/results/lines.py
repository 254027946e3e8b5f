"""Tables on pages with a line per row: leading columns, then the figures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from annotation.labelling.models.labels import SI_ITEM
from judging.results import cells, chart_parts
from judging.results.cells import Cell, GridLine, Header, Row
from judging.results.columns import Column, Leading, Rate, Table
from judging.results.page_parts import (
    BY_PARAMETER,
    ChartSpec,
    PageQuery,
    Rows,
    Switch,
    ViewContent,
)

# The fields that outcomes can be grouped by; the first is the default.
BY_ABILITY, BY_CATEGORY, BY_SOURCE, BY_RUN = (
    "ability",
    "ability,category",
    "ability,source_ability",
    "",
)
TITLES = {
    BY_ABILITY: "Abilities",
    BY_CATEGORY: "Categories",
    BY_SOURCE: "Source ability",
    BY_RUN: "Run only",
}
KEY_FIELDS = ("run", "ability", "category", "source_ability", "score_invariant")


def group_switch(first: str = BY_ABILITY) -> Switch:
    """The switch between the fields to group by."""
    return Switch(BY_PARAMETER, "Grouped by", {first: TITLES[first], **TITLES})


def row_key(row: Row) -> tuple[Any, ...]:
    """The key of a row: its run and its group."""
    return tuple(row.get(name) for name in KEY_FIELDS)


class RunGroups(Leading):
    """The row's groups, the narrowest first, and its run if there are several."""

    def __init__(self, asked: PageQuery, rows: Sequence[Row]) -> None:
        super().__init__(asked, rows)
        self.fields = group_fields(rows)
        self.has_run = len(self.runs) > 1 or not self.fields

    def headers(self) -> list[Header]:
        found = [Header(self._title(one), one, is_number=False) for one in self.fields]
        return [*found, Header("Run", "run", is_number=False)] if self.has_run else found

    def _title(self, field: str) -> str:
        if field == "source_ability":
            return "Made from"
        return self.asked.categories.word_groups(field.capitalize())

    def cells(self, row: Row) -> list[Cell]:
        found = [cells.text_cell(group_title(self.asked, field, row)) for field in self.fields]
        return [*found, cells.run_cell(self.runs[row["run"]])] if self.has_run else found


class RunFields(Leading):
    """The run, and the value of each item field that the reader groups by."""

    def headers(self) -> list[Header]:
        titles = self.asked.groups
        fields = [Header(titles.get(one, one), one, is_number=False) for one in self.asked.fields()]
        return [Header("Run", "run", is_number=False), *fields]

    def cells(self, row: Row) -> list[Cell]:
        fields = (self.asked.group_title(one, row[one]) for one in self.asked.fields())
        return [cells.run_cell(self.runs[row["run"]]), *map(cells.text_cell, fields)]


def group_fields(rows: Iterable[Row]) -> list[str]:
    """The fields that the rows are grouped by, the narrowest first."""
    first: Row = next(iter(rows), {})
    return [name for name in ("category", "source_ability", "ability") if name in first]


def group_title(asked: PageQuery, field: str, row: Row) -> str:
    """The title of a row's group."""
    title = asked.group_title(field, row[field])
    if row[field] == SI_ITEM and not row["score_invariant"] and asked.is_perturbed(row):
        return f"{title}, labelled as errors"
    invariant = field == "category" and row["score_invariant"] and row[field] != SI_ITEM
    # If the URL groups by category only, there is no ability column to mark score-invariant rows.
    return f"{title}, score-invariant" if invariant and not row.get("ability") else title


def chart_label(asked: PageQuery, row: Row) -> str:
    """The label of a group and its run on a chart's axis, on several lines, one of them for the
    endpoint. If there is only one run, it is not named."""
    parts = [group_title(asked, field, row) for field in group_fields([row])][:1]
    if len(asked.runs) > 1 or not parts:
        parts.append(cells.run_name(asked.runs_by_number[row["run"]], ": "))
    return ": ".join(parts)


@dataclass(frozen=True)
class Stacked:
    """A stacked bar chart with a bar per row. `parts` are the columns that the items are divided
    into, or these columns with their titles."""

    parts: Sequence[str] | Mapping[str, str]
    title: str
    caption: str


@dataclass(frozen=True)
class Lines:
    """A table as a page shows it: one line per row, with these columns, given by name if they are
    columns of the table.

    `select` makes the rows to show from the view's tables; without it they are the rows of the
    first table. `words` explain how to read the figures, `screen_words` what only a page has. A
    page shows at most `most` lines and says so; charts and downloads have all rows.
    """

    table: Table
    title: str
    columns: Sequence[str | Column]
    words: str = ""
    chart: Stacked | Callable[[PageQuery, Rows], ChartSpec | None] | None = None
    select: Callable[[PageQuery, Sequence[Rows]], Rows] | None = None
    leading: Callable[[PageQuery, Rows], Leading] = RunGroups
    most: int | None = None
    screen_words: str = ""

    def __call__(self, asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
        rows = self.select(asked, tables) if self.select else tables[0]
        shown = [self.table[one] if isinstance(one, str) else one for one in self.columns]
        leading = self.leading(asked, rows)
        lines = [
            GridLine(
                (*leading.cells(row), *(column.cell(row, leading) for column in shown)),
                leading.kind(row),
            )
            for row in rows[: self.most]
        ]
        words, screen_words = self.words, self.screen_words
        if self.most is not None and len(rows) > self.most:
            words += f" The first {self.most} of {len(rows):,} lines."
            screen_words += " Filter to see the rest."
        headers = [*leading.headers(), *map(self._header, shown)]
        grid = cells.build_grid(self.title, headers, lines)
        chart = self.chart
        if isinstance(chart, Stacked):
            drawing = draw_stacked(asked, rows, self.table, chart)
        else:
            drawing = chart(asked, rows) if chart else None
        return ViewContent(grid, drawing, words, screen_words.strip())

    def _header(self, column: Column) -> Header:
        # What is in Markdown for the documentation is plain text here.
        meaning = self.table.explain(column.name).replace("`", "")
        return replace(column.header(), meaning=meaning)


def draw_stacked(asked: PageQuery, rows: Rows, table: Table, chart: Stacked) -> ChartSpec | None:
    """Draw a bar per row; the result is None without rows."""
    parts = chart.parts
    if not isinstance(parts, Mapping):
        parts = {name: table[name].title for name in parts}
    caption = f"{chart.caption}, as shares of the items with a usable reply; the numbers are items."
    bars = [(chart_label(asked, row), row) for row in rows]
    return chart_parts.draw_bars(bars, parts, chart.title, caption)


def draw_rates(
    asked: PageQuery, rows: Rows, rates: Mapping[str, Rate], title: str, caption: str
) -> ChartSpec | None:
    """Draw a dot per row and rate, named as in `rates`; the result is None if no rate has a
    value."""
    dots = [
        (name, chart_label(asked, row), rate.estimate(row))
        for row in rows
        for name, rate in rates.items()
    ]
    return chart_parts.draw_dots(dots, title=title, caption=caption, series="Of")
