"""Rates side by side: abilities with their categories below, runs across."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.urls import reverse

from annotation.labelling.models.labels import SI_ITEM
from annotation.reports.grouping import Grouping
from judging.models import Run
from judging.results import undetected
from judging.results.views import cells, dot_charts, measures
from judging.results.views.cells import Row
from judging.results.views.grids import Cell, Column, Grid, GridLine, LineBlock
from judging.results.views.measures import RateMeasure
from judging.results.views.page_parts import ChartSpec, PageQuery, Rows, TableQuery, ViewContent

# An ability's own line, its categories, and where score-invariant items are from.
TABLE_QUERIES = (
    TableQuery("undetected", "ability"),
    TableQuery("undetected", "ability,category"),
    TableQuery("undetected", "ability,source_ability"),
)
NAMES = ("ability", "category", "source_ability")
REPEATS = "Duplicates (no ability)"


class MatrixKey(NamedTuple):
    """What a line is over: "" where it is over all of them.

    `invariant`: score-invariant items, which have no ability of their own where they repeat others.
    """

    ability: str
    category: str
    source_ability: str
    invariant: bool

    @property
    def group(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in NAMES}

    @property
    def is_part(self) -> bool:
        return bool(self.category or self.source_ability)

    @property
    def place(self) -> tuple[list[int], bool]:
        """In the order of the taxonomy."""
        return undetected.taxonomy_order(self.group), self.invariant


RowsByKey = dict[MatrixKey, dict[int, Row]]


def show(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """A line a group, a column a run; groups no run has are left out."""
    measure, runs = measures.get_measure(asked), measures.select_judging_runs(asked)
    heads, parts, made_from = (_group_by_key(rows) for rows in tables)
    known = sorted({*heads, *parts}, key=lambda key: key.place)
    blocks = [
        _block(ability, heads, made_from if ability == SI_ITEM else parts, runs, measure)
        for ability in dict.fromkeys(key.ability for key in known)
    ]
    title = f"{measure.title}s by ability and category"
    columns = (Column("Ability and category", is_number=False), *map(_column, runs))
    grid = Grid(title, columns, tuple(blocks))
    return ViewContent(grid, _drawing(runs, parts, measure), measure.words)


def _column(run: Run) -> Column:
    cell = cells.run_cell(run)
    page = reverse("run", args=[run.project.slug, run.number])
    return Column(cell.text, f"run-{run.number}", note=cell.note, href=page)


def _block(
    ability: str, heads: RowsByKey, parts: RowsByKey, runs: Sequence[Run], measure: RateMeasure
) -> LineBlock:
    """An ability and what is below it: of score-invariant items what they were made from."""
    invariant = ability == SI_ITEM
    lines = [
        _line(key, parts[key], runs, measure)
        for key in sorted(parts, key=lambda key: key.place)
        if key.ability == ability and key.is_part
    ]
    head = GridLine((Cell(REPEATS, is_number=False), *(Cell("") for _ in runs)), "group")
    if ability:
        key = MatrixKey(ability, "", "", invariant)
        head = _line(key, heads.get(key, {}), runs, measure, kind="group")
    return LineBlock((head, *lines), "invariant" if invariant else "")


def _group_by_key(rows: Iterable[Row]) -> RowsByKey:
    found: RowsByKey = {}
    for row in rows:
        ability, category, source = (row.get(name, "") for name in NAMES)
        key = MatrixKey(ability, category, source, row["score_invariant"])
        found.setdefault(key, {})[row["run"]] = row
    return found


def _line(
    key: MatrixKey, rows: dict[int, Row], runs: Sequence[Run], measure: RateMeasure, kind: str = ""
) -> GridLine:
    title = Cell(_title(key), note=_note(key, measure), is_number=False)
    return GridLine(
        (title, *(_cell(key, run, rows.get(run.number), measure) for run in runs)), kind
    )


def _cell(key: MatrixKey, run: Run, row: Row | None, measure: RateMeasure) -> Cell:
    return cells.rate_cell(
        row,
        measure.rate(invariant=key.invariant),
        href=cells.items_url(run, key.group, result="parsed"),
        missing_href=cells.items_url(run, key.group, result="missing"),
    )


def _note(key: MatrixKey, measure: RateMeasure) -> str:
    """Where a line is read the other way than the rest."""
    if key.ability == SI_ITEM and not key.invariant:
        return "labelled as errors: no false alarms"
    if not key.invariant or key.source_ability:
        return ""
    good = "low" if measure.slug == "detection" else "high"
    said = f"{measure.on_invariant}, {good} is good"
    return f"reversed: {said}" if key.ability else f"score-invariant: {said}"


def _title(key: MatrixKey) -> str:
    if key.source_ability:
        return f"made from {Grouping('ability', '').title_of(key.source_ability)}"
    name = "category" if key.category else "ability"
    return Grouping(name, "").title_of(getattr(key, name))


def _drawing(runs: Sequence[Run], parts: RowsByKey, measure: RateMeasure) -> ChartSpec | None:
    such = measure.rate(invariant=False)
    found = [
        (cells.run_name(run), _title(key), cells.read_estimate(parts[key][run.number], such))
        for run in runs
        for key in sorted(parts, key=lambda key: key.place)
        if key.category and not key.invariant and run.number in parts[key]
    ]
    caption = f"{measure.title} by category, with 95 % intervals. The table has the same figures."
    return dot_charts.draw_dots(found, title=measure.title, caption=caption)
