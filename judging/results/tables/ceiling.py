"""Does an evaluator agree with people as well as people with each other? The tables `ceiling` and
`alt_test` (the alternative annotator test), and their views of the page Against people."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from annotation.models import Project
from judging.models import Run
from judging.results import (
    arrays,
    cells,
    chart_parts,
    columns,
    correlations,
    counted,
    lines,
    metric_lines,
    paired_scores,
)
from judging.results.arrays import Floats
from judging.results.cells import Cell, Row
from judging.results.columns import Table
from judging.results.correlations import CORRELATIONS, ERRORS, RMSE
from judging.results.metric_lines import Metrics, metric_view
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    Rows,
    Switch,
    TableQuery,
)
from judging.results.paired_scores import PairedScores
from judging.results.raters import load_raters
from judging.results.tables import alignment
from judging.results.tables.alignment import MEASURE_PARAMETER, measure_axis, measure_switch
from stats import bootstrap, ceiling
from stats.ceiling import SIGNIFICANT, AltTest, RaterCeiling
from stats.estimates import Estimate
from stats.paired import ONE_CLUSTER

# The measures of the ceiling: rank order, linear relation, distance.
MEASURES = ("rho", "pearson", RMSE)
CORRELATIONS_ONLY = "only for correlations"
# How much worse the evaluator may be, since it costs less than crowds, trained people, experts.
EPSILONS = {0.1: "crowd", 0.15: "trained annotators", 0.2: "experts"}


def tabulate_ceiling(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The table `ceiling`: each person against the mean of the others, and the evaluator against
    the same means on the same items; rows without a rater are the means over people.

    `difference` is the evaluator's figure minus the person's. If it is above 0, the evaluator is
    closer than the person (for a correlation) or farther away (for an error). `bound` is the
    correlation that a perfect evaluator would have with these means (`stats.ceiling.rater_bounds`).
    Errors need the same scale on both sides. Raises `UnknownField`.
    """
    people = load_raters(project)
    for named, sides in correlations.split_scores(project, runs, by):
        table = people.numbers_of(sides.metric, sides.position)
        for name in MEASURES:
            if name in ERRORS and not sides.metric.is_comparable:
                continue
            found = ceiling.rater_ceilings(
                table, sides.evaluator, CORRELATIONS.get(name) or ERRORS[name]
            )
            mean = ceiling.mean_ceiling(found)
            every = [*found, *([mean] if mean else [])]
            which = [*named.values(), name]
            rows = _ceiling_rows(every, sides, which)
            bounds = _estimate_bounds(table, sides, which)
            for one, row, bound in zip(every, rows, bounds, strict=True):
                rater = people.people[one.rater] if one.rater >= 0 else None
                of_bound = counted.figure_columns("bound", bound)
                yield {**named, "measure": name, "rater": rater, **row, **of_bound}


