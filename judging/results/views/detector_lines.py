"""Lines of the detector page: what stands before the figures, and where these lead."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from annotation.reports.grouping import Grouping
from judging.models import Run
from judging.results.detectors import MEAN, PEOPLE, PROMPTS
from judging.results.views import cells
from judging.results.views.cells import Cell, Column, GridLine, Row
from judging.results.views.page_parts import RUN_PARAMETER, PageQuery, Rows, Switch, TableQuery

# Past so many lines nobody reads a chart; the table has them all.
MOST_LINES = 40
EMPTY = (
    "None of the chosen runs did error detection. Choose a run with such a strategy, for "
    "example detect-1a, over items labelled error or no error."
)
# What the list of outcomes can be narrowed down by: two fields of the items.
SLICES = ("slice", "second_slice")
BASELINES = {
    "random": ("Random", "alarms as often as errors occur"),
    "always-error": ("Always error", "alarms on every item"),
    PEOPLE: ("People", "mean over annotators, on blind items of the human baseline"),
}
ROWS_SWITCH = Switch("rows", "Lines", {"detectors": "Detectors", "runs": "Each run"})


@dataclass(frozen=True)
class DetectorPage:
    """The detectors and groups of one page as it is asked for."""

    asked: PageQuery

    @cached_property
    def fields(self) -> list[str]:
        """What the rows are grouped by."""
        return self.asked.fields(TableQuery(""))

    @cached_property
    def runs(self) -> dict[int, Run]:
        return {run.number: run for run in self.asked.runs}

    def kept(self, rows: Rows, figure: str) -> Rows:
        """The rows of detectors, one each where the mean over its prompts has this figure, or those
        of each run; by group, detectors in their order, baselines last."""
        if self.asked.said(ROWS_SWITCH.name) == "runs":
            found = [row for row in rows if row["strategy"] != MEAN]
        else:
            means = {
                self._detector(row)
                for row in rows
                if row["strategy"] == MEAN and row[figure] is not None
            }
            found = [
                row for row in rows if row["strategy"] == MEAN or self._detector(row) not in means
            ]
        return self.ordered(found)

    def ordered(self, rows: Iterable[Row]) -> Rows:
        """By group, then detector; those without one come last."""
        places = [Grouping(name, name) for name in self.fields]

        def place(row: Row) -> tuple[Any, ...]:
            group = [one.place_of(row[one.name] or "") for one in places]
            return group, row["endpoint"] is None, row["endpoint"] or ""

        return [dict(row) for row in sorted(rows, key=place)]

    def heads(self) -> tuple[Column, ...]:
        named = (Column(self._title(one), one, is_number=False) for one in self.fields)
        return (*named, Column("Detector", "detector", is_number=False))

    def line(self, row: Row, figures: Iterable[Cell], kind: str = "") -> GridLine:
        groups = (cells.text_cell(self._group(one, row)) for one in self.fields)
        return GridLine((*groups, self._name(row), *figures), kind)

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """Each row on one axis of a chart, on lines of their own: its evaluator, its run, its group
        where there are several."""
        groups = [self.group(row) for row in rows]
        several = len(set(groups)) > 1
        return [
            ": ".join(part for part in (*_names(row), group if several else "") if part)
            for row, group in zip(rows, groups, strict=True)
        ]

    def series(self, row: Row) -> str:
        """A detector in charts."""
        return " · ".join(part for part in _names(row) if part)

    def group(self, row: Row) -> str:
        """The groups of a row in words."""
        return ", ".join(self._group(one, row) for one in self.fields)

    def items(self, row: Row, **which: str) -> str:
        """Where the items behind a figure are listed; of a mean, the lines of the prompts that it
        is over, each of which leads on to its items."""
        if row["strategy"] == MEAN:
            return self._prompts(row)
        run, group = self.runs.get(row["run"]), self._slices(row)
        if run is None or group is None:
            return ""
        page = reverse("run", args=[run.project.slug, run.number])
        return f"{page}?{urlencode({**group, **which, 'counted': 'yes'})}#outcomes"

    def _prompts(self, row: Row) -> str:
        asked = (run for run in self.asked.runs if run.strategy.slug in PROMPTS)
        query = self.asked.query.copy()
        query[ROWS_SWITCH.name] = "runs"
        own = [str(run.number) for run in asked if run.endpoint.name == row["endpoint"]]
        query.setlist(RUN_PARAMETER, own)
        query.update({one: row[one] for one in self.fields if row[one]})
        return f"?{query.urlencode(safe=',')}"

    def _slices(self, row: Row) -> dict[str, str] | None:
        """What narrows the outcomes of a run down to a group; None where no address can."""
        found = [f"{one}={row[one]}" for one in self.fields]
        is_told = len(found) <= len(SLICES) and all(row[one] for one in self.fields)
        return dict(zip(SLICES, found, strict=False)) if is_told else None

    def _detector(self, row: Row) -> tuple[Any, ...]:
        return row["endpoint"], *(row[one] for one in self.fields)

    def _name(self, row: Row) -> Cell:
        if row["strategy"] in BASELINES:
            title, note = BASELINES[row["strategy"]]
            return cells.text_cell(title, note=note)
        if row["run"] is None:
            return cells.text_cell(row["endpoint"] or "", note="mean of the four prompts")
        return cells.run_cell(self.runs[row["run"]])

    def _title(self, field: str) -> str:
        return self.asked.groups.get(field, field.replace("_", " ").capitalize())

    def _group(self, field: str, row: Row) -> str:
        value = row[field]
        return "all groups" if value is None else Grouping(field, field).title_of(value)


def _names(row: Row) -> tuple[str, str]:
    """An evaluator and its run, "" for a mean; or a baseline."""
    if row["strategy"] in BASELINES:
        return BASELINES[row["strategy"]][0], ""
    run = "" if row["run"] is None else f"{row['run']} · {row['strategy']}"
    return row["endpoint"] or "Mean", run


def items_cell(value: float, href: str = "") -> Cell:
    """Items; of a mean over prompts with a digit behind the point."""
    if float(value).is_integer():
        return cells.count_cell(int(value), href)
    return Cell(f"{value:,.1f}", value, href)


def select_first(labels: Sequence[str]) -> set[str]:
    """The labels that a chart has room for."""
    return set(list(dict.fromkeys(labels))[:MOST_LINES])


def caption_cut(labels: Sequence[str]) -> str:
    """What a caption says where a chart has room for some of the lines alone."""
    n = len(set(labels))
    return (
        f" The first {MOST_LINES} of {n} lines; the table has them all." if n > MOST_LINES else ""
    )
