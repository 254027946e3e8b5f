"""Tables with a line per run, metric and group: leading cells, order, and links."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any
from urllib.parse import urlencode

from annotation import tasktypes
from annotation.reports import grouping
from annotation.templatetags import figures as written
from judging.models import Run
from judging.results.paired_scores import KEPT, LEFT_OUT
from judging.results.views import cells, group_fields
from judging.results.views.cells import Cell, Column, Grid, GridLine, Row
from judging.results.views.page_parts import (
    BY_PARAMETER,
    RUN_PARAMETER,
    VIEW_PARAMETER,
    PageQuery,
    ResultView,
    Rows,
    TableQuery,
)
from judging.results.views.run_group_tables import FigureColumn
from judging.strategies import TOTAL, schema

CellFunction = Callable[[Run, Row], Cell]
# The view that lists items with both numbers.
ITEMS_PARAMETER = "items"
# A chart with more groups is unreadable; the table has all of them.
MOST_GROUPS = 40
EMPTY = (
    "None of the chosen runs gave numbers for items rated by people. Choose a rating or "
    "scoring run over rated items."
)


def title_value(asked: PageQuery, column: str, value: str) -> str:
    """The title of a value in a column: a metric, a number, or whether people agree."""
    if column in ("people", "evaluator"):
        return value.removesuffix(".0")
    known = {"metric": MetricPage(asked).titles, "decided": {"true": "yes", "false": "no"}}
    return known.get(column, {}).get(value, "")


# A view of numbers by metric and group.
metric_view = partial(
    ResultView,
    empty=EMPTY,
    groups=group_fields.list_fields_with_length,
    columns=("metric",),
    named=title_value,
)


@dataclass(frozen=True)
class MetricPage:
    """The metrics and groups of one requested page."""

    asked: PageQuery

    @cached_property
    def titles(self) -> dict[str, str]:
        """The titles of the task type's fields by name, and of the total."""
        asked_of_people = tasktypes.load_task_type(self.asked.project).fields
        return {field.name: field.title for field in asked_of_people} | {TOTAL: "Total"}

    @cached_property
    def fields(self) -> list[str]:
        """The fields that the rows are grouped by."""
        return self.asked.fields(TableQuery(""))

    @cached_property
    def runs(self) -> dict[int, Run]:
        """The chosen runs by number."""
        return {run.number: run for run in self.asked.runs}

    def ordered(self, rows: Rows) -> Rows:
        """Rows sorted by metric and group, so that runs are next to each other."""
        metrics = list(dict.fromkeys(row["metric"] for row in rows))
        kept = [field for field in self.fields if rows and field in rows[0]]
        places = {field: grouping.Grouping(field, field) for field in kept}

        def place(row: Row) -> tuple[Any, ...]:
            return metrics.index(row["metric"]), *(places[f].place_of(row[f]) for f in kept)

        return sorted(rows, key=place)

    def build_grid(self, title: str, rows: Rows, figures: Sequence[FigureColumn]) -> Grid:
        """One line per row: groups, metric and run, followed by the figures."""
        kept = [field for field in self.fields if rows and field in rows[0]]
        columns = (*self.heads(kept), *(column for column, _ in figures))
        lines = [self._line(row, kept, figures) for row in rows]
        return cells.build_grid(title, columns, lines)

    def heads(self, fields: Iterable[str]) -> list[Column]:
        """The columns of these fields, then metric and run."""
        titles = {**self.asked.groups, **group_fields.ANSWER_LENGTH_TITLE}
        named = [Column(titles.get(one, one), one, is_number=False) for one in fields]
        words = (Column("Metric", "metric", is_number=False), Column("Run", "run", is_number=False))
        return [*named, *words]

    def begin(self, row: Row, fields: Iterable[str]) -> list[Cell]:
        """The cells of a row before the figures."""
        return [*self.groups_of(row, fields), self.run_cell(self.runs[row["run"]])]

    def groups_of(self, row: Row, fields: Iterable[str]) -> list[Cell]:
        """The groups and the metric of a row."""
        named = [cells.text_cell(_title(field, row)) for field in fields]
        return [*named, cells.text_cell(self.title_of(row), note=off_scale_text(row))]

    def group(self, row: Row) -> str:
        """The titles of a row's groups."""
        return ", ".join(_title(field, row) for field in self.fields if field in row)

    def run_cell(self, one: Run) -> Cell:
        """A run, with a note on whether it sees the gold answer."""
        cell = cells.run_cell(one)
        return replace(cell, note=f"{cell.note} · {'with' if sees_gold(one) else 'without'} gold")

    def title_of(self, row: Row) -> str:
        """The title of the row's metric; its name if annotators have no such field."""
        metric: str = row["metric"]
        return self.titles.get(metric, metric)

    def labelled(self, rows: Rows) -> list[tuple[str, Row]]:
        """Rows with chart labels for group and metric, on two lines; only the first groups."""
        several = len({row["metric"] for row in rows}) > 1
        found = [(self._label(row, several=several), row) for row in rows]
        kept = set(list(dict.fromkeys(label for label, _ in found))[:MOST_GROUPS])
        return [(label, row) for label, row in found if label in kept]

    def items(self, row: Row, **which: Any) -> str:
        """The URL of the list of a row's items with both numbers."""
        return self.view_link(ITEMS_PARAMETER, row, **which)

    def view_link(self, view: str, row: Row, **which: Any) -> str:
        """The URL of another view of the same run, metric and group."""
        group = {field: row[field] for field in self.fields if row.get(field)}
        of_run = {RUN_PARAMETER: row["run"]} if row["run"] else {}
        named = {
            **of_run,
            VIEW_PARAMETER: view,
            BY_PARAMETER: ",".join(self.fields),
            "metric": row["metric"],
        }
        return f"?{urlencode({**named, **group, **which}, safe=',')}"

    def of_people(self, view: str, row: Row, **which: Any) -> str:
        """The URL of another view of the same metric and group that does not depend on a run."""
        return self.view_link(view, {**row, "run": ""}, **which)

    def _line(self, row: Row, fields: Sequence[str], figures: Sequence[FigureColumn]) -> GridLine:
        run = self.runs[row["run"]]
        return GridLine((*self.begin(row, fields), *(cell(run, row) for _, cell in figures)))

    def _label(self, row: Row, *, several: bool) -> str:
        group = self.group(row)
        metric = self.title_of(row) if several or not group else ""
        rest = ", ".join(part for part in (metric, off_scale_text(row)) if part)
        return ": ".join(part for part in (group, rest) if part)

    def counted(self) -> tuple[FigureColumn, FigureColumn]:
        """The columns for the number of items with both numbers, and without the evaluator's."""

        def both(run: Run, row: Row) -> Cell:
            which = {} if row["off_scale"] != LEFT_OUT else {"cause": "None"}
            return cells.count_cell(row["n"], self.items(row, **which))

        def missing(run: Run, row: Row) -> Cell:
            which = {"evaluator": "None"} if row["off_scale"] != LEFT_OUT else _OFF_SCALE_FILTER
            return cells.count_cell(row["missing"], self.items(row, **which))

        return (Column("Items", "n"), both), (Column("Missing", "missing"), missing)


