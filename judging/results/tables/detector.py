"""How well are natural errors detected? The table `detector`, the table `detector_ranges` with its
intervals and its bounds due to missing verdicts, and the page Detector (study 001, tables 4, 6, 8).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from django.db.models import Count

from annotation.models import Project
from annotation.reports.grouping import Grouping
from annotation.templatetags import figures as written
from judging.models import Run
from judging.results import (
    arrays,
    cells,
    chart_parts,
    columns,
    detector_lines,
    detector_verdicts,
    detectors,
    group_fields,
    lines,
    progress,
)
from judging.results.cells import Cell, Row
from judging.results.chart_parts import Dot
from judging.results.columns import Table
from judging.results.detector_lines import BASELINES, Detectors
from judging.results.detector_verdicts import OTHER_ITEMS_REASON, DetectorLine
from judging.results.detectors import FIGURES, MEAN, PEOPLE, GroupKey
from judging.results.page_parts import (
    INTERVAL_WORDS,
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    Switch,
    TableQuery,
    study_figures,
)
from judging.results.tables import error_kinds, prompts
from stats import bootstrap, detection
from stats.detection import ConfusionCounts, DetectionScores, Measure
from stats.estimates import Estimate

if TYPE_CHECKING:
    from charts.tradeoff import PrecisionRecall

DRAWING_STEP = "drawing clusters"
RATES: tuple[Literal["accuracy", "precision", "recall"], ...] = ("accuracy", "precision", "recall")
BOOTSTRAPPED: tuple[Measure, ...] = ("f1", "mcc")
# Baselines: say "error" at random, as often as errors occur; always say "error" (tables 4, 8).
BASELINE_SCORES = {
    "random": detection.score_at_random,
    "always-error": detection.score_always_error,
}


def tabulate_detector(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> list[dict[str, Any]]:
    """Compute the rows of the table `detector`: the scores of every run that judged error items, by
    fields of the items. These are followed by the baselines on all these items, people on their
    baseline items, and the means.

    `by` names columns of items (category, origin ...) or own fields of items; if it is empty, there
    is one row per run. If an endpoint has several runs of one prompt over a group, the mean uses
    the last one. `n` counts items and `invalid` those without a verdict; for a mean, over prompts
    or over people, `invalid` is a mean as well. A mean over prompts has no run, and a baseline
    (chance or people) no endpoint either. Raises `UnknownField`.
    """
    named = detectors.check_groupings(project, by)
    scored = list(_run_rows(runs, named))
    rows = [row for row, _ in scored]
    people = _people_rows(project, named) if rows else ()
    return [*rows, *_baseline_rows(runs, named), *people, *_mean_rows(scored, by)]


def _run_rows(
    runs: Sequence[Run], named: Sequence[Grouping]
) -> Iterator[tuple[dict[str, Any], DetectionScores]]:
    """The row of each run and group, with its scores."""
    counts: dict[int, dict[GroupKey, ConfusionCounts]] = defaultdict(
        lambda: defaultdict(ConfusionCounts)
    )
    for group, is_error, row in _count_outcomes(runs, named, "run", "result", n=Count("pk")):
        counts[row["run"]][group] += _to_counts(
            is_error, detectors.VERDICT_BY_RESULT.get(row["result"]), row["n"]
        )
    for run in runs:
        for group, found in sorted(counts[run.pk].items()):
            scores, of_group = detection.compute_scores(found), _group_columns(named, group)
            row = _row(
                run.strategy.slug, of_group, scores, run=run.number, endpoint=run.endpoint.name
            )
            yield row, scores


def _baseline_rows(runs: Sequence[Run], named: Sequence[Grouping]) -> Iterator[dict[str, Any]]:
    """The baselines without any evaluator, on all items that any of the runs judged."""
    counts: dict[GroupKey, ConfusionCounts] = defaultdict(ConfusionCounts)
    n = Count("item", distinct=True)
    for group, is_error, row in _count_outcomes(runs, named, n=n):
        counts[group] += _to_counts(is_error, is_error, row["n"])
    for group, found in sorted(counts.items()):
        for slug, of in BASELINE_SCORES.items():
            yield _row(slug, _group_columns(named, group), of(found))


def _people_rows(project: Project, named: Sequence[Grouping]) -> Iterator[dict[str, Any]]:
    """The mean over people, each on the items that they labelled (section 3.3, tables 4 and 8)."""
    for group, people in sorted(detectors.load_people_verdicts(project, named).items()):
        counts = [detection.count_verdicts(said.values()) for said in people.values()]
        items = {item for said in people.values() for item in said}
        invalid = sum(one.missing for one in counts) / len(counts)
        scores = detection.mean_scores([detection.compute_scores(one) for one in counts])
        of_group = _group_columns(named, detectors.make_group_key(group))
        yield _row(PEOPLE, of_group, scores, n=len(items), invalid=invalid)


def _count_outcomes(
    runs: Sequence[Run], named: Sequence[Grouping], *fields: str, n: Count
) -> Iterator[tuple[GroupKey, bool, dict[str, Any]]]:
    keys = {f"group_{place}": one.expression("item__") for place, one in enumerate(named)}
    for row in detectors.counted_outcomes(runs).values("truth", *fields, **keys).annotate(n=n):
        group = detectors.make_group_key(row[key] for key in keys)
        yield group, row["truth"] == detectors.ERROR, row


def _group_columns(named: Sequence[Grouping], group: GroupKey) -> dict[str, str]:
    return {one.name: value for one, value in zip(named, group, strict=True)}


def _to_counts(is_error: bool, said: bool | None, n: int) -> ConfusionCounts:
    if said is None:
        return ConfusionCounts(missing_errors=n) if is_error else ConfusionCounts(missing_others=n)
    if is_error:
        return ConfusionCounts(tp=n) if said else ConfusionCounts(fn=n)
    return ConfusionCounts(fp=n) if said else ConfusionCounts(tn=n)


def _mean_rows(
    scored: Iterable[tuple[dict[str, Any], DetectionScores]], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The means over the four prompts of each evaluator and group. A mean has no value unless all
    four have the same number of items."""
    last: dict[tuple[str, GroupKey], dict[str, DetectionScores]] = defaultdict(dict)
    for row, scores in scored:
        if row["strategy"] in detectors.PROMPTS:
            last[row["endpoint"], tuple(row[name] for name in by)][row["strategy"]] = scores
    for (endpoint, group), found in sorted(last.items(), key=lambda pair: pair[0]):
        if len(found) < 2:
            continue
        prompts = [found[slug] for slug in detectors.PROMPTS if slug in found]
        mean, sizes = detection.mean_scores(prompts), [one.n for one in prompts]
        if reason := detectors.why_no_mean(found.keys(), sizes):
            mean = DetectionScores(mean.n, mean.invalid, None, None, None, None, None, reason)
        yield _row(
            MEAN,
            dict(zip(by, group, strict=True)),
            mean,
            n=min(sizes),
            invalid=sum(one.invalid for one in prompts) / len(prompts),
            endpoint=endpoint,
        )


