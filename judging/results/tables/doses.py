"""How do runs respond to the number of errors (dose), and to the penalty that people expect? The
tables `doses` and `penalties`, and their views of the page Sensitivity."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from math import ceil, floor
from typing import Any

import numpy as np

from annotation.items.taxonomy import Taxonomy
from annotation.labelling.models.labels import SI_ITEM
from annotation.models import Project
from annotation.tasktypes.fields import Field
from charts.axes import RATES, Axis
from judging.models import Outcome, Run
from judging.results import (
    arrays,
    cells,
    chart_parts,
    columns,
    counted,
    drilldown,
    expected_effect,
    lines,
    progress,
)
from judging.results.arrays import Floats, Ints, RunArrays
from judging.results.cells import Cell, Row
from judging.results.columns import Table
from judging.results.page_parts import (
    INTERVAL_WORDS,
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    Switch,
    TableQuery,
)
from judging.strategies import Strategy
from stats import bootstrap, means, rates
from stats.estimates import Estimate
from stats.trend import Trend, estimate_trend

# The score of the perturbed answer minus the gold answer's, from `with_moved`.
SCORE_CHANGE = "moved"
NOT_SCORED_APART_REASON = "the gold answer has no score of its own"
NO_ITEMS_REASON = "no items"
DRAWING_STEP = "drawing clusters"


def tabulate_doses(runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `doses`: for each run and group by fields of outcomes, a row per dose. The dose is
    the number of errors in the answer (`Item.dose`, else a field `dose`). Only error items with a
    dose count.

    `detection` is the rate over the `parsed` items, with Wilson's interval for clustered items.
    `penalty` is the mean of gold minus perturbed score in points of the scale, over the `scored`
    items, with a cluster bootstrap interval. Different doses may be based on different questions;
    `clusters` is the number of questions. A reason is given for every value that is None. Raises
    `UnknownField`.
    """
    runs = list(runs)
    known = counted.load_categories(runs)
    counted.check_fields(by)
    asked, further = counted.load_strategies(runs), (drilldown.DOSE, *by, SCORE_CHANGE)
    dosed = drilldown.filter_dosed(Outcome.objects.with_moved())
    gathered = arrays.load_arrays(runs, further, [drilldown.OWN_DOSE], among=dosed)
    return [
        _row(part, group, ("dose", dose), asked[found.run.pk])
        for found in progress.iterate(gathered, DRAWING_STEP)
        for group, dose, part in _split_items(found, by, _dose_array(found), known)
    ]


