"""Rates side by side: abilities with their categories below, runs across."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.urls import reverse

from annotation.leads.grouping import Grouping
from annotation.querysets import SI_ITEM
from judging.models import Run
from judging.results import reports
from judging.views.results import cells, dots, measures
from judging.views.results.cells import Row
from judging.views.results.grids import Block, Cell, Column, Grid, Line
from judging.views.results.kinds import Ask, Asked, Drawing, Rows, Shown
from judging.views.results.measures import Measure

# An ability's own line, its categories, and where score-invariant items are from.
ASKS = (
    Ask("undetected", "ability"),
    Ask("undetected", "ability,category"),
    Ask("undetected", "ability,source_ability"),
)
NAMES = ("ability", "category", "source_ability")
REPEATS = "Repeats of other items, in no ability"


class Key(NamedTuple):
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
        return reports.place(self.group), self.invariant


ByKey = dict[Key, dict[int, Row]]


def show(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """A line a group, a column a run; groups no run has are left out."""
    measure, runs = measures.of(asked), measures.judging(asked)
    heads, parts, made_from = (_by_key(rows) for rows in tables)
    known = sorted({*heads, *parts}, key=lambda key: key.place)
    blocks = [
        _block(ability, heads, made_from if ability == SI_ITEM else parts, runs, measure)
        for ability in dict.fromkeys(key.ability for key in known)
    ]
    title = f"{measure.title}s by ability and category"
    columns = (Column("Ability and category", is_number=False), *map(_column, runs))
    grid = Grid(title, columns, tuple(blocks))
    return Shown(grid, _drawing(runs, parts, measure), measure.words)


def _column(run: Run) -> Column:
    cell = cells.run(run)
    page = reverse("run", args=[run.project.slug, run.number])
    return Column(cell.text, f"run-{run.number}", note=cell.note, href=page)


def _block(
    ability: str, heads: ByKey, parts: ByKey, runs: Sequence[Run], measure: Measure
) -> Block:
    """An ability and what is below it: of score-invariant items what they were made from."""
    invariant = ability == SI_ITEM
    lines = [
        _line(key, parts[key], runs, measure)
        for key in sorted(parts, key=lambda key: key.place)
        if key.ability == ability and key.is_part
    ]
    head = Line((Cell(REPEATS, is_number=False), *(Cell("") for _ in runs)), "group")
    if ability:
        key = Key(ability, "", "", invariant)
        head = _line(key, heads.get(key, {}), runs, measure, kind="group")
    return Block((head, *lines), "invariant" if invariant else "")


def _by_key(rows: Iterable[Row]) -> ByKey:
    found: ByKey = {}
    for row in rows:
        ability, category, source = (row.get(name, "") for name in NAMES)
        key = Key(ability, category, source, row["score_invariant"])
        found.setdefault(key, {})[row["run"]] = row
    return found


def _line(
    key: Key, rows: dict[int, Row], runs: Sequence[Run], measure: Measure, kind: str = ""
) -> Line:
    title = Cell(_title(key), note=_note(key, measure), is_number=False)
    return Line((title, *(_cell(key, run, rows.get(run.number), measure) for run in runs)), kind)


def _cell(key: Key, run: Run, row: Row | None, measure: Measure) -> Cell:
    return cells.rate(
        row,
        measure.rate(invariant=key.invariant),
        href=cells.items(run, key.group, result="parsed"),
        missing_href=cells.items(run, key.group, result="missing"),
    )


def _note(key: Key, measure: Measure) -> str:
    """Where a line is read the other way than the rest."""
    if key.ability == SI_ITEM and not key.invariant:
        return "found to have an error: no false alarms"
    if not key.invariant or key.source_ability:
        return ""
    good = "low" if measure.slug == "detection" else "high"
    said = f"{measure.on_invariant}, {good} is good"
    return f"read the other way: {said}" if key.ability else f"score-invariant: {said}"


def _title(key: Key) -> str:
    if key.source_ability:
        return f"made from {Grouping('ability', '').title_of(key.source_ability)}"
    name = "category" if key.category else "ability"
    return Grouping(name, "").title_of(getattr(key, name))


def _drawing(runs: Sequence[Run], parts: ByKey, measure: Measure) -> Drawing | None:
    such = measure.rate(invariant=False)
    found = [
        (cells.name(run), _title(key), cells.estimate(parts[key][run.number], such))
        for run in runs
        for key in sorted(parts, key=lambda key: key.place)
        if key.category and not key.invariant and run.number in parts[key]
    ]
    caption = f"{measure.title} by category, with 95 % intervals. The table has the same figures."
    return dots.drawing(found, title=measure.title, caption=caption)
