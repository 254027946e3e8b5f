"""Tables with a line a run and group: what stands before the figures, and what groups there are."""

from collections.abc import Callable, Iterable, Sequence

from annotation.leads.grouping import Grouping
from annotation.querysets import SI_ITEM
from judging.models import Run
from judging.views.results import cells, grids
from judging.views.results.cells import Row
from judging.views.results.grids import Cell, Column, Grid, Line
from judging.views.results.kinds import BY, Asked, Rows, Switch

# What outcomes can be grouped by; the first is meant where the address names none.
ABILITIES, CATEGORIES, SOURCES, RUNS = "ability", "ability,category", "ability,source_ability", ""
TITLES = {
    ABILITIES: "Abilities",
    CATEGORIES: "Categories",
    SOURCES: "What they were made from",
    RUNS: "Runs alone",
}
# One column of figures, and its cell for a run and a row.
Figure = tuple[Column, Callable[[Run, Row], Cell]]


def grouped(first: str = ABILITIES) -> Switch:
    """The switch between fields to group by."""
    return Switch(BY, "Grouped by", {first: TITLES[first], **TITLES})


def table(asked: Asked, title: str, rows: Rows, figures: Sequence[Figure]) -> Grid:
    """A line a row: its group and its run, then the figures. The narrowest group comes first."""
    runs = {run.number: run for run in asked.runs}
    fields = _fields(rows)
    columns = (*_before(fields, runs), *(column for column, _ in figures))
    lines = [
        Line((*_heads(row, fields, runs), *(cell(runs[row["run"]], row) for _, cell in figures)))
        for row in rows
    ]
    return grids.of_lines(title, columns, lines)


def label(asked: Asked, row: Row) -> str:
    """A group and its run on one axis of a chart, on lines of their own, with one for the endpoint.
    A single run is not named."""
    names = {run.number: cells.name(run, ": ") for run in asked.runs}
    parts = [*(_title(field, row) for field in _fields([row]))][:1]
    if len(asked.runs) > 1 or not parts:
        parts.append(names[row["run"]])
    return ": ".join(parts)


def _fields(rows: Iterable[Row]) -> list[str]:
    """The fields that rows are grouped by, the narrowest first."""
    first: Row = next(iter(rows), {})
    return [name for name in ("category", "source_ability", "ability") if name in first]


def _before(fields: Sequence[str], runs: dict[int, Run]) -> list[Column]:
    named = [Column(_name(field), field, is_number=False) for field in fields]
    shown = [Column("Run", "run", is_number=False)] if len(runs) > 1 or not fields else []
    return [*named, *shown]


def _heads(row: Row, fields: Sequence[str], runs: dict[int, Run]) -> list[Cell]:
    named = [cells.words(_title(field, row)) for field in fields]
    shown = [cells.run(runs[row["run"]])] if len(runs) > 1 or not fields else []
    return [*named, *shown]


def _name(field: str) -> str:
    return {"source_ability": "Made from"}.get(field, field.capitalize())


def _title(field: str, row: Row) -> str:
    title = Grouping(field, field).title_of(row[field])
    invariant = field == "category" and row["score_invariant"] and row[field] != SI_ITEM
    # An address may group by categories alone; then no ability beside it says so.
    return f"{title}, score-invariant" if invariant and not row.get("ability") else title