def tabulate_dose_trends(runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `dose_trends`: for each run and group by fields of outcomes, the straight lines of
    detection and of the penalty over the doses of the table `doses`, over the same items.

    `detection` is the change of the detection rate with each further error, as a fraction of 1, and
    `penalty` that of the gold score minus the perturbed score, in points of the scale over the
    `scored` items. Intervals and p are those of `stats.trend.estimate_trend`. p tests for a line
    over all doses; it is not adjusted for the number of runs or groups. A reason is given for every
    value that is None. Raises `UnknownField`.
    """
    runs = list(runs)
    known = counted.load_categories(runs)
    counted.check_fields(by)
    asked, further = counted.load_strategies(runs), (drilldown.DOSE, *by, SCORE_CHANGE)
    dosed = drilldown.filter_dosed(Outcome.objects.with_moved())
    return [
        _trend_row(part, group, asked[found.run.pk])
        for found in arrays.load_arrays(runs, further, [drilldown.OWN_DOSE], among=dosed)
        for group, _, part in _split_items(found, by, np.minimum(_dose_array(found), 0), known)
    ]


def tabulate_penalties(
    project: Project, runs: Iterable[Run], by: Sequence[str]
) -> list[dict[str, Any]]:
    """The table `penalties`: for each run and group by fields of outcomes, a row per penalty that
    people expect, the smallest first, with the columns of `doses`.

    `expected` is the answer that more than half of the respondents gave, as a value of the task
    type's field; it is "people disagree" without such a majority, and "nobody said" if nobody
    answered. Score-invariant items have no expected penalty. They have rows of their own, in which
    `detection` is the false-alarm rate. Raises `UnknownField`.
    """
    runs = list(runs)
    known = counted.load_categories(runs)
    counted.check_fields(by)
    asked, said = counted.load_strategies(runs), expected_effect.load_expected_effects(project)
    gathered = arrays.load_arrays(runs, (*by, SCORE_CHANGE), among=Outcome.objects.with_moved())
    # Options of earlier versions of the task type come last.
    order = list(
        dict.fromkeys(
            [SI_ITEM, *expected_effect.effect_order(project), *sorted(set(said.values()))]
        )
    )
    return [
        _row(part, group, ("expected", order[place]), asked[found.run.pk])
        for found in progress.iterate(gathered, DRAWING_STEP)
        for group, place, part in _split_items(
            found, by, _expected_array(found, said, order), known
        )
    ]


def _dose_array(found: RunArrays) -> Ints:
    """The dose of each error item, -1 without one."""
    pairs = zip(found.fields[drilldown.DOSE], found.fields[drilldown.OWN_DOSE.name], strict=True)
    doses = [drilldown.read_dose(held, own) for held, own in pairs]
    return np.where(found.invariant, -1, np.array(doses, dtype=int))


def _expected_array(found: RunArrays, said: Mapping[int, str], order: Sequence[str]) -> Ints:
    """For each item, the position of its expected penalty in the order."""
    places = {name: place for place, name in enumerate(order)}
    of_errors = [places[said.get(item, expected_effect.UNANSWERED)] for item in found.item.tolist()]
    return np.where(found.invariant, places[SI_ITEM], np.array(of_errors, dtype=int))


def _split_items(
    found: RunArrays, by: Sequence[str], keys: Ints, known: Taxonomy
) -> Iterator[tuple[dict[str, str], int, RunArrays]]:
    """The items by group and key, sorted; those with a key below 0 are left out."""
    places: dict[tuple[tuple[str, ...], int], list[int]] = defaultdict(list)
    groups = zip(*(found.fields[name] for name in by), strict=True) if by else repeat(())
    for place, (group, key) in enumerate(zip(groups, keys.tolist(), strict=False)):
        if key >= 0:
            places[group, key].append(place)
    named = {group: dict(zip(by, group, strict=True)) for group, _ in places}
    order = sorted(places, key=lambda one: (known.order_of(named[one[0]]), one[0], one[1]))
    for group, key in order:
        yield named[group], key, found.only(np.array(places[group, key]))


def _row(
    found: RunArrays, group: Mapping[str, str], key: tuple[str, int | str], asked: Strategy
) -> dict[str, Any]:
    parsed = ~np.isnan(found.detected)
    detection = rates.estimate_rate(found.detected, found.cluster)
    penalty = _estimate_penalty(found, [*group.values(), *key])
    return {
        **counted.run_columns(found.run),
        **group,
        key[0]: key[1],
        "total": len(found.item),
        "missing": int((~parsed).sum()),
        "parsed": detection.n,
        "clusters": len(np.unique(found.cluster[parsed])),
        "detected": counted.round_sum(np.nansum(found.detected)),
        **counted.figure_columns("detection", detection),
        "scored": penalty.n,
        **counted.figure_columns("penalty", penalty),
        **_scale_columns(asked, penalty),
    }


def _scale_columns(asked: Strategy, penalty: Estimate) -> dict[str, Any]:
    scale = asked.scale if penalty.n else None
    return {"bottom": scale.low if scale else None, "at_top": scale.high if scale else None}


def _trend_row(found: RunArrays, group: Mapping[str, str], asked: Strategy) -> dict[str, Any]:
    doses, parsed = _dose_array(found), ~np.isnan(found.detected)
    detection = estimate_trend(found.detected, doses, found.cluster)
    penalty = estimate_trend(_penalty_array(found), doses, found.cluster)
    if not penalty.n:
        penalty = replace(penalty, reason=_why_no_penalty(found))
    return {
        **counted.run_columns(found.run),
        **group,
        "total": len(found.item),
        "missing": int((~parsed).sum()),
        "parsed": detection.n,
        "clusters": len(np.unique(found.cluster[parsed])),
        "doses": detection.doses,
        **_trend_columns("detection", detection),
        "scored": penalty.n,
        **_trend_columns("penalty", penalty),
        **_scale_columns(asked, penalty),
    }


def _trend_columns(name: str, one: Trend) -> dict[str, Any]:
    return {**counted.figure_columns(name, one), f"{name}_p": one.p}


def _estimate_penalty(found: RunArrays, filters: Sequence[Any]) -> Estimate:
    """The mean of gold minus perturbed score, over the parsed items that have both."""
    rng = arrays.make_generator("doses", [found.run], *filters)
    one = bootstrap.estimate(means.clustered_mean(_penalty_array(found)), found.cluster, rng)
    return one if one.n else replace(one, reason=_why_no_penalty(found))


def _penalty_array(found: RunArrays) -> Floats:
    """Gold minus perturbed score of each parsed item, nan without both scores."""
    taken = 0 - np.array(found.fields[SCORE_CHANGE], dtype=float)
    taken[np.isnan(found.detected)] = np.nan
    return taken


def _why_no_penalty(found: RunArrays) -> str:
    return NO_ITEMS_REASON if np.isnan(found.detected).all() else NOT_SCORED_APART_REASON


def _share(row: Row, name: str) -> float | None:
    """A penalty as a share of the range of the scale; None without a scale."""
    if row[name] is None or row["at_top"] is None:
        return None
    return float(row[name] / (row["at_top"] - row["bottom"]))


def _penalty_cell(row: Row, of: columns.Leading) -> Cell:
    """The mean penalty. It has a link to its items if it covers all parsed items."""
    found = cells.figure_cell(row, "penalty")
    if row["penalty"] is None:
        return found
    scale = "" if row["at_top"] is None else f"scale {row['bottom']:g} to {row['at_top']:g}"
    href = of.items_url(row, result="parsed") if row["scored"] == row["parsed"] else ""
    return replace(found, n=row["scored"], href=href, note=scale)


DETECTION = columns.Rate(
    "detection",
    "Detected",
    columns.items(result="detected"),
    prefix="detection_",
    missing="",
)
_RESPONSE = (
    columns.Column("total"),
    columns.MISSING,
    columns.Count("parsed", "Items", columns.items(result="parsed")),
    columns.Count("clusters", "Questions"),
    columns.Column("detected"),
    DETECTION,
    *columns.plain("detection_low", "detection_high", "detection_reason", "scored"),
    columns.Custom("penalty", "Penalty", make=_penalty_cell),
    *columns.plain("penalty_low", "penalty_high", "penalty_reason", "bottom", "at_top"),
)
DOSES = Table(
    "doses",
    (
        *columns.RUN,
        columns.FIELDS,
        columns.Custom("dose", "Errors", make=lambda row, of: Cell(str(row["dose"]), row["dose"])),
        *_RESPONSE,
    ),
    lambda project, runs, by: tabulate_doses(runs, by),
    group_by=counted.BY_OUTCOME_FIELDS,
    at_once=columns.GROUP_DRAW_LIMIT,
    of_people=False,
    about="A row per run, group and dose, which is the number of errors in the answer: "
    "detection and penalty.",
    meanings={
        "dose": "number of errors in the answer",
    },
)
TRENDS = Table(
    "dose_trends",
    (
        *columns.RUN,
        columns.FIELDS,
        columns.Column("total"),
        columns.Count("missing", "Missing"),
        columns.Count("parsed", "Items"),
        columns.Count("clusters", "Questions"),
        columns.Count("doses", "Doses"),
        columns.Points(
            "detection",
            "Detection",
            prefix="detection_",
            unit=f"{cells.POINTS_UNIT} per error",
        ),
        *columns.plain("detection_low", "detection_high", "detection_reason"),
        columns.PValue("detection_p", "p of detection", reason="detection_reason"),
        columns.Count("scored", "With both scores"),
        columns.Figure("penalty", "Penalty", unit="score per error"),
        *columns.plain("penalty_low", "penalty_high", "penalty_reason"),
        columns.PValue("penalty_p", "p of penalty", reason="penalty_reason"),
        *columns.plain("bottom", "at_top"),
    ),
    lambda project, runs, by: tabulate_dose_trends(runs, by),
    group_by=counted.BY_OUTCOME_FIELDS,
    of_people=False,
    about="A row per run and group: the straight lines of detection and of the penalty over "
    "the doses.",
    meanings={
        "doses": "number of different doses",
        "detection": "change of the detection rate with each further error, a fraction of 1",
        "detection_p": "p of this slope, not adjusted",
        "penalty": "change of the penalty with each further error, in points of the scale",
        "penalty_p": "p of this slope, not adjusted",
    },
)
PENALTIES = Table(
    "penalties",
    (
        *columns.RUN,
        columns.FIELDS,
        columns.Text(
            "expected",
            "Expected by annotators",
            write=lambda row: row["expected_title"],
            place=lambda row: row["expected_place"],
        ),
        *_RESPONSE,
    ),
    tabulate_penalties,
    group_by=counted.BY_OUTCOME_FIELDS,
    at_once=columns.GROUP_DRAW_LIMIT,
    about="A row per run, group and penalty that people expect: detection and the penalty "
    "that the evaluator gave.",
    meanings={
        "expected": "penalty that more than half of the annotators expect, `people disagree` or "
        "`nobody said`; `score-invariant` for items that should cost nothing",
        "detected": "number of items whose error was detected; in the row `score-invariant` the "
        "number of false alarms",
        "detection": "detected divided by parsed; in the row `score-invariant` the false-alarm "
        "rate",
    },
)
_SHARE_OF_SCALE = columns.Custom(
    "share", "Share of the scale", make=lambda row, of: cells.percent_cell(_share(row, "penalty"))
)
_COLUMNS = ("parsed", "clusters", "missing", "detection", "penalty", _SHARE_OF_SCALE)

TITLES = {"detection": "Detection rate", "penalty": "Penalty, share of the scale"}
DRAWN = {"detection": "Detection rates", "penalty": "Mean penalties as shares of the scale"}
SLOPES = {"detection": "the detection rate", "penalty": "the mean penalty, as share of the scale,"}
CHART_TITLES = {"detection": "Detection", "penalty": "Penalty"}
RESPONSE, TITLE = "response", "In the chart"
# A chart with more lines is unreadable; the table has all of them.
MOST_LINES = 8
HOW_TO_GET_DOSES = (
    "No error item of the chosen runs has a dose (its number of errors). Perturb gold "
    "answers with 1, 2, 4 and 8 errors, or import such items of the same prompt with the "
    "number of errors in a column “dose”. Then have them labelled and start a run."
)


class _Doses(lines.RunGroups):
    """Groups and runs, whose figures link to the items of the row's dose."""

    def items_url(self, row: Row, **which: str) -> str:
        return super().items_url(row, dose=str(row["dose"]), **which)


class _Penalties(lines.RunGroups):
    """Groups and runs, whose figures link to the items of the row's expected penalty."""

    def items_url(self, row: Row, **which: str) -> str:
        expected = {} if row["score_invariant"] else {"expected": row["expected"]}
        return super().items_url(row, **expected, **which)


def _judging_rows(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    """Rows of runs that judge items, with the column `score_invariant` that their groups need. Only
    the table `penalties` has rows of score-invariant items."""
    return [
        {**row, "score_invariant": row.get("expected") == SI_ITEM}
        for row in tables[0]
        if asked.is_judging(row)
    ]


def _with_titles(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    """The rows with the titles of the expected penalties, and their order."""
    rows, field = _judging_rows(asked, tables), expected_effect.find_field(asked.project)
    places = list(dict.fromkeys(row["expected"] for row in rows))
    return [
        {
            **row,
            "expected_title": _title(row["expected"], field),
            "expected_place": places.index(row["expected"]),
        }
        for row in rows
    ]


def _response(row: Row, which: str) -> Estimate:
    """The value to draw, comparable between runs with different scales."""
    if which == "detection":
        return DETECTION.estimate(row)
    value, low, high = (_share(row, f"penalty{end}") for end in ("", "_low", "_high"))
    return Estimate(value, low, high, row["scored"])


def _axis(which: str, found: Sequence[Estimate]) -> Axis:
    """The axis from 0 to 1 for rates; otherwise an axis that ends at the next tenth of the scale
    and may start below 0."""
    return RATES if which == "detection" else _wide_axis(found)


def _wide_axis(found: Iterable[Estimate]) -> Axis:
    ends = chart_parts.list_ends(found)
    return Axis(floor(10 * min([0, *ends])) / 10, ceil(10 * max([0.1, *ends])) / 10)


def _draw_lines(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import doses as charted

    which = asked.switch_value(RESPONSE)
    found = [(_series_name(asked, row), row["dose"], _response(row, which)) for row in rows]
    there = [(series, dose, one) for series, dose, one in found if one.value is not None]
    series = list(dict.fromkeys(series for series, _, _ in there))[:MOST_LINES]
    points = [
        charted.DosePoint(name, dose, one.value, one.low, one.high, one.n)
        for name, dose, one in there
        if name in series and one.value is not None
    ]
    if not points:
        return None
    caption = f"{DRAWN[which]} by the number of errors in the answer, with 95 % intervals."
    if len(series) < len({name for name, _, _ in there}):
        caption += f" The first {MOST_LINES} lines; choose fewer runs or groups to see the rest."
    axis = _axis(which, [one for _, _, one in there])
    spec = charted.draw_lines(points, title=TITLES[which], axis=axis, series=_series_kind(rows))
    return ChartSpec(spec, caption)


def _draw_trends(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    which = asked.switch_value(RESPONSE)
    found = [
        # Each row has a name of its own, so that there is one series without a name.
        ("", lines.chart_label(asked, row), _response(row, which))
        for row in rows
    ]
    caption = f"Change of {SLOPES[which]} with each further error, with 95 % intervals."
    axis = _wide_axis(one for *_, one in found)
    return chart_parts.draw_dots(
        found, title=f"{TITLES[which]}: change per error", caption=caption, axis=axis
    )


def _is_grouped(row: Row) -> bool:
    return bool(set(row) & set(counted.FIELDS))


def _series_kind(rows: Rows) -> str:
    """The title for the lines of a chart: items or runs."""
    return "Items" if any(map(_is_grouped, rows)) else "Run"


def _series_name(asked: PageQuery, row: Row) -> str:
    """The name of a line: the run's name, or, with several runs, the group's name followed by the
    run's number."""
    if not _is_grouped(row):
        return cells.run_name(asked.runs_by_number[row["run"]])
    return lines.chart_label(asked, row).replace(": ", " · ")


def _title(expected: str, field: Field | None) -> str:
    """The title of an expected penalty, from the options of the task if they have one."""
    titles = {str(one.value): one.title for one in (field.options if field else ())}
    own = {
        SI_ITEM: "None: score-invariant",
        expected_effect.DISAGREE: "Annotators disagree",
        expected_effect.UNANSWERED: "No answer",
    }
    return own.get(expected) or titles.get(expected, expected)


def _draw_expected(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    which = asked.switch_value(RESPONSE)
    found = [
        (_series_name(asked, row), row["expected_title"], _response(row, which)) for row in rows
    ]
    caption = f"{DRAWN[which]} by expected penalty, with 95 % intervals."
    axis = _axis(which, [one for _, _, one in found])
    return chart_parts.draw_dots(
        found, title=TITLES[which], caption=caption, series=_series_kind(rows), axis=axis
    )


VIEWS = (
    ResultView(
        slug="doses",
        title="Dose and response",
        asks=(TableQuery(DOSES),),
        figures=("rate", "penalty"),
        build=lines.Lines(
            DOSES,
            "Dose and response",
            ("dose", *_COLUMNS),
            "Detection and penalty as an answer contains more errors. Penalty: gold score minus "
            f"perturbed score, mean over items with both. {INTERVAL_WORDS} "
            "Not every answer has room for many errors, so doses may cover different questions: "
            "check the number of questions before you compare.",
            _draw_lines,
            _judging_rows,
            _Doses,
        ),
        studies={},
        empty=HOW_TO_GET_DOSES,
        switches=(lines.group_switch(lines.BY_RUN), Switch(RESPONSE, TITLE, CHART_TITLES)),
    ),
    ResultView(
        slug="dose-trend",
        title="Trend over doses",
        asks=(TableQuery(TRENDS),),
        figures=("trend",),
        build=lines.Lines(
            TRENDS,
            "Trend over doses",
            (
                "parsed",
                "clusters",
                "missing",
                "doses",
                "detection",
                "detection_p",
                "scored",
                "penalty",
                "penalty_p",
            ),
            "Do detection and penalty rise with the number of errors? The slope of a straight "
            "line through all doses: the change with each further error, with 95 % interval. p: "
            "test for no trend over questions (a score test that allows several items a question), "
            "not adjusted for the number of lines. A response that levels off is no straight line; "
            "look at “Dose and response”. Where high doses come from other questions than low "
            "doses, the slope also compares these questions.",
            _draw_trends,
            _judging_rows,
        ),
        studies={},
        empty=HOW_TO_GET_DOSES,
        switches=(lines.group_switch(lines.BY_RUN), Switch(RESPONSE, TITLE, CHART_TITLES)),
    ),
    ResultView(
        slug="penalties",
        title="Expected and given penalty",
        asks=(TableQuery(PENALTIES),),
        figures=("rate", "penalty"),
        build=lines.Lines(
            PENALTIES,
            "Expected and given penalty",
            ("expected", *_COLUMNS),
            "The penalty that a good evaluator should give according to annotators, next to the "
            "penalty that the runs gave. A value counts only if more than half of the annotators "
            "chose it. Score-invariant items should get no penalty; a detection there is a false "
            "alarm. Penalty: gold score minus perturbed score.",
            _draw_expected,
            _with_titles,
            _Penalties,
            screen_words="To collect expected penalties, a lead turns on “Expected effect” in the "
            "settings.",
        ),
        studies={},
        empty="The chosen runs have no outcomes of items with a final label.",
        switches=(
            lines.group_switch(lines.BY_RUN),
            Switch(RESPONSE, TITLE, dict(reversed(CHART_TITLES.items()))),
        ),
    ),
)