_OFF_SCALE_OPTIONS = (KEPT, LEFT_OUT)
_OFF_SCALE_FILTER = {"cause": "off_scale"}


def sees_gold(run: Run) -> bool:
    """True if the evaluator sees the gold answer. Matching methods such as ROUGE-L count as seeing
    it."""
    strategy = run.strategy.strategy()
    prompts = [strategy.prompt, *(step.prompt for step in strategy.steps)]
    in_prompt = any("reference" in schema.find_names(prompt) for prompt in prompts)
    return in_prompt or strategy.frame == "matching"


def run_name(run: Run) -> str:
    """The name of a run in charts."""
    return cells.run_name(run) + ("" if sees_gold(run) else " · without gold")


def off_scale_text(row: Row) -> str:
    """The text on how a row treats numbers off the scale; "" if there are none."""
    return f"off the scale {row['off_scale']}" if row.get("off_scale") in _OFF_SCALE_OPTIONS else ""


def with_link(cell: Cell, href: str) -> Cell:
    """Add the link to a cell if the cell has a value."""
    return replace(cell, href=href) if cell.is_there else cell


def percent_cell(row: Row, name: str) -> Cell:
    """A mean on a scale of 0 to 1 in percent, with its interval."""
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    interval = "" if low is None else f"{written.share(low)} to {written.share(high)}"
    reason = row[f"{name}_reason"] or ""
    return Cell(written.share(value), value, interval=interval, reason=reason)


def _title(field: str, row: Row) -> str:
    return grouping.Grouping(field, field).title_of(row[field])
