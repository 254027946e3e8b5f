"""Tables with a line per run and group: leading cells, and the groups to choose from."""

from collections.abc import Callable, Iterable, Sequence

from annotation.labelling.models.labels import SI_ITEM
from annotation.reports.grouping import Grouping
from judging.models import Run
from judging.results.views import cells
from judging.results.views.cells import Cell, Column, Grid, GridLine, Row
from judging.results.views.page_parts import BY_PARAMETER, PageQuery, Rows, Switch

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
# A column of figures, and the function for its cell in the row of a run.
FigureColumn = tuple[Column, Callable[[Run, Row], Cell]]


def group_switch(first: str = BY_ABILITY) -> Switch:
    """The switch between the fields to group by."""
    return Switch(BY_PARAMETER, "Grouped by", {first: TITLES[first], **TITLES})


def build_table(asked: PageQuery, title: str, rows: Rows, figures: Sequence[FigureColumn]) -> Grid:
    """One line per row: group and run, then the figures. The narrowest group comes first."""
    runs = {run.number: run for run in asked.runs}
    fields = _fields(rows)
    columns = (*_leading_columns(fields, runs), *(column for column, _ in figures))
    lines = [
        GridLine(
            (
                *_leading_cells(row, fields, runs),
                *(cell(runs[row["run"]], row) for _, cell in figures),
            )
        )
        for row in rows
    ]
    return cells.build_grid(title, columns, lines)


def chart_label(asked: PageQuery, row: Row) -> str:
    """The label of a group and its run on a chart's axis, on several lines, one of them for the
    endpoint. If there is only one run, it is not named."""
    names = {run.number: cells.run_name(run, ": ") for run in asked.runs}
    parts = [*(_title(field, row) for field in _fields([row]))][:1]
    if len(asked.runs) > 1 or not parts:
        parts.append(names[row["run"]])
    return ": ".join(parts)


def _fields(rows: Iterable[Row]) -> list[str]:
    """The fields that the rows are grouped by, the narrowest first."""
    first: Row = next(iter(rows), {})
    return [name for name in ("category", "source_ability", "ability") if name in first]


def _leading_columns(fields: Sequence[str], runs: dict[int, Run]) -> list[Column]:
    named = [Column(_name(field), field, is_number=False) for field in fields]
    shown = [Column("Run", "run", is_number=False)] if len(runs) > 1 or not fields else []
    return [*named, *shown]


def _leading_cells(row: Row, fields: Sequence[str], runs: dict[int, Run]) -> list[Cell]:
    named = [cells.text_cell(_title(field, row)) for field in fields]
    shown = [cells.run_cell(runs[row["run"]])] if len(runs) > 1 or not fields else []
    return [*named, *shown]


def _name(field: str) -> str:
    return {"source_ability": "Made from"}.get(field, field.capitalize())


def _title(field: str, row: Row) -> str:
    title = Grouping(field, field).title_of(row[field])
    invariant = field == "category" and row["score_invariant"] and row[field] != SI_ITEM
    # If the URL groups by category only, there is no ability column to mark score-invariant rows.
    return f"{title}, score-invariant" if invariant and not row.get("ability") else title
