"""Lines of the detector page: leading cells, order, and links."""

from collections.abc import Iterable, Sequence
from typing import Any

from annotation.reports.grouping import Grouping
from judging.results import cells
from judging.results.cells import Cell, Header, Row
from judging.results.columns import Leading
from judging.results.detectors import MEAN, PEOPLE, PROMPTS
from judging.results.page_parts import RUN_PARAMETER, PageQuery, Rows, Switch

# A chart with more lines is unreadable; the table has all of them.
MOST_LINES = 40
EMPTY = (
    "None of the chosen runs did error detection. Choose a run with such a strategy, for "
    "example detect-1a, over items labelled error or no error."
)
# Outcomes can be filtered by two fields of the items.
SLICES = ("slice", "second_slice")
BASELINES = {
    "random": ("Random", "alarms as often as errors occur"),
    "always-error": ("Always error", "alarms on every item"),
    PEOPLE: ("People", "mean over annotators, on blind items of the human baseline"),
}
ROWS_SWITCH = Switch("rows", "Lines", {"detectors": "Detectors", "runs": "Each run"})


class Detectors(Leading):
    """The row's groups and its detector. Figures link to the outcomes of the run and group; for a
    mean, to the page with the lines of its prompts, which link to their items."""

    def __init__(self, asked: PageQuery, rows: Sequence[Row]) -> None:
        super().__init__(asked, rows)
        self.fields = asked.fields()

    def kept(self, rows: Rows, figure: str) -> Rows:
        """The rows to show: either each run, or one row per detector if the mean over its prompts
        has this figure. Sorted by group and detector, baselines last."""
        if self.asked.switch_value(ROWS_SWITCH.name) == "runs":
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
        """Sort the rows by group and detector; baselines come last."""
        places = [Grouping(name, name, self.asked.categories) for name in self.fields]

        def place(row: Row) -> tuple[Any, ...]:
            group = [one.place_of(row[one.name] or "") for one in places]
            return group, row["endpoint"] is None, row["endpoint"] or ""

        return [dict(row) for row in sorted(rows, key=place)]

    def headers(self) -> list[Header]:
        named = [Header(self._title(one), one, is_number=False) for one in self.fields]
        return [*named, Header("Detector", "detector", is_number=False)]

    def cells(self, row: Row) -> list[Cell]:
        groups = [cells.text_cell(self._group(one, row)) for one in self.fields]
        return [*groups, self.name_cell(row)]

    def kind(self, row: Row) -> str:
        return "published" if row["strategy"] in BASELINES else ""

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """The label of each row on a chart's axis, over several lines: evaluator, run, and group if
        there are several."""
        groups = [self.group(row) for row in rows]
        several = len(set(groups)) > 1
        return [
            ": ".join(part for part in (*self._names(row), group if several else "") if part)
            for row, group in zip(rows, groups, strict=True)
        ]

    def series(self, row: Row) -> str:
        """The name of a detector in charts."""
        return " · ".join(part for part in self._names(row) if part)

    def group(self, row: Row) -> str:
        """The titles of a row's groups."""
        return ", ".join(self._group(one, row) for one in self.fields)

    def items_url(self, row: Row, **which: str) -> str:
        if row["strategy"] == MEAN:
            return self._prompts(row)
        run, group = self.runs.get(row["run"]), self._slices(row)
        if run is None or group is None:
            return ""
        return cells.outcomes_url(run, **{**group, "items": "own", **which, "counted": "yes"})

    def _prompts(self, row: Row) -> str:
        asked = (run for run in self.asked.runs if run.strategy.slug in PROMPTS)
        query = self.asked.query.copy()
        query[ROWS_SWITCH.name] = "runs"
        own = [str(run.number) for run in asked if run.endpoint.name == row["endpoint"]]
        query.setlist(RUN_PARAMETER, own)
        query.update({one: row[one] for one in self.fields if row[one]})
        return f"?{query.urlencode(safe=',')}"

    def _slices(self, row: Row) -> dict[str, str] | None:
        """The query that filters a run's outcomes to a group; None if a URL cannot express it."""
        found = [f"{one}={row[one]}" for one in self.fields]
        is_told = len(found) <= len(SLICES) and all(row[one] for one in self.fields)
        return dict(zip(SLICES, found, strict=False)) if is_told else None

    def _detector(self, row: Row) -> tuple[Any, ...]:
        return row["endpoint"], *(row[one] for one in self.fields)

    def name_cell(self, row: Row) -> Cell:
        """The detector, its run, or the baseline."""
        if row["strategy"] in BASELINES:
            title, note = BASELINES[row["strategy"]]
            return cells.text_cell(title, note=note)
        if row["run"] is None:
            return cells.text_cell(row["endpoint"] or "", note="mean of the four prompts")
        return cells.run_cell(self.runs[row["run"]])

    def _names(self, row: Row) -> tuple[str, str]:
        """The names of an evaluator and its run ("" for a mean), or of a baseline."""
        if row["strategy"] in BASELINES:
            return BASELINES[row["strategy"]][0], ""
        # In charts, a colon and a space break the line.
        run = "" if row["run"] is None else self.runs[row["run"]].label.replace(": ", ":\u00a0")
        return row["endpoint"] or "Mean", run

    def _title(self, field: str) -> str:
        return self.asked.groups.get(field, field.replace("_", " ").capitalize())

    def _group(self, field: str, row: Row) -> str:
        value = row[field]
        return "all groups" if value is None else self.asked.group_title(field, value)


def select_first(labels: Sequence[str]) -> set[str]:
    """Select the labels that fit into a chart."""
    return set(list(dict.fromkeys(labels))[:MOST_LINES])


def caption_cut(labels: Sequence[str]) -> str:
    """A note for the caption if only some of the lines fit into a chart."""
    n = len(set(labels))
    return (
        f" The first {MOST_LINES} of {n} lines; the table has them all." if n > MOST_LINES else ""
    )
