"""By category: which errors remain undetected? (study 000, tables 6 to 10 and 18)

Rates side by side: abilities with their categories in rows, runs in columns.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.urls import reverse

from annotation.labelling.models.labels import SI_ITEM
from annotation.reports.grouping import Grouping
from judging.models import Run
from judging.results import undetected
from judging.results.views import (
    cells,
    dot_charts,
    page_parts,
    run_group_tables,
    stacked_charts,
    undetected_beside,
)
from judging.results.views.cells import Cell, Column, Grid, GridLine, LineBlock, RateColumns, Row
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    RateMeasure,
    ResultView,
    Rows,
    StudyFigure,
    TableQuery,
    ViewContent,
)
from judging.strategies.schema import Scale

# Lines of abilities, of their categories, and of the origins of score-invariant items.
TABLE_QUERIES = (
    TableQuery("undetected", "ability"),
    TableQuery("undetected", "ability,category"),
    TableQuery("undetected", "ability,source_ability"),
)
NAMES = ("ability", "category", "source_ability")
REPEATS = "Duplicates (no ability)"


class MatrixKey(NamedTuple):
    """The group of a line; "" stands for all.

    `invariant` is true if the items are score-invariant; duplicates among them have no ability.
    """

    ability: str
    category: str
    source_ability: str
    invariant: bool

    @property
    def group(self) -> dict[str, str]:
        """The fields of the group by name, as in the rows of the tables."""
        return {name: getattr(self, name) for name in NAMES}

    @property
    def is_part(self) -> bool:
        """True if the line is a part of an ability: a category or an origin."""
        return bool(self.category or self.source_ability)

    @property
    def place(self) -> tuple[list[int], bool]:
        """Sort key in the order of the taxonomy."""
        return undetected.taxonomy_order(self.group), self.invariant


RowsByKey = dict[MatrixKey, dict[int, Row]]


def build_rates(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per group and one column per run; groups without any run are left out."""
    measure, runs = page_parts.get_measure(asked), page_parts.select_judging_runs(asked)
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
    """An ability and the lines below it. For score-invariant items, these lines are the origins."""
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
    """A note if the rate of the line has the opposite meaning."""
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


TABLES = (
    StudyFigure("table 6", ("vanilla-score",)),
    StudyFigure("table 7", ("vanilla",)),
    StudyFigure("table 8", ("rubric",)),
    StudyFigure("table 9", ("axis",)),
    StudyFigure("table 10", ("axis-rubric",)),
    StudyFigure("table 18", ("vanilla",)),
)
NO_SCORES = (
    "None of the chosen runs scored gold and perturbed answers separately. Choose a run with "
    "such a strategy, for example vanilla, rubric or axis."
)
_NO_SCALE = NO_SCORES.replace("separately.", "separately on a scale.")
_DIRECTIONS = {"lower": "Lower", "equal": "Equal", "higher": "Higher"}
# Scales with more steps show only the steps that occur.
MOST_STEPS = 40
_ENDS = {
    "gold_at_bottom": "At the lowest score",
    "between": "Between",
    "gold_at_top": "At the highest score",
}


