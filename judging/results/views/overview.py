"""Overview: detection rates of runs by ability (study 000, tables 3 to 5).

Checkboxes add published figures for comparison. These have lines and marks of their own.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from annotation.labelling.models.labels import SI_ITEM
from annotation.reports.grouping import Grouping
from judging.models import Run
from judging.results import undetected
from judging.results.views import cells, dot_charts, page_parts
from judging.results.views.cells import Cell, Column, Grid, GridLine, LineBlock, Row
from judging.results.views.dot_charts import Dot
from judging.results.views.page_parts import (
    ChartSpec,
    Choice,
    ChoiceGroup,
    PageQuery,
    RateMeasure,
    ResultView,
    Rows,
    StudyFigure,
    TableQuery,
    ViewContent,
)
from stats.estimates import Estimate
from stats.rates import ClusterSums, clustered_wilson

PUBLISHED_FOLDER = Path(__file__).parents[1] / "published"
NO_COUNTS = "no counts are printed"
DENOMINATORS = {
    "total": "of all items, including missing ones",
    "parsed": "of the pairs with both orders parsed",
    "less_failures": "of the items whose outputs were all parsed",
    "bins": "of the items with a score",
}


@dataclass(frozen=True)
class PublishedRate:
    """An undetected rate of study 000's tables 3 to 5 as printed, a fraction of 1.

    For score-invariant items it is the share left unchanged. `denominator` is one of
    `DENOMINATORS`, or "" if the rate is not based on counts. `reason` says what contradicts the
    printed rate.
    """

    table: str
    strategy: str
    model: str
    ability: str
    total: int
    rate: float
    denominator: str
    reason: str

    @property
    def series(self) -> tuple[str, str, str]:
        """The key of one line of a chart: table, strategy and model."""
        return self.table, self.strategy, self.model

    @property
    def invariant(self) -> bool:
        """True if the rate is about score-invariant items."""
        return self.ability == SI_ITEM

    def estimate(self) -> Estimate:
        """The rate with Wilson's plain interval on its own n, since clusters are not printed.

        There is no interval without counts, and `reason` says so.
        """
        if not self.denominator or NO_COUNTS in self.reason:
            return Estimate(self.rate, None, None, self.total, NO_COUNTS)
        hits = self.rate * self.total
        sums = ClusterSums(m=self.total, n=self.total, y=hits, nn=self.total, ny=hits, yy=hits)
        return clustered_wilson(sums)


@cache
def load_overview() -> tuple[PublishedRate, ...]:
    """The rates by ability of study 000, tables 3 to 5, in their order."""
    with (PUBLISHED_FOLDER / "000-overview.csv").open(encoding="utf-8", newline="") as file:
        return tuple(_to_published_rate(row) for row in csv.DictReader(file) if row["rate"])


def _to_published_rate(row: dict[str, str]) -> PublishedRate:
    return PublishedRate(
        table=row["table"],
        strategy=row["strategy"],
        model=row["model"],
        ability=row["ability"],
        total=int(row["total"]),
        rate=float(row["rate"]),
        denominator=row["denominator"],
        reason=row["reason"],
    )


PUBLISHED_PARAMETER = "published"
SAME_STRATEGIES = "same"
SeriesKey = tuple[str, str, str]
# Our rows by ability and run number.
OwnRows = dict[tuple[str, ...], dict[int, Row]]


def list_choices(asked: PageQuery) -> list[ChoiceGroup]:
    """The series of study 000's tables 3 to 5, and a choice of all series of the chosen runs'
    strategies."""
    said = asked.query.getlist(PUBLISHED_PARAMETER)
    every = dict.fromkeys(one.series for one in load_overview())
    found = [Choice(SAME_STRATEGIES, "The strategies of the chosen runs", SAME_STRATEGIES in said)]
    found += [Choice("/".join(one), series_title(one), "/".join(one) in said) for one in every]
    return [ChoiceGroup(PUBLISHED_PARAMETER, "Published figures of study 000", found)]


def series_title(series: SeriesKey) -> str:
    table, strategy, model = series
    return f"Table {table} · {strategy} · {model}"


def select_series(asked: PageQuery) -> dict[SeriesKey, dict[str, PublishedRate]]:
    """The chosen published rates, by series and ability."""
    said = set(asked.query.getlist(PUBLISHED_PARAMETER))
    ours = {run.strategy.slug for run in asked.runs} if SAME_STRATEGIES in said else set()
    found: dict[SeriesKey, dict[str, PublishedRate]] = {}
    for one in load_overview():
        if "/".join(one.series) in said or one.strategy in ours:
            found.setdefault(one.series, {})[one.ability] = one
    return found


def build_lines(
    asked: PageQuery, abilities: Sequence[str], ours: OwnRows, measure: RateMeasure
) -> list[GridLine]:
    """One line per series, with a note for each chosen run with the same strategy on whether the
    rate is inside our interval."""
    return [
        GridLine(
            (
                Cell(
                    series_title(series),
                    series_title(series),
                    note=_denominators(found),
                    is_number=False,
                ),
                Cell(reason="not printed"),
                *(_published_cell(asked.runs, found.get(one), ours, measure) for one in abilities),
            ),
            kind="published",
        )
        for series, found in select_series(asked).items()
    ]


def build_dots(asked: PageQuery, title: dict[str, str], measure: RateMeasure) -> Iterable[Dot]:
    """The chosen published rates as marks in a chart; `title` maps abilities to the chart's
    groups."""
    for series, found in select_series(asked).items():
        for ability, one in found.items():
            if ability in title:
                yield series_title(series), title[ability], _to_estimate(one, measure)


def _to_estimate(one: PublishedRate, measure: RateMeasure) -> Estimate:
    found, such = one.estimate(), measure.rate(invariant=one.invariant)
    row = {"rate": found.value, "low": found.low, "high": found.high, "n": found.n}
    return cells.read_estimate({**row, "reason": found.reason}, such._replace(n="n"))


def _published_cell(
    runs: Iterable[Run], one: PublishedRate | None, ours: OwnRows, measure: RateMeasure
) -> Cell:
    if one is None:
        return Cell(reason="not printed")
    such = measure.rate(invariant=one.invariant)._replace(n="n", missing="", bad="")
    found = one.estimate()
    row = {"rate": found.value, "low": found.low, "high": found.high, "n": found.n}
    said = list(_compare_intervals(runs, one, ours))
    if one.reason and one.reason != found.reason:
        said.append(one.reason)
    return cells.rate_cell({**row, "reason": found.reason}, such, note="; ".join(said))


def _denominators(found: dict[str, PublishedRate]) -> str:
    said = dict.fromkeys(one.denominator for one in found.values() if one.denominator)
    return f"study 000; {', '.join(DENOMINATORS[name] for name in said)}"


def _compare_intervals(runs: Iterable[Run], one: PublishedRate, ours: OwnRows) -> Iterable[str]:
    """Notes that compare a rate with our intervals. They never say "agrees": a rate inside an
    interval may still differ."""
    for run in runs:
        row = ours.get((one.ability,), {}).get(run.number)
        if run.strategy.slug == one.strategy and row and row["low"] is not None:
            side = "inside" if row["low"] <= one.rate <= row["high"] else "outside"
            yield f"{side} our interval of run {run.number}"


ABILITY = Grouping("ability", "Ability")
# By run: the row over all abilities.
RowsByRun = dict[int, Row]
RowsByAbility = dict[tuple[str, ...], dict[int, Row]]

_SCORE_STRATEGIES = ("vanilla-score", "vanilla", "rubric", "axis", "axis-rubric")
_PAIR_STRATEGIES = (
    "pairwise-verdict", "pairwise", "pairwise-rules", "pairwise-axis", "pairwise-axis-rules"
)  # fmt: skip
# The measure that is printed in the study.
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


def build_rates(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per run: its rate over all error items and by ability, including false alarms."""
    measure = page_parts.get_measure(asked)
    runs = {run.number: run for run in page_parts.select_judging_runs(asked)}
    alone, by_ability = ([row for row in rows if row["run"] in runs] for rows in tables)
    every: RowsByRun = {row["run"]: row for row in alone}
    ordered = sorted(
        by_ability, key=lambda row: undetected.taxonomy_order({"ability": row["ability"]})
    )
    found = page_parts.group_by_run(ordered, "ability")
    told = {row["run"] for row in by_ability}
    lines = [_line(runs[number], every, found, measure) for number in runs if number in told]
    columns = (Column("Run", "run", is_number=False), Column("All errors", "all"), *_columns(found))
    noted = [_with_note(column, measure) for column in columns]
    published = build_lines(asked, [ability for (ability,) in found], found, measure)
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
    faint = list(build_dots(asked, groups, measure))
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
    return cells.read_estimate(row, measure.rate(invariant=page_parts.is_invariant(row)))


def _group(row: Row, measure: RateMeasure) -> str:
    title = ABILITY.title_of(row["ability"])
    return f"{title}: {measure.on_invariant}" if page_parts.is_invariant(row) else title


VIEWS = (
    ResultView(
        slug="abilities",
        title="By ability",
        asks=(TableQuery("undetected", ""), TableQuery("undetected", "ability")),
        build=build_rates,
        studies={"000": TABLES},
        empty=page_parts.NOTHING_DECIDED,
        switches=(page_parts.MEASURE_SWITCH,),
        choices=list_choices,
    ),
)
