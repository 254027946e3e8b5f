"""Published figures beside one's own: chosen by boxes, on lines and as marks of their own."""

from collections.abc import Iterable, Sequence

from judging.models import Run
from judging.results import printed
from judging.results.printed import Printed
from judging.views.results import cells
from judging.views.results.cells import Row
from judging.views.results.dots import Dot
from judging.views.results.grids import Cell, Line
from judging.views.results.kinds import Asked, Choice, Choices
from judging.views.results.measures import Measure
from stats.estimates import Estimate

NAME = "published"
SAME = "same"
Series = tuple[str, str, str]
# Our rows by ability and the number of the run.
Ours = dict[tuple[str, ...], dict[int, Row]]


def choices(asked: Asked) -> list[Choices]:
    """The series of study 000's tables 3 to 5, and all those of the chosen runs' strategies."""
    said = asked.query.getlist(NAME)
    every = dict.fromkeys(one.series for one in printed.overview())
    found = [Choice(SAME, "The strategies of the chosen runs", SAME in said)]
    found += [Choice("/".join(one), name(one), "/".join(one) in said) for one in every]
    return [Choices(NAME, "Published figures of study 000", found)]


def name(series: Series) -> str:
    table, strategy, model = series
    return f"Table {table} · {strategy} · {model}"


def chosen(asked: Asked) -> dict[Series, dict[str, Printed]]:
    """What is shown, by series and ability."""
    said = set(asked.query.getlist(NAME))
    ours = {run.strategy.slug for run in asked.runs} if SAME in said else set()
    found: dict[Series, dict[str, Printed]] = {}
    for one in printed.overview():
        if "/".join(one.series) in said or one.strategy in ours:
            found.setdefault(one.series, {})[one.ability] = one
    return found


def lines(asked: Asked, abilities: Sequence[str], ours: Ours, measure: Measure) -> list[Line]:
    """A line a series; where a chosen run has its strategy, on which side of our interval it is."""
    return [
        Line(
            (
                Cell(name(series), name(series), note=_denominators(found), is_number=False),
                Cell(reason="not printed"),
                *(_cell(asked.runs, found.get(one), ours, measure) for one in abilities),
            ),
            kind="published",
        )
        for series, found in chosen(asked).items()
    ]


def dots(asked: Asked, title: dict[str, str], measure: Measure) -> Iterable[Dot]:
    """The same as marks, on the groups with these titles by ability."""
    for series, found in chosen(asked).items():
        for ability, one in found.items():
            if ability in title:
                yield name(series), title[ability], _shown(one, measure)


def _shown(one: Printed, measure: Measure) -> Estimate:
    found, such = one.estimate(), measure.rate(invariant=one.invariant)
    row = {"rate": found.value, "low": found.low, "high": found.high, "n": found.n}
    return cells.estimate({**row, "reason": found.reason}, such._replace(n="n"))


def _cell(runs: Iterable[Run], one: Printed | None, ours: Ours, measure: Measure) -> Cell:
    if one is None:
        return Cell(reason="not printed")
    such = measure.rate(invariant=one.invariant)._replace(n="n", missing="", bad="")
    found = one.estimate()
    row = {"rate": found.value, "low": found.low, "high": found.high, "n": found.n}
    said = list(_sides(runs, one, ours))
    if one.reason and one.reason != found.reason:
        said.append(one.reason)
    return cells.rate({**row, "reason": found.reason}, such, note="; ".join(said))


def _denominators(found: dict[str, Printed]) -> str:
    said = dict.fromkeys(one.denominator for one in found.values() if one.denominator)
    return f"study 000; {', '.join(printed.DENOMINATORS[name] for name in said)}"


def _sides(runs: Iterable[Run], one: Printed, ours: Ours) -> Iterable[str]:
    """Never "agrees": a figure inside an interval may differ all the same."""
    for run in runs:
        row = ours.get((one.ability,), {}).get(run.number)
        if run.strategy.slug == one.strategy and row and row["low"] is not None:
            side = "inside" if row["low"] <= one.rate <= row["high"] else "outside"
            yield f"{side} our interval of run {run.number}"
