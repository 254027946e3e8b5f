"""The published rates of study 000's tables 3 to 5, to compare with ours on the page Overview.

Checkboxes add them. They have lines and marks of their own.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from annotation.items.taxonomy import Taxonomy
from annotation.labelling.models.labels import SI_ITEM
from judging import strategies
from judging.models import Run
from judging.results.cells import Cell, GridLine, Row
from judging.results.chart_parts import Dot
from judging.results.columns import Leading, Rate
from judging.results.page_parts import Choice, ChoiceGroup, PageQuery
from stats.estimates import Estimate
from stats.rates import ClusterSums, clustered_wilson
from stats.sensitivity import youden_j

PUBLISHED_FOLDER = Path(__file__).parent / "published"
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
    def column(self) -> str:
        """The column in which the rate stands: that of its ability. Of pairs of score-invariant
        items, the study asks that both answers be called good (section 5.4)."""
        is_pair = strategies.load_all()[self.strategy].frame == "pair"
        return BOTH_GOOD if self.ability == SI_ITEM and is_pair else self.ability

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
BOTH_GOOD = "both_good_rate"


@dataclass(frozen=True)
class RateColumn:
    """A column of the page: one rate of our runs, whose rows are by run number, in one ability."""

    title: str
    note: str
    rate: Rate
    rows: Mapping[int, Row]

    @property
    def group(self) -> str:
        """The name of the column in a chart."""
        return f"{self.title}: {self.note}" if self.note else self.title


# By ability, or BOTH_GOOD.
RateColumns = dict[str, RateColumn]


def covers(known: Taxonomy) -> bool:
    """True if study 000 published rates for any of these abilities."""
    return bool(known.ability_names().keys() & {one.ability for one in load_overview()})


def list_choices(asked: PageQuery) -> list[ChoiceGroup]:
    """The series of study 000's tables 3 to 5, and a choice of all series of the chosen runs'
    strategies; [] for a project without any of the study's abilities."""
    if not covers(asked.categories):
        return []
    said = asked.query.getlist(PUBLISHED_PARAMETER)
    every = dict.fromkeys(one.series for one in load_overview())
    found = [Choice(SAME_STRATEGIES, "The strategies of the chosen runs", SAME_STRATEGIES in said)]
    found += [Choice("/".join(one), series_title(one), "/".join(one) in said) for one in every]
    return [ChoiceGroup(PUBLISHED_PARAMETER, "Published figures of study 000", found)]


def series_title(series: SeriesKey) -> str:
    table, strategy, model = series
    return f"Table {table} · {strategy} · {model}"


def select_series(asked: PageQuery) -> dict[SeriesKey, dict[str, PublishedRate]]:
    """The chosen published rates, by series and column."""
    said = set(asked.query.getlist(PUBLISHED_PARAMETER))
    ours = {run.strategy.slug for run in asked.runs} if SAME_STRATEGIES in said else set()
    found: dict[SeriesKey, dict[str, PublishedRate]] = {}
    for one in load_overview():
        if "/".join(one.series) in said or one.strategy in ours:
            found.setdefault(one.series, {})[one.column] = one
    return found


def build_lines(asked: PageQuery, shown: RateColumns) -> list[GridLine]:
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
                *(_published_cell(asked, found.get(name), one) for name, one in shown.items()),
            ),
            kind="published",
        )
        for series, found in select_series(asked).items()
    ]


def build_dots(asked: PageQuery, shown: RateColumns) -> Iterable[Dot]:
    """The chosen published rates as marks in a chart."""
    for series, found in select_series(asked).items():
        for name, one in found.items():
            if name in shown:
                of = shown[name]
                yield series_title(series), of.group, of.rate.estimate(_to_row(one, of.rate))


def _to_row(one: PublishedRate, rate: Rate) -> Row:
    """The columns that a rate is read from."""
    found = one.estimate()
    ends = {"low": found.low, "high": found.high, "reason": found.reason}
    named = {f"{rate.prefix}{end}": value for end, value in ends.items()}
    return {rate.name: found.value, rate.n: found.n, **named}


def _published_cell(asked: PageQuery, one: PublishedRate | None, of: RateColumn) -> Cell:
    if one is None:
        return Cell(reason="not printed")
    said = list(_compare_intervals(asked.runs, one, of))
    if one.reason and one.reason != one.estimate().reason:
        said.append(one.reason)
    rate = replace(of.rate, link=None, n_link=None, missing="", missing_link=None, bad="")
    cell = rate.cell(_to_row(one, rate), Leading(asked, ()))
    return replace(cell, note="; ".join(said))


def _denominators(found: dict[str, PublishedRate]) -> str:
    said = dict.fromkeys(one.denominator for one in found.values() if one.denominator)
    return f"study 000; {', '.join(DENOMINATORS[name] for name in said)}"


def _compare_intervals(runs: Iterable[Run], one: PublishedRate, of: RateColumn) -> Iterable[str]:
    """Notes that compare a rate with our intervals. They never say "agrees": a rate inside an
    interval may still differ."""
    rate = replace(of.rate, rest=False)
    for run in runs:
        row = of.rows.get(run.number)
        if run.strategy.slug == one.strategy and row:
            ours = rate.estimate(row)
            if ours.low is not None and ours.high is not None:
                yield _compare_with(one.estimate(), ours, f"our interval of {run.mention}")


def _compare_with(printed: Estimate, ours: Estimate, interval: str) -> str:
    """Whether the printed rate is inside our interval. If it is not, also whether its own error
    could explain that: Newcombe's interval of the difference of both rates then contains 0."""
    assert printed.value is not None
    assert ours.low is not None
    assert ours.high is not None
    if ours.low <= printed.value <= ours.high:
        return f"inside {interval}"
    # J is such a difference of two rates.
    apart = youden_j(ours, printed)
    if apart.low is None or apart.high is None:
        return f"outside {interval}; its own error is not known"
    if apart.low <= 0 <= apart.high:
        return f"outside {interval}, but its own error could explain that"
    return f"outside {interval}, by more than its own error explains"
