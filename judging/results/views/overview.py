"""Overview: how much do the runs notice? Runs by abilities (study 000, tables 3 to 5)."""

from collections.abc import Sequence

from annotation.labelling.models.labels import SI_ITEM
from annotation.reports.grouping import Grouping
from judging.models import Run
from judging.results import undetected
from judging.results.views import cells, dot_charts, measures
from judging.results.views import published as views_published
from judging.results.views.cells import Row
from judging.results.views.grids import Cell, Column, Grid, GridLine, LineBlock
from judging.results.views.measures import RateMeasure
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    StudyFigure,
    TableQuery,
    ViewContent,
)
from stats.estimates import Estimate

ABILITY = Grouping("ability", "Ability")
# By run, its row without an ability.
RowsByRun = dict[int, Row]
RowsByAbility = dict[tuple[str, ...], dict[int, Row]]

_SCORE_STRATEGIES = ("vanilla-score", "vanilla", "rubric", "axis", "axis-rubric")
_PAIR_STRATEGIES = (
    "pairwise-verdict", "pairwise", "pairwise-rules", "pairwise-axis", "pairwise-axis-rules"
)  # fmt: skip
# As the study prints them.
_UNDETECTED_QUERY = {"measure": "undetected"}
TABLES = (
    StudyFigure(
        "table 3", (*_SCORE_STRATEGIES, *_PAIR_STRATEGIES, "reference"), query=_UNDETECTED_QUERY
    ),
    StudyFigure(
        "table 4",
        ("vanilla", "pairwise-axis-rules", "reference", "prometheus-axis"),
        query=_UNDETECTED_QUERY,
    ),
    StudyFigure(
        "table 5", ("rubric", "rubric-5", "axis-rubric", "axis-rubric-5"), query=_UNDETECTED_QUERY
    ),
)


def show(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line a run: its rate over all error items and by ability, false alarms beside."""
    measure = measures.get_measure(asked)
    runs = {run.number: run for run in measures.select_judging_runs(asked)}
    alone, by_ability = ([row for row in rows if row["run"] in runs] for rows in tables)
    every: RowsByRun = {row["run"]: row for row in alone}
    ordered = sorted(
        by_ability, key=lambda row: undetected.taxonomy_order({"ability": row["ability"]})
    )
    found = measures.group_by_run(ordered, "ability")
    told = {row["run"] for row in by_ability}
    lines = [_line(runs[number], every, found, measure) for number in runs if number in told]
    columns = (Column("Run", "run", is_number=False), Column("All errors", "all"), *_columns(found))
    noted = [_with_note(column, measure) for column in columns]
    published = views_published.build_lines(
        asked, [ability for (ability,) in found], found, measure
    )
    blocks = (LineBlock(tuple(lines)), LineBlock(tuple(published) if lines else (), "published"))
    grid = Grid(f"{measure.title} by run and ability", tuple(noted), blocks)
    return ViewContent(grid, _drawing(asked, ordered, measure), measure.words)


def _columns(found: RowsByAbility) -> list[Column]:
    return [Column(ABILITY.title_of(ability), ability) for (ability,) in found]


def _with_note(column: Column, measure: RateMeasure) -> Column:
    if column.name != SI_ITEM:
        return column
    return Column(column.title, column.name, note=measure.on_invariant)


def _line(run: Run, every: RowsByRun, found: RowsByAbility, measure: RateMeasure) -> GridLine:
    cell = _cell(run, every.get(run.number), measure, invariant=False)
    by_ability = [
        _cell(run, rows.get(run.number), measure, invariant=ability == SI_ITEM)
        for (ability,), rows in found.items()
    ]
    return GridLine((cells.run_cell(run), cell, *by_ability))


def _cell(run: Run, row: Row | None, measure: RateMeasure, *, invariant: bool) -> Cell:
    group = row or {}
    return cells.rate_cell(
        row,
        measure.rate(invariant=invariant),
        href=cells.items_url(run, group, result="parsed"),
        missing_href=cells.items_url(run, group, result="missing"),
    )


def _drawing(asked: PageQuery, rows: Rows, measure: RateMeasure) -> ChartSpec | None:
    names = {run.number: cells.run_name(run) for run in asked.runs}
    found = [(names[row["run"]], _group(row, measure), _estimate(row, measure)) for row in rows]
    groups = {row["ability"]: _group(row, measure) for row in rows}
    faint = list(views_published.build_dots(asked, groups, measure))
    caption = (
        f"{measure.title} by ability, with 95 % intervals; for score-invariant items"
        f" {measure.on_invariant}. The table has the same figures."
    )
    if faint:
        caption += (
            " Published figures are faint, with plain Wilson intervals from the printed n, "
            "because their clusters are not known."
        )
    return dot_charts.draw_dots(found, faint=faint, title=measure.title, caption=caption)


def _estimate(row: Row, measure: RateMeasure) -> Estimate:
    return cells.read_estimate(row, measure.rate(invariant=measures.is_invariant(row)))


def _group(row: Row, measure: RateMeasure) -> str:
    title = ABILITY.title_of(row["ability"])
    return f"{title}: {measure.on_invariant}" if measures.is_invariant(row) else title


VIEWS = (
    ResultView(
        slug="abilities",
        title="By ability",
        asks=(TableQuery("undetected", ""), TableQuery("undetected", "ability")),
        show=show,
        studies={"000": TABLES},
        empty=measures.NOTHING_DECIDED,
        switches=(measures.MEASURE_SWITCH,),
        choices=views_published.list_choices,
    ),
)
