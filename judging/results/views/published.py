"""Published figures beside one's own: chosen by boxes, on lines and as marks of their own."""

from collections.abc import Iterable, Sequence

from judging.models import Run
from judging.results import published_figures
from judging.results.published_figures import PublishedRate
from judging.results.views import cells
from judging.results.views.cells import Row
from judging.results.views.dot_charts import Dot
from judging.results.views.grids import Cell, GridLine
from judging.results.views.measures import RateMeasure
from judging.results.views.page_parts import Choice, ChoiceGroup, PageQuery
from stats.estimates import Estimate

PUBLISHED_PARAMETER = "published"
SAME_STRATEGIES = "same"
SeriesKey = tuple[str, str, str]
# Our rows by ability and the number of the run.
OwnRows = dict[tuple[str, ...], dict[int, Row]]


def list_choices(asked: PageQuery) -> list[ChoiceGroup]:
    """The series of study 000's tables 3 to 5, and all those of the chosen runs' strategies."""
    said = asked.query.getlist(PUBLISHED_PARAMETER)
    every = dict.fromkeys(one.series for one in published_figures.load_overview())
    found = [Choice(SAME_STRATEGIES, "The strategies of the chosen runs", SAME_STRATEGIES in said)]
    found += [Choice("/".join(one), series_title(one), "/".join(one) in said) for one in every]
    return [ChoiceGroup(PUBLISHED_PARAMETER, "Published figures of study 000", found)]


def series_title(series: SeriesKey) -> str:
    table, strategy, model = series
    return f"Table {table} · {strategy} · {model}"


def select_series(asked: PageQuery) -> dict[SeriesKey, dict[str, PublishedRate]]:
    """What is shown, by series and ability."""
    said = set(asked.query.getlist(PUBLISHED_PARAMETER))
    ours = {run.strategy.slug for run in asked.runs} if SAME_STRATEGIES in said else set()
    found: dict[SeriesKey, dict[str, PublishedRate]] = {}
    for one in published_figures.load_overview():
        if "/".join(one.series) in said or one.strategy in ours:
            found.setdefault(one.series, {})[one.ability] = one
    return found


def build_lines(
    asked: PageQuery, abilities: Sequence[str], ours: OwnRows, measure: RateMeasure
) -> list[GridLine]:
    """A line a series; where a chosen run has its strategy, on which side of our interval it is."""
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
                *(_cell(asked.runs, found.get(one), ours, measure) for one in abilities),
            ),
            kind="published",
        )
        for series, found in select_series(asked).items()
    ]


def build_dots(asked: PageQuery, title: dict[str, str], measure: RateMeasure) -> Iterable[Dot]:
    """The same as marks, on the groups with these titles by ability."""
    for series, found in select_series(asked).items():
        for ability, one in found.items():
            if ability in title:
                yield series_title(series), title[ability], _to_estimate(one, measure)


def _to_estimate(one: PublishedRate, measure: RateMeasure) -> Estimate:
    found, such = one.estimate(), measure.rate(invariant=one.invariant)
    row = {"rate": found.value, "low": found.low, "high": found.high, "n": found.n}
    return cells.read_estimate({**row, "reason": found.reason}, such._replace(n="n"))


def _cell(
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
    return f"study 000; {', '.join(published_figures.DENOMINATORS[name] for name in said)}"


def _compare_intervals(runs: Iterable[Run], one: PublishedRate, ours: OwnRows) -> Iterable[str]:
    """Never "agrees": a figure inside an interval may differ all the same."""
    for run in runs:
        row = ours.get((one.ability,), {}).get(run.number)
        if run.strategy.slug == one.strategy and row and row["low"] is not None:
            side = "inside" if row["low"] <= one.rate <= row["high"] else "outside"
            yield f"{side} our interval of run {run.number}"
