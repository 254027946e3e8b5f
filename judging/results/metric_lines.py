"""Lines per run, metric and group: leading cells, order, and links."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from annotation import tasktypes
from annotation.reports import grouping
from judging.models import Run
from judging.results import cells, group_fields
from judging.results.cells import Cell, Header, Row
from judging.results.columns import Leading
from judging.results.page_parts import (
    BY_PARAMETER,
    RUN_PARAMETER,
    VIEW_PARAMETER,
    PageQuery,
    ResultView,
    Rows,
)
from judging.results.paired_scores import KEPT, LEFT_OUT
from judging.strategies import TOTAL, schema

# The view that lists items with both numbers.
ITEMS_PARAMETER = "items"
# The view that lists items with people's numbers.
RATINGS_PARAMETER = "ratings"
# The value of the filter by cause that keeps items with the evaluator's number.
USABLE = "None"
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
    known = {
        "metric": Metrics(asked, ()).titles,
        "decided": {"true": "yes", "false": "no"},
        "cause": {USABLE: "none: usable reply"},
    }
    return known.get(column, {}).get(value, "")


# A view of numbers by metric and group.
metric_view = partial(
    ResultView,
    empty=EMPTY,
    groups=group_fields.list_fields_with_length,
    columns=("metric",),
    named=title_value,
)


class Metrics(Leading):
    """The row's groups, its metric and its run. Figures link to the list of items with both
    numbers."""

    def __init__(self, asked: PageQuery, rows: Sequence[Row]) -> None:
        super().__init__(asked, rows)
        self.fields = asked.fields()
        self.kept = [field for field in self.fields if rows and field in rows[0]]
        of_people = tasktypes.load_task_type(asked.project).fields
        # The titles of the task type's fields by name, and of the total.
        self.titles = {field.name: field.title for field in of_people} | {TOTAL: "Total"}
        # A page has hundreds of rows of a few runs.
        self.run_cell, self.run_name = cache(run_cell), cache(run_name)

    def ordered(self, rows: Rows) -> Rows:
        """Rows sorted by metric and group, so that runs are next to each other."""
        metrics = list(dict.fromkeys(row["metric"] for row in rows))
        kept = [field for field in self.fields if rows and field in rows[0]]
        places = {field: grouping.Grouping(field, field, self.asked.categories) for field in kept}

        def place(row: Row) -> tuple[Any, ...]:
            return metrics.index(row["metric"]), *(places[f].place_of(row[f]) for f in kept)

        return sorted(rows, key=place)

    def headers(self) -> list[Header]:
        titles = {**self.asked.groups, **group_fields.ANSWER_LENGTH_TITLE}
        named = [Header(titles.get(one, one), one, is_number=False) for one in self.kept]
        return [*named, *self.metric_headers()]

    def metric_headers(self) -> list[Header]:
        """The headers of metric and run."""
        return [
            Header("Metric", "metric", is_number=False),
            Header("Run", "run", is_number=False),
        ]

    def cells(self, row: Row) -> list[Cell]:
        named = [cells.text_cell(self.asked.group_title(field, row[field])) for field in self.kept]
        return [*named, *self.metric_cells(row)]

    def metric_cells(self, row: Row) -> list[Cell]:
        """The metric and the run."""
        metric = cells.text_cell(self.title_of(row), note=off_scale_text(row))
        return [metric, self.run_cell(self.runs[row["run"]])]

    def group(self, row: Row) -> str:
        """The titles of a row's groups."""
        return ", ".join(
            self.asked.group_title(field, row[field]) for field in self.fields if field in row
        )

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

    def items_url(self, row: Row, **which: str) -> str:
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
        return f"?{cells.encode_query({**named, **group, **which})}"

    def _label(self, row: Row, *, several: bool) -> str:
        group = self.group(row)
        metric = self.title_of(row) if several or not group else ""
        rest = ", ".join(part for part in (metric, off_scale_text(row)) if part)
        return ": ".join(part for part in (group, rest) if part)


class PeopleMetrics(Metrics):
    """The row's groups and its metric, whatever the runs. Figures link to the list of items with
    people's numbers."""

    def metric_headers(self) -> list[Header]:
        return super().metric_headers()[:1]

    def metric_cells(self, row: Row) -> list[Cell]:
        return [cells.text_cell(self.title_of(row), note=off_scale_text(row))]

    def items_url(self, row: Row, **which: str) -> str:
        return self.view_link(RATINGS_PARAMETER, {**row, "run": ""}, **which)


def select_ordered(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    """The rows of the first table, sorted by metric and group."""
    return Metrics(asked, tables[0]).ordered(tables[0])


_OFF_SCALE_OPTIONS = (KEPT, LEFT_OUT)


def sees_gold(run: Run) -> bool:
    """True if the evaluator sees the gold answer. Matching methods such as ROUGE-L count as seeing
    it."""
    strategy = run.strategy.strategy()
    prompts = [strategy.prompt, *(step.prompt for step in strategy.steps)]
    in_prompt = any("reference" in schema.find_names(prompt) for prompt in prompts)
    return in_prompt or strategy.frame == "matching"


def run_cell(run: Run) -> Cell:
    """The cell of a run with a note on whether it sees the gold answer."""
    cell = cells.run_cell(run)
    gold = "with" if sees_gold(run) else "without"
    return replace(cell, note=f"{cell.note} · {gold} gold")


def run_name(run: Run) -> str:
    """The name of a run in charts."""
    return cells.run_name(run) + ("" if sees_gold(run) else " · without gold")


def off_scale_text(row: Row) -> str:
    """The text on how a row treats numbers off the scale; "" if there are none."""
    return f"off the scale {row['off_scale']}" if row.get("off_scale") in _OFF_SCALE_OPTIONS else ""
