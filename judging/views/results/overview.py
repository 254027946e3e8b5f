"""Overview: how much do the runs notice? Runs by abilities (study 000, tables 3 to 5)."""

from collections.abc import Sequence

from annotation.leads.grouping import Grouping
from annotation.querysets import SI_ITEM
from judging.models import Run
from judging.results import reports
from judging.views.results import beside, cells, dots, measures
from judging.views.results.cells import Row
from judging.views.results.grids import Block, Cell, Column, Grid, Line
from judging.views.results.kinds import Ask, Asked, Drawing, Place, Rows, Shown, View
from judging.views.results.measures import Measure
from stats.estimates import Estimate

ABILITY = Grouping("ability", "Ability")
# By run, its row without an ability.
All = dict[int, Row]
ByAbility = dict[tuple[str, ...], dict[int, Row]]

_SCORES = ("vanilla-score", "vanilla", "rubric", "axis", "axis-rubric")
_PAIRS = (
    "pairwise-verdict", "pairwise", "pairwise-rules", "pairwise-axis", "pairwise-axis-rules"
)  # fmt: skip
# As the study prints them.
_RATES = {"measure": "undetected"}
TABLES = (
    Place("table 3", (*_SCORES, *_PAIRS, "reference"), query=_RATES),
    Place(
        "table 4", ("vanilla", "pairwise-axis-rules", "reference", "prometheus-axis"), query=_RATES
    ),
    Place("table 5", ("rubric", "rubric-5", "axis-rubric", "axis-rubric-5"), query=_RATES),
)


def show(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """One line a run: its rate over all error items and by ability, false alarms beside."""
    measure = measures.of(asked)
    runs = {run.number: run for run in measures.judging(asked)}
    alone, by_ability = ([row for row in rows if row["run"] in runs] for rows in tables)
    every: All = {row["run"]: row for row in alone}
    ordered = sorted(by_ability, key=lambda row: reports.place({"ability": row["ability"]}))
    found = measures.by_run(ordered, "ability")
    told = {row["run"] for row in by_ability}
    lines = [_line(runs[number], every, found, measure) for number in runs if number in told]
    columns = (Column("Run", "run", is_number=False), Column("All errors", "all"), *_columns(found))
    noted = [_with_note(column, measure) for column in columns]
    published = beside.lines(asked, [ability for (ability,) in found], found, measure)
    blocks = (Block(tuple(lines)), Block(tuple(published) if lines else (), "published"))
    grid = Grid(f"{measure.title} by run and ability", tuple(noted), blocks)
    return Shown(grid, _drawing(asked, ordered, measure), measure.words)


def _columns(found: ByAbility) -> list[Column]:
    return [Column(ABILITY.title_of(ability), ability) for (ability,) in found]


def _with_note(column: Column, measure: Measure) -> Column:
    if column.name != SI_ITEM:
        return column
    return Column(column.title, column.name, note=measure.on_invariant)


def _line(run: Run, every: All, found: ByAbility, measure: Measure) -> Line:
    cell = _cell(run, every.get(run.number), measure, invariant=False)
    by_ability = [
        _cell(run, rows.get(run.number), measure, invariant=ability == SI_ITEM)
        for (ability,), rows in found.items()
    ]
    return Line((cells.run(run), cell, *by_ability))


def _cell(run: Run, row: Row | None, measure: Measure, *, invariant: bool) -> Cell:
    group = row or {}
    return cells.rate(
        row,
        measure.rate(invariant=invariant),
        href=cells.items(run, group, result="parsed"),
        missing_href=cells.items(run, group, result="missing"),
    )


def _drawing(asked: Asked, rows: Rows, measure: Measure) -> Drawing | None:
    names = {run.number: cells.name(run) for run in asked.runs}
    found = [(names[row["run"]], _group(row, measure), _estimate(row, measure)) for row in rows]
    groups = {row["ability"]: _group(row, measure) for row in rows}
    faint = list(beside.dots(asked, groups, measure))
    caption = (
        f"{measure.title} by ability, with 95 % intervals; for score-invariant items"
        f" {measure.on_invariant}. The table has the same figures."
    )
    if faint:
        caption += (
            " Published figures are faint, with plain Wilson intervals on the n that is printed:"
            " which of those items are alike is not known."
        )
    return dots.drawing(found, faint=faint, title=measure.title, caption=caption)


def _estimate(row: Row, measure: Measure) -> Estimate:
    return cells.estimate(row, measure.rate(invariant=measures.is_invariant(row)))


def _group(row: Row, measure: Measure) -> str:
    title = ABILITY.title_of(row["ability"])
    return f"{title}: {measure.on_invariant}" if measures.is_invariant(row) else title


VIEWS = (
    View(
        slug="abilities",
        title="By ability",
        asks=(Ask("undetected", ""), Ask("undetected", "ability")),
        show=show,
        studies={"000": TABLES},
        empty=measures.UNDECIDED,
        switches=(measures.SWITCH,),
        choices=beside.choices,
    ),
)