def _row(
    strategy: str,
    group: Mapping[str, str],
    scores: DetectionScores,
    *,
    n: int | None = None,
    invalid: float | None = None,
    run: int | None = None,
    endpoint: str | None = None,
) -> dict[str, Any]:
    """A row of the table; `n` and `invalid` are those of the scores by default."""
    n = scores.n if n is None else n
    invalid = scores.invalid if invalid is None else invalid
    return {
        "run": run,
        "endpoint": endpoint,
        "strategy": strategy,
        "total": n,
        "missing": invalid,
        **group,
        "n": n,
        "invalid": invalid,
        **{name: getattr(scores, name) for name in FIGURES},
        "reason": scores.reason or None,
    }


def tabulate_ranges(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The table `detector_ranges`: for every run and for the mean over an evaluator's four prompts,
    a row for each figure of the table `detector`, with the same `value`.

    `low` and `high` are the 95 % interval. For accuracy, precision and recall it is Wilson's
    interval for clustered items; for F1 and MCC it comes from 2,000 bootstrap draws of clusters
    (None with under 10 clusters or if all draws agree). A mean treats the prompts as fixed, so it
    says nothing about other wordings. `lowest` and `highest` are the values if every item without a
    verdict had been judged wrongly, or rightly. `valid` is the value over only the items with a
    verdict. `total` and `missing` are as in `detector`. There are no rows for chance and people.
    Raises `UnknownField`.
    """
    said = detectors.load_verdicts(runs, detectors.check_groupings(project, by))
    for part in progress.iterate(list(detector_verdicts.build_lines(runs, said, by)), DRAWING_STEP):
        yield from _rows(part)


def _rows(part: DetectorLine) -> Iterator[dict[str, Any]]:
    counts = [
        detection.count_verdicts(verdict[:2] for verdict in said.values()) for said in part.said
    ]
    kinds: dict[str, Callable[[ConfusionCounts], DetectionScores]] = {
        "lowest": lambda one: detection.bound_scores(one).lowest,
        "highest": lambda one: detection.bound_scores(one).highest,
        "valid": detection.score_valid,
    }
    beside = {
        name: detection.mean_scores([of(one) for one in counts]) for name, of in kinds.items()
    }
    missing = sum(one.missing for one in counts) / len(counts)
    for name, found in zip(FIGURES, _estimates(part, counts), strict=True):
        there = found.value is not None
        yield {
            **part.head(),
            "total": part.n,
            "missing": missing,
            **part.group,
            "figure": name,
            "value": found.value,
            "low": found.low,
            "high": found.high,
            **{kind: getattr(one, name) if there else None for kind, one in beside.items()},
            "reason": found.reason or None,
        }


def _estimates(part: DetectorLine, counts: Sequence[ConfusionCounts]) -> list[Estimate]:
    """Estimate all figures with their intervals; figures that are not rates share their draws."""
    scores = detection.mean_scores([detection.compute_scores(one) for one in counts])
    plain = [
        _without_interval(getattr(scores, name), part.n, part.reason or scores.reason)
        for name in FIGURES
    ]
    if part.reason:
        return [replace(one, value=None) for one in plain]
    if part.other_items:
        return [replace(one, reason=one.reason or OTHER_ITEMS_REASON) for one in plain]
    items = part.common
    truths = [part.said[0][item].is_error for item in items]
    verdicts = [[said[item].verdict for said in part.said] for item in items]
    named = [part.said[0][item].cluster for item in items]
    _, clusters = np.unique(named, return_inverse=True)
    figures = [detection.make_figure(name, truths, verdicts) for name in BOOTSTRAPPED]
    rng = arrays.make_generator("detector_ranges", part.runs, *part.group.values())
    found: dict[Measure, Estimate] = dict(
        zip(BOOTSTRAPPED, bootstrap.estimates(figures, clusters, rng), strict=True)
    )
    for name in RATES:
        found[name] = detection.estimate_rate(name, truths, verdicts, named)
    return [_with_interval(one, found[name]) for name, one in zip(FIGURES, plain, strict=True)]


def _without_interval(value: float | None, n: int, reason: str) -> Estimate:
    return Estimate(value, None, None, n, reason)


def _with_interval(plain: Estimate, drawn: Estimate) -> Estimate:
    """The table's value with the drawn interval and both reasons."""
    said = dict.fromkeys(one for one in (plain.reason, drawn.reason) if one)
    return replace(plain, low=drawn.low, high=drawn.high, reason="; ".join(said))


def _is_below_chance(name: str, row: Row) -> bool:
    other = row["of_chance"]
    return other is not None and other[name] is not None and row[name] < other[name]


def _figure(name: str, title: str, **which: str) -> columns.Custom:
    """A figure, which links to the items of its denominator."""
    write = written.share if name != "mcc" else _format_value
    link = columns.items(**which)

    def cell(row: Row, of: columns.Leading) -> Cell:
        value, beside = row[name], row["of_ranges"].get(name)
        if value is None:
            return Cell(reason=row["reason"] or "one category only")
        low, high = (beside["low"], beside["high"]) if beside else (None, None)
        is_worse = _is_below_chance(name, row)
        said = [
            row["reason"] or "",
            _bounds_note(write, beside),
            "below random" if is_worse else "",
        ]
        return Cell(
            write(value),
            value,
            column.href(row, of),
            interval="" if low is None else f"{write(low)} to {write(high)}",
            reason="" if beside is None else beside["reason"] or "",
            heat=SHADES if is_worse else None,
            note="; ".join(part for part in said if part),
        )

    column = columns.Custom(name, title, link, make=cell)
    return column


def _format_value(value: float | None) -> str:
    return cells.number_cell(value).text


def _bounds_note(write: Callable[[float | None], str], beside: Row | None) -> str:
    if beside is None or not beside["missing"] or beside["lowest"] is None:
        return ""
    low, high = write(beside["lowest"]), write(beside["highest"])
    return f"{low} to {high} with missing" if low != high else ""


# The heat of a figure that is below that of chance in the same group.
SHADES = 3
DETECTOR = Table(
    "detector",
    (
        *columns.RUN,
        *columns.plain("total", "missing"),
        columns.FIELDS,
        columns.Count("n", "Items", columns.items()),
        columns.MeanCount("invalid", "No verdict", columns.items(result="missing")),
        _figure("accuracy", "Accuracy"),
        _figure("precision", "Precision", result="detected"),
        _figure("recall", "Recall", truth="error"),
        _figure("f1", "F1"),
        _figure("mcc", "MCC"),
        columns.Column("reason"),
    ),
    tabulate_detector,
    group_by=detectors.BY_ITEM_FIELDS,
    about="A row per run of error detection and group: accuracy, precision, recall, F1 and "
    "MCC; then baselines, people and means over prompts.",
    meanings={
        "run": "number of the run; empty for a mean or a baseline",
        "strategy": "name of the strategy, `mean` over the four prompts of an evaluator, or a "
        "baseline: `random`, `always-error` or `people`",
        "total": "the same as `n`",
        "missing": "the same as `invalid`",
        "n": "number of items, those without a verdict included",
        "invalid": "number of items without a verdict; of several prompts or people, the mean",
        "accuracy": "share of the items with the right verdict; an item without a verdict counts "
        "as wrong",
        "precision": "share of the items called an error that are one; 0 with a reason if none "
        "was called an error",
        "recall": "share of the items with an error that were called one; without a verdict, an "
        "item counts as not called one",
        "f1": "harmonic mean of precision and recall, 0 to 1",
        "mcc": "Matthews correlation of verdicts and labels, −1 to 1; 0 is no better than a coin",
    },
)
DETECTOR_RANGES = Table(
    "detector_ranges",
    (
        *columns.RUN,
        *columns.plain("total", "missing"),
        columns.FIELDS,
        *columns.plain("figure", "value", "low", "high", "lowest", "highest", "valid", "reason"),
    ),
    tabulate_ranges,
    group_by=detectors.BY_ITEM_FIELDS,
    of_people=False,
    about="A row per run, or mean over an evaluator's four prompts, group and figure of the "
    "table detector: its interval, and its bounds if missing verdicts were all wrong or "
    "all right.",
    meanings={
        "run": "number of the run; empty for a mean",
        "strategy": "name of the strategy, or `mean` over the four prompts of an evaluator",
        "total": "number of items, those without a verdict included",
        "missing": "number of items without a verdict; of several prompts, the mean",
        "figure": "`accuracy`, `precision`, `recall`, `f1` or `mcc`",
        "value": "this figure, as in the table `detector`",
        "low": "lower end of the 95 % interval of `value`",
        "high": "upper end of this interval",
        "lowest": "value if every item without a verdict had been judged wrongly",
        "highest": "value if every item without a verdict had been judged rightly",
        "valid": "value over the items with a verdict alone",
    },
)
SHOWN = ("f1", "precision", "recall", "accuracy", "mcc")
DRAWN = ("precision", "recall", "f1")
CHART_SWITCH = Switch(
    "chart", "In the chart", {"by-detector": "By detector", "plane": "Precision and recall"}
)


def _select(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    """The rows to show, each with its rows of `detector_ranges` by figure, and with that of the
    random baseline in the same group."""
    page = Detectors(asked, tables[0])
    beside: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in tables[1]:
        beside.setdefault(_key(page, row), {})[row["figure"]] = row
    rows = page.kept(tables[0], "f1")
    chance = {page.group(row): row for row in rows if row["strategy"] == "random"}
    return [
        {
            **row,
            "of_ranges": beside.get(_key(page, row), {}),
            "of_chance": None if page.kind(row) else chance.get(page.group(row)),
        }
        for row in rows
    ]


def _key(page: Detectors, row: Row) -> tuple[Any, ...]:
    return row["run"], row["endpoint"], row["strategy"], *(row[one] for one in page.fields)


def _draw(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    is_plane = asked.switch_value(CHART_SWITCH.name) == "plane"
    return (_draw_plane if is_plane else _draw_dots)(Detectors(asked, rows), rows)


def _draw_dots(page: Detectors, rows: Rows) -> ChartSpec | None:
    labels = page.labels(rows)
    room = detector_lines.select_first(labels)
    drawn: list[Dot] = []
    faint: list[Dot] = []
    for row, label in zip(rows, labels, strict=True):
        for name in DRAWN if label in room else ():
            dot = (DETECTOR[name].title, label, _estimate(row, name))
            (faint if page.kind(row) else drawn).append(dot)
    caption = (
        "Precision, recall and F1 of each detector, with 95 % intervals; baselines are faint."
        f"{detector_lines.caption_cut(labels)}"
    )
    title = "Precision, recall, F1"
    return chart_parts.draw_dots(drawn, title=title, caption=caption, series="Figure", faint=faint)


def _estimate(row: Row, name: str) -> Estimate:
    beside = row["of_ranges"].get(name)
    low, high = (beside["low"], beside["high"]) if beside else (None, None)
    return Estimate(row[name], low, high, row["n"])


def _draw_plane(page: Detectors, rows: Rows) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import tradeoff

    points = [_point(page, row) for row in rows if row["f1"] is not None]
    caption = (
        "Precision against recall, with 95 % intervals. Dashed lines: equal F1. Baselines "
        "are faint. Each group has its own mark; filter to one group to compare."
    )
    return ChartSpec(tradeoff.draw_tradeoff(points), caption) if points else None


def _point(page: Detectors, row: Row) -> "PrecisionRecall":
    from charts.tradeoff import PrecisionRecall

    precision, recall = (_estimate(row, name) for name in ("precision", "recall"))
    return PrecisionRecall(
        detector=page.series(row),
        group=page.group(row) or "All",
        n=row["n"],
        f1=row["f1"],
        precision=row["precision"],
        precision_low=precision.low,
        precision_high=precision.high,
        recall=row["recall"],
        recall_low=recall.low,
        recall_high=recall.high,
        faint=row["strategy"] in BASELINES,
    )


VIEWS = (
    ResultView(
        slug="figures",
        title="Detectors",
        asks=(TableQuery(DETECTOR), TableQuery(DETECTOR_RANGES)),
        figures=("detector", "f1"),
        build=lines.Lines(
            DETECTOR,
            "Error detection",
            ("n", "invalid", *SHOWN),
            "“Error” is the positive class. An item without a verdict counts as “no error” in "
            "precision, recall, F1 and MCC, and as wrong in accuracy. The range below a figure: "
            "its values if all missing verdicts were wrong or all were right. If a detector was "
            "asked with all four prompts, its figures are means over the prompts and do not "
            f"generalise to other wordings. {INTERVAL_WORDS}",
            _draw,
            _select,
            Detectors,
            screen_words="Shaded: below the random baseline.",
        ),
        studies={
            "001": study_figures("table 4", "table 6", "table 8", by=("task", "response_model"))
        },
        empty=detector_lines.EMPTY,
        switches=(detector_lines.ROWS_SWITCH, CHART_SWITCH),
        groups=group_fields.list_fields,
    ),
    error_kinds.VIEW,
    *prompts.VIEWS,
)