def build_counts(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """The table as in the study: the number of items and the number of detected items."""
    judging = {run.number for run in page_parts.select_judging_runs(asked)}
    rows = [row for row in tables[0] if row["run"] in judging]
    figures = (
        (Column("Total", "total"), _total),
        (Column("Missing", "missing"), _count_in("missing")),
        (Column("Parsed", "parsed"), _count_in("parsed")),
        (Column("Detected", "detected"), _count_in("detected")),
        (Column("Undetected", "undetected"), _count_in("undetected")),
        (Column("Undetected rate", "rate"), _undetected),
    )
    grid = run_group_tables.build_table(asked, "Detected and undetected items", rows, figures)
    kinds = {"undetected": "Undetected", "detected": "Detected"}
    drawing = stacked_charts.draw_groups(
        asked, rows, kinds, "Share of the parsed items", "Detected and undetected"
    )
    return ViewContent(grid, drawing, page_parts.MEASURES["undetected"].words)


def build_directions(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """Whether the perturbed answer scored lower than, equal to or higher than the gold answer."""
    rows = _scored_rows(tables[0])
    shares = [
        (Column(title, name), stacked_charts.make_share_cell(name))
        for name, title in _DIRECTIONS.items()
    ]
    means = (
        (Column("Mean of gold", "mean_gold"), _mean_in("mean_gold")),
        (Column("Mean of perturbed", "mean_pert"), _mean_in("mean_pert")),
    )
    grid = run_group_tables.build_table(
        asked, "Scores compared with gold", rows, (*stacked_charts.COUNT_COLUMNS, *shares, *means)
    )
    words = (
        "Score of the perturbed answer compared with the gold answer. Lower counts as "
        "detected; equal and higher as undetected. On score-invariant items, lower is a "
        "false alarm."
    )
    caption = "Scores of perturbed answers compared with gold"
    return ViewContent(
        grid, stacked_charts.draw_groups(asked, rows, _DIRECTIONS, "Share of items", caption), words
    )


def build_changes(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """Score differences between perturbed and gold answer, only for runs with a scale: a text
    length, for example, has too many steps."""
    scales = {run.number: run.pinned_strategy().scale for run in asked.runs}
    rows = [row for row in tables[0] if scales[row["run"]]]
    steps = sorted({row["change"] for row in rows})
    moved = [
        (Column(_format_signed(step), f"moved{step:g}"), _moved_cell(step, scales))
        for step in steps
    ]
    lines = _merge_steps(rows)
    grid = run_group_tables.build_table(
        asked, "Score differences", lines, (*stacked_charts.COUNT_COLUMNS, *moved)
    )
    words = "Perturbed minus gold score, in scale points. Below 0: the error was detected."
    if len(rows) < len(tables[0]):
        words += " Runs without a scale are not shown here; their values are in the downloads."
    return ViewContent(grid, _draw_strips(asked, rows, fill_steps(steps)), words)


def build_ends(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """The number of gold scores at the ends of the scale, where no further change is visible."""
    rows = [
        {**row, "between": row["parsed"] - row["gold_at_bottom"] - row["gold_at_top"]}
        for row in tables[0]
        if row["gold_at_top"] is not None
    ]
    shares = [(Column(title, name), _gold_cell(name)) for name, title in _ENDS.items()]
    scale = (Column("Scale", "at_top"), _scale)
    grid = run_group_tables.build_table(
        asked,
        "Gold scores at the ends of the scale",
        rows,
        (*stacked_charts.COUNT_COLUMNS, scale, *shares),
    )
    words = (
        "Gold answers that got the lowest or highest score. If gold has the lowest score, no "
        "lower score is possible, so an error cannot be detected."
    )
    caption = "Scores of gold answers: lowest, between, highest"
    return ViewContent(
        grid,
        stacked_charts.draw_groups(asked, rows, _ENDS, "Share of gold answers", caption),
        words,
    )


def _total(run: Run, row: Row) -> Cell:
    return cells.count_cell(row["total"], cells.items_url(run, row))


def _count_in(name: str) -> stacked_charts.CellFunction:
    """Build a function for cells with the count of the result `name` and a link to the items."""

    def cell(run: Run, row: Row) -> Cell:
        return cells.count_cell(row[name], cells.items_url(run, row, result=name))

    return cell


def _mean_in(name: str) -> stacked_charts.CellFunction:
    return lambda run, row: cells.number_cell(row[name])


def _undetected(run: Run, row: Row) -> Cell:
    bad = "low" if page_parts.is_invariant(row) else "high"
    return cells.rate_cell(
        row, RateColumns(bad=bad), href=cells.items_url(run, row, result="undetected")
    )


def fill_steps(steps: Sequence[float]) -> Sequence[float]:
    """All steps from the lowest to the highest. Whole steps that do not occur are added unless
    there would be too many."""
    if not steps or any(step != int(step) for step in steps):
        return steps
    every = range(int(steps[0]), int(steps[-1]) + 1)
    return list(every) if len(every) <= MOST_STEPS else steps


def _merge_steps(rows: Rows) -> Rows:
    """One row per run and group, with the number of items by score difference."""
    found: dict[object, dict[str, Any]] = {}
    for row in rows:
        one = found.setdefault(undetected_beside.row_key(row), {**row, "moved": {}})
        one["moved"][row["change"]] = row["n"]
    return list(found.values())


def _moved_cell(step: float, scales: Mapping[int, Scale | None]) -> stacked_charts.CellFunction:
    """A cell with a link to the items with this score change, rounded to the nearest step of the
    scale."""

    def cell(run: Run, row: Row) -> Cell:
        scale = scales[run.number]
        half = float((scale and scale.step) or 1) / 2
        ends = {"moved_from": f"{step - half:g}", "moved_below": f"{step + half:g}"}
        n = row["moved"].get(step, 0)
        return cells.share_cell(
            n, row["parsed"], cells.items_url(run, row, result="parsed", **ends)
        )

    return cell


def _format_signed(step: float) -> str:
    return f"{step:+g}".replace("-", "−") if step else "0"


def _gold_cell(name: str) -> stacked_charts.CellFunction:
    """A cell with a link to the items whose gold answer has such a score."""

    def cell(run: Run, row: Row) -> Cell:
        low, high, inside = row["bottom"], row["at_top"], (row["at_top"] - row["bottom"]) / 10**4
        ends = {
            "gold_at_bottom": {"gold_to": f"{low:g}"},
            "between": {"gold_from": f"{low + inside:g}", "gold_to": f"{high - inside:g}"},
            "gold_at_top": {"gold_from": f"{high:g}"},
        }
        return cells.share_cell(
            row[name], row["parsed"], cells.items_url(run, row, result="parsed", **ends[name])
        )

    return cell


def _scale(run: Run, row: Row) -> Cell:
    return Cell(f"{row['bottom']:g} to {row['at_top']:g}", row["at_top"])


def _scored_rows(rows: Rows) -> Rows:
    return [row for row in rows if row["lower"] is not None]


def _draw_strips(asked: PageQuery, rows: Rows, steps: Sequence[float]) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import strips

    named = [(run_group_tables.chart_label(asked, row), row) for row in rows]
    every = list(dict.fromkeys(label for label, _ in named))
    shown = set(every[: stacked_charts.MOST_BARS])
    found = [
        strips.StepShare(label, row["change"], row["share"], row["n"])
        for label, row in named
        if label in shown
    ]
    caption = "Score differences (perturbed minus gold), as shares of parsed items."
    caption += stacked_charts.cut_note(len(every))
    drawn = strips.draw_strips(found, steps=steps, title="Perturbed minus gold")
    return ChartSpec(drawn, caption) if found else None


VIEWS = (
    ResultView(
        slug="rates",
        title="Side by side",
        asks=TABLE_QUERIES,
        build=build_rates,
        studies={},
        empty=page_parts.NOTHING_DECIDED,
        switches=(page_parts.MEASURE_SWITCH,),
    ),
    ResultView(
        slug="counts",
        title="Counts",
        asks=(TableQuery("undetected"),),
        build=build_counts,
        studies={"000": TABLES},
        empty=page_parts.NOTHING_DECIDED,
        switches=(run_group_tables.group_switch(run_group_tables.BY_CATEGORY),),
    ),
    ResultView(
        slug="scores",
        title="Lower, equal, higher",
        asks=(TableQuery("scores"),),
        build=build_directions,
        studies={},
        empty=NO_SCORES,
        switches=(run_group_tables.group_switch(),),
    ),
    ResultView(
        slug="changes",
        title="Score differences",
        asks=(TableQuery("score_changes"),),
        build=build_changes,
        studies={},
        empty=_NO_SCALE,
        switches=(run_group_tables.group_switch(),),
    ),
    ResultView(
        slug="ends",
        title="Ends of the scale",
        asks=(TableQuery("scores"),),
        build=build_ends,
        studies={},
        empty=_NO_SCALE,
        switches=(run_group_tables.group_switch(),),
    ),
)