def tabulate_alt_test(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The table `alt_test`: may the evaluator replace a person? (`stats.ceiling.alt_test`)

    For each `epsilon` a row per person, and one without a rater for all: the mean advantage as
    `evaluator`, the share of people that the evaluator beats as `wins`, and whether this share is
    half or more. Closeness is the distance of numbers, so both sides need the same scale. Raises
    `UnknownField`.
    """
    people = load_raters(project)
    for named, sides in correlations.split_scores(project, runs, by):
        if not sides.metric.is_comparable:
            continue
        table = people.numbers_of(sides.metric, sides.position)
        for epsilon in EPSILONS:
            found = ceiling.alt_test(table, sides.evaluator, sides.cluster, epsilon, "interval")
            for row in _alt_test_rows(found, people.people):
                yield {**named, "epsilon": epsilon, **row}


def _ceiling_rows(
    every: Sequence[RaterCeiling], sides: PairedScores, which: list[Any]
) -> Iterator[dict[str, Any]]:
    figures = [
        figure
        for one in every
        for figure in (
            one.people, one.evaluator, bootstrap.subtract_figures(one.evaluator, one.people),
        )
    ]  # fmt: skip
    rng = arrays.make_generator("ceiling", [sides.run], *which)
    found = bootstrap.estimates(figures, sides.cluster, rng)
    for own, its, apart in zip(found[::3], found[1::3], found[2::3], strict=True):
        yield {
            "n": own.n,
            "people": own.value,
            "people_low": own.low,
            "people_high": own.high,
            "evaluator": its.value,
            "evaluator_low": its.low,
            "evaluator_high": its.high,
            "difference": apart.value,
            "low": apart.low,
            "high": apart.high,
            "reason": own.reason or its.reason or apart.reason or None,
        }


def _estimate_bounds(table: Floats, sides: PairedScores, which: list[Any]) -> list[Estimate]:
    """The bound of each row of a measure, the last that of their mean."""
    measure = which[-1]
    found = ceiling.rater_bounds(table, sides.evaluator, ranks=measure == "rho")
    figures = [*found, ceiling.mean_figure(found)] if found else []
    if measure in ERRORS:
        return [Estimate(None, None, None, one.n, CORRELATIONS_ONLY) for one in figures]
    rng = arrays.make_generator("ceiling", [sides.run], *which, "bound")
    return bootstrap.estimates(figures, sides.cluster, rng)


def _alt_test_rows(found: AltTest, people: Sequence[str]) -> Iterator[dict[str, Any]]:
    for one in found.raters:
        row = {"rater": people[one.rater], "n": one.n, "evaluator": one.evaluator}
        row |= {"people": one.people, "p": one.p, "q": one.q, "wins": None, "passed": None}
        yield {**row, "reason": ONE_CLUSTER if one.p is None else None}
    yield {
        "rater": None,
        "n": sum(one.n for one in found.raters) or None,
        "evaluator": found.advantage,
        "people": None,
        "p": None,
        "q": None,
        "wins": found.wins,
        "passed": found.passed,
        "reason": found.reason or None,
    }


MEAN = "Mean over people"
EMPTY = "This needs items rated independently by two or more annotators."


class _Persons(Metrics):
    """The groups, metric and run. Figures link to the items with numbers from the person, another
    person and the evaluator."""

    def items_url(self, row: Row, **which: str) -> str:
        group = {name: row[name] for name in self.fields}
        told = {name: row[name] for name in ("metric", "off_scale", "rater")}
        rated = json.dumps({**told, "group": group}, ensure_ascii=False)
        return cells.outcomes_url(self.runs[row["run"]], rated=rated, counted="yes")


def _interval_cell(
    value: float | None, low: float | None, high: float | None, reason: str | None
) -> Cell:
    interval = (
        "" if low is None else f"{cells.number_cell(low).text} to {cells.number_cell(high).text}"
    )
    return Cell(cells.number_cell(value).text, value, interval=interval, reason=reason or "")


def _side(name: str, title: str, prefix: str = "") -> columns.Custom:
    def cell(row: Row, of: columns.Leading) -> Cell:
        return _interval_cell(row[name], row[f"{prefix}low"], row[f"{prefix}high"], row["reason"])

    return columns.Custom(name, title, make=cell)


def _share(name: str, title: str) -> columns.Custom:
    def cell(row: Row, of: columns.Leading) -> Cell:
        if row[name] is None:
            return Cell(reason=row["reason"] or "")
        return cells.percent_cell(row[name])

    return columns.Custom(name, title, make=cell)


def _wins_cell(row: Row, of: columns.Leading) -> Cell:
    return Cell("") if row["rater"] else Cell(cells.percent_cell(row["wins"]).text, row["wins"])


def _verdict_cell(row: Row, of: columns.Leading) -> Cell:
    if row["q" if row["rater"] else "passed"] is None:
        return Cell(reason=row["reason"] or "", is_number=False)
    if row["rater"]:
        return cells.text_cell("beaten" if row["q"] < SIGNIFICANT else "not beaten")
    return cells.text_cell("passes" if row["passed"] else "does not pass")


_COUNTED = (
    *columns.RUN,
    *columns.plain("total", "missing", "metric"),
    columns.FIELDS,
    columns.Column("off_scale"),
)
_RATER = columns.Text(
    "rater",
    "Person",
    write=lambda row: row["rater"] or MEAN,
    place=lambda row: row["rater"] or "",
)
_ITEMS = columns.Count(
    "n", "Items", columns.items(), note=lambda row: "" if row["rater"] else "over people"
)
CEILING = Table(
    "ceiling",
    (
        *_COUNTED,
        columns.Column("measure"),
        _RATER,
        _ITEMS,
        _side("people", "The person", "people_"),
        *columns.plain("people_low", "people_high"),
        _side("evaluator", "The evaluator", "evaluator_"),
        *columns.plain("evaluator_low", "evaluator_high"),
        _side("difference", "Evaluator minus person"),
        *columns.plain("low", "high", "reason"),
        columns.Figure("bound", "A perfect evaluator"),
        *columns.plain("bound_low", "bound_high", "bound_reason"),
    ),
    tabulate_ceiling,
    group_by=paired_scores.BY_ITEM_FIELDS_AND_LENGTH,
    at_once=columns.GROUP_DRAW_LIMIT,
    about="A row per run, metric, group, measure and rater: each person against the mean of "
    "the others, and the evaluator against the same means; rows without a rater are "
    "means over people.",
    meanings={
        "total": "number of items of the group with a number from people",
        "missing": "number of items of the group with a number from people, but not from the "
        "evaluator",
        "measure": "`rho` (Spearman), `pearson` or `rmse`",
        "rater": "name of the person in the project; empty in rows of means over people",
        "n": "number of items with numbers from this person, another one and the evaluator; in "
        "rows of means, of items that count for any person",
        "people": "the measure between the person's numbers and the mean of the others'",
        "evaluator": "the measure between the evaluator's numbers and the same means",
        "difference": "evaluator minus person; above 0, the evaluator is closer to the others for "
        "a correlation, and farther away for RMSE",
        "low": "lower end of the 95 % interval of `difference`",
        "high": "upper end of this interval",
        "reason": "why one of these figures or its interval is empty",
        "bound": "correlation that a perfect evaluator would have with the same means; empty for "
        "RMSE",
    },
)
ALT_TEST = Table(
    "alt_test",
    (
        *_COUNTED,
        columns.Column("epsilon"),
        _RATER,
        _ITEMS,
        _share("evaluator", "Evaluator as close"),
        _share("people", "Annotator as close"),
        columns.PValue("p", "p"),
        columns.PValue("q", "q"),
        columns.Custom("wins", "Annotators beaten", make=_wins_cell),
        columns.Custom("passed", "Verdict", make=_verdict_cell, is_text=True),
        columns.Column("reason"),
    ),
    tabulate_alt_test,
    group_by=paired_scores.BY_ITEM_FIELDS_AND_LENGTH,
    about="A row per run, metric, group and rater: the alternative annotator test, which asks "
    "whether the evaluator may replace a person.",
    meanings={
        "total": "number of items of the group with a number from people",
        "missing": "number of items of the group with a number from people, but not from the "
        "evaluator",
        "epsilon": "how much more often than the evaluator the person must win not to be beaten: "
        "0.1 for crowds, 0.15 for trained annotators, 0.2 for experts",
        "rater": "name of the person in the project; empty in the row about all",
        "n": "number of items with numbers from this person, another one and the evaluator; in "
        "the row about all the sum over people",
        "evaluator": "share of these items on which the evaluator is at least as close to the "
        "others as the person is; in the row about all the mean over people",
        "people": "share of these items on which the person is at least as close as the evaluator",
        "p": "one-sided p of the hypothesis that the person wins more often than the evaluator, "
        "by `epsilon` or more",
        "q": "p adjusted for all people (Benjamini and Yekutieli)",
        "wins": "share of the people with q below 0.05, whom the evaluator beats",
        "passed": "true if `wins` is one half or more",
    },
)
SIDES = {"people": "The person", "evaluator": "The evaluator"}
EPSILON_SWITCH = Switch(
    "epsilon", "Epsilon", {f"{one:g}": f"{one:g}, {title}" for one, title in EPSILONS.items()}
)


def _of_measure(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    measure = asked.switch_value(MEASURE_PARAMETER)
    rows = [row for row in tables[0] if row["measure"] == measure]
    return Metrics(asked, rows).ordered(rows)


def _of_epsilon(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    epsilon = float(asked.switch_value(EPSILON_SWITCH.name))
    rows = [row for row in tables[0] if row["epsilon"] == epsilon]
    return Metrics(asked, rows).ordered(rows)


def _draw_ceiling(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    page, measure = Metrics(asked, rows), asked.switch_value(MEASURE_PARAMETER)
    found = [
        (title, _person(page, row), chart_parts.read_estimate(row, name))
        for row in rows[: metric_lines.MOST_GROUPS]
        for name, title in SIDES.items()
    ]
    title = alignment.MEASURES[measure]
    caption = (
        f"{title} with the mean of the other annotators, for each annotator and for the "
        "evaluator on the same items, with 95 % intervals."
    )
    limits = {
        _person(page, row): row["bound"]
        for row in rows[: metric_lines.MOST_GROUPS]
        if row["bound"] is not None
    }
    if limits:
        caption += " The line across a row is what a perfect evaluator would reach."
    axis = measure_axis(measure, (one for *_, one in found))
    return chart_parts.draw_dots(
        found,
        title=title,
        caption=caption,
        series="Of",
        axis=axis,
        limits=limits,
        limit_title="A perfect evaluator",
    )


def _draw_alt_test(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    page = Metrics(asked, rows)
    found = [
        (title, _person(page, row), Estimate(row[name], None, None, row["n"]))
        for row in rows[: metric_lines.MOST_GROUPS]
        if row["rater"]
        for name, title in SIDES.items()
    ]
    caption = (
        "Share of items on which the annotator, or the evaluator, is at least as close to "
        "the other annotators. Ties count for both."
    )
    return chart_parts.draw_dots(found, title="At least as close", caption=caption, series="Of")


def _person(page: Metrics, row: Row) -> str:
    """The label of a person in charts: person, group and metric, with the run on further lines."""
    run = cells.run_name(page.runs[row["run"]], ": ")
    who = ", ".join(part for part in (row["rater"] or MEAN, page.group(row)) if part)
    is_told = page.asked.query.get("metric")
    return f"{who}: {run}" if is_told else f"{who}, {page.title_of(row)}: {run}"


VIEWS = (
    metric_view(
        slug="ceiling",
        title="Human ceiling",
        asks=(TableQuery(CEILING),),
        figures=("ceiling", "correlation", "distance"),
        build=lines.Lines(
            CEILING,
            "Human ceiling",
            ("rater", "n", "people", "evaluator", "difference", "bound"),
            "Each annotator is compared with the mean of the other annotators; the evaluator is "
            "compared with the same means on the same items. An annotator’s figure is what one "
            "more person would reach, not the best that is possible. A perfect evaluator: the "
            "correlation of true values with these means, the root of the reliability of the mean "
            "(Spearman-Brown from Krippendorff’s alpha; for ρ from ranks, an approximation). If "
            "the reliability of one annotator is .5, one more reaches .58 against the mean of two "
            "others, and a perfect evaluator .82. Evaluator minus person: above 0, the evaluator "
            "is better for correlations and worse for errors.",
            _draw_ceiling,
            _of_measure,
            _Persons,
        ),
        studies={},
        switches=(measure_switch({name: alignment.MEASURES[name] for name in MEASURES}),),
        empty=EMPTY,
    ),
    metric_view(
        slug="alt-test",
        title="Alternative annotator test",
        asks=(TableQuery(ALT_TEST),),
        figures=("alt_test",),
        build=lines.Lines(
            ALT_TEST,
            "Alternative annotator test",
            ("rater", "n", "evaluator", "people", "p", "q", "wins", "passed"),
            "The alternative annotator test (Calderon, Reichart and Dror 2025): on each item, is "
            "the evaluator or the annotator at least as close to the other annotators? An "
            "annotator is beaten if the evaluator's share is less than ε below the annotator's, "
            "with q under 0.05 (Benjamini-Yekutieli). The test is passed if at least half of the "
            "annotators are beaten. ε is the advantage granted for lower cost: 0.1 for crowd "
            "workers, 0.15 for trained annotators, 0.2 for experts. The test needs three "
            "annotators with 50 shared items each, and the same scale on both sides. If "
            "annotators hardly agree with each other, even random answers can pass: check their "
            "agreement first.",
            _draw_alt_test,
            _of_epsilon,
            _Persons,
        ),
        studies={},
        switches=(EPSILON_SWITCH,),
        empty=EMPTY,
    ),
)
