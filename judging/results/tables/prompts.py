"""Does the prompt matter for a detector? The tables `bias` (wording and order of the options, study
001, section 4.3) and `changes` (samples or steps, tables 5 and 7), and their views of the page
Detector. Only items that count in all compared runs are compared.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from annotation.models import Project
from judging.models import Run
from judging.results import (
    cells,
    columns,
    detector_lines,
    detector_verdicts,
    detectors,
    drilldown,
    group_fields,
    lines,
    progress,
)
from judging.results.cells import Cell, Row
from judging.results.columns import Table
from judging.results.detector_lines import Detectors
from judging.results.detectors import FIGURES, MEAN, DetectorVerdict, VerdictsByItem
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    StudyFigure,
    Switch,
    TableQuery,
    ViewContent,
    study_figures,
)
from judging.strategies import compute_digest
from stats import bootstrap, detection
from stats.detection import DetectionScores, Measure
from stats.estimates import Estimate

# The prompt that evaluation steps and self-consistency are compared with (tables 5 and 7).
BASE_PROMPT = "detect-1a"
# The study's stars come from a one-sided test without correction.
TEST_DRAWS, STAR_LEVEL = 1_000, 0.1
COMPARING_STEP = "comparing with prompt 1-A"
# Bias of the option order for each wording, and bias of the wording: first minus second.
BIASES = {
    "order-1": (("detect-1a",), ("detect-1b",)),
    "order-2": (("detect-2a",), ("detect-2b",)),
    "wording": (("detect-1a", "detect-1b"), ("detect-2a", "detect-2b")),
}
BIAS_MEASURES: tuple[Measure, ...] = ("recall", "precision")


def tabulate_changes(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Compare every error-detection run with its evaluator's last run of prompt 1-A over the same
    group; groups are by fields of the items. Evaluators without such a run have no rows. Raises
    `UnknownField`.

    `total` and `missing` are those of the run. The figures are over the `n` items that count in
    both runs; `left_out` items count in only one of the runs. `p` is one-sided and uncorrected: the
    share of 1,000 bootstrap draws of the clusters in which the figure is not higher than before;
    `starred` is None without it.
    """
    said = detectors.load_verdicts(runs, detectors.check_groupings(project, by))
    every = [
        (run, before)
        for found in detectors.group_by_endpoint(runs).values()
        if (
            before := detector_verdicts.last_by_group(
                [run for run in found if run.strategy.slug == BASE_PROMPT], said
            )
        )
        for run in found
        if run.strategy.slug != BASE_PROMPT
    ]
    for run, before in progress.iterate(every, COMPARING_STEP):
        after = said[run.pk]
        for group in sorted(before.keys() & after.keys()):
            base, first = before[group]
            pair = (first, after[group])
            yield from _group_changes(run, base, dict(zip(by, group, strict=True)), *pair)


def _group_changes(
    run: Run, base: Run, group: Mapping[str, str], before: VerdictsByItem, after: VerdictsByItem
) -> Iterator[dict[str, Any]]:
    common = sorted(before.keys() & after.keys())
    first = detectors.score_items(before, common)
    second, own = detectors.score_items(after, common), detectors.score_items(after, after)
    for measure in FIGURES:
        difference, p = _estimate_difference(
            measure, run, base, [(before[i], after[i]) for i in common]
        )
        yield {
            "run": run.number,
            "endpoint": run.endpoint.name,
            "strategy": run.strategy.slug,
            "total": own.n,
            "missing": own.invalid,
            **group,
            "against": base.number,
            "n": len(common),
            "left_out": len(before.keys() ^ after.keys()),
            "figure": measure,
            "before": getattr(first, measure),
            "after": getattr(second, measure),
            "difference": difference.value,
            "low": difference.low,
            "high": difference.high,
            "p": p,
            "starred": None if p is None else p < STAR_LEVEL,
            "reason": second.reason or first.reason or difference.reason or None,
        }


def _estimate_difference(
    measure: Measure, run: Run, base: Run, pairs: Sequence[tuple[DetectorVerdict, DetectorVerdict]]
) -> tuple[Estimate, float | None]:
    """Estimate the difference (after minus before) with its interval, and the p for the hypothesis
    that it is not above 0."""
    truths = [one.is_error for one, _ in pairs]
    figure = detection.make_change_figure(
        measure, truths, [(a.verdict, b.verdict) for a, b in pairs]
    )
    _, clusters = np.unique([one.cluster for one, _ in pairs], return_inverse=True)
    # The seed depends only on the runs, so that every machine draws the same samples.
    seed = int(compute_digest(["changes", measure, run.digest, base.digest])[:32], 16)
    rng = np.random.Generator(np.random.PCG64(seed))
    estimate = bootstrap.estimate(figure, clusters, rng)
    return estimate, bootstrap.share_not_above(figure, clusters, rng, TEST_DRAWS)


def tabulate_bias(project: Project, runs: Sequence[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The effects of option order and wording, for each evaluator with more than one of the four
    prompts and each group, followed by the means over evaluators and groups. Raises `UnknownField`.

    A row is a figure for one way to ask (`first`) minus the same figure for another (`second`). A
    mean has no endpoint; its `cells` counts the values in it, and `sd` is their population standard
    deviation (section 4.3).
    """
    said = detectors.load_verdicts(runs, detectors.check_groupings(project, by))
    rows: list[dict[str, Any]] = []
    for endpoint, found in detectors.group_by_endpoint(runs).items():
        for group, asked in sorted(detector_verdicts.group_by_prompt(found, said).items()):
            if len(asked) > 1:
                judged = {slug: one for slug, (_, one) in asked.items()}
                rows += _group_biases(endpoint, dict(zip(by, group, strict=True)), judged)
    return [*rows, *_mean_biases(rows, by)]


def _group_biases(
    endpoint: str, group: Mapping[str, str], said: Mapping[str, VerdictsByItem]
) -> Iterator[dict[str, Any]]:
    common = set.intersection(*(set(judged) for judged in said.values()))
    scores = {slug: detectors.score_items(judged, common) for slug, judged in said.items()}
    missing = fmean(one.invalid for one in scores.values())
    for bias, sides in BIASES.items():
        absent = [slug for side in sides for slug in side if slug not in scores]
        for measure in BIAS_MEASURES:
            first, second = (None, None) if absent else (_mean(scores, measure, s) for s in sides)
            reason = f"no run of {', '.join(absent)}" if absent else _reason(scores, sides)
            yield {
                "run": None,
                "endpoint": endpoint,
                "strategy": None,
                "total": len(common),
                "missing": missing,
                **group,
                "bias": bias,
                "figure": measure,
                "first": first,
                "second": second,
                "difference": None if first is None or second is None else first - second,
                "sd": None,
                "cells": 1,
                "reason": reason or None,
            }


def _mean_biases(rows: Sequence[Row], by: Sequence[str]) -> Iterator[dict[str, Any]]:
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row["difference"] is not None:
            found[row["bias"], row["figure"]].append(row)
    for (bias, measure), held in found.items():
        first, second = (fmean(row[side] for row in held) for side in ("first", "second"))
        yield {
            "run": None,
            "endpoint": None,
            "strategy": MEAN,
            "total": sum(row["total"] for row in held),
            "missing": sum(row["missing"] for row in held),
            **dict.fromkeys(by),
            "bias": bias,
            "figure": measure,
            "first": first,
            "second": second,
            "difference": first - second,
            "sd": pstdev([row["difference"] for row in held]),
            "cells": len(held),
            "reason": None,
        }


def _mean(
    scores: Mapping[str, DetectionScores], measure: Measure, slugs: Iterable[str]
) -> float | None:
    return getattr(detection.mean_scores([scores[slug] for slug in slugs]), measure)


def _reason(scores: Mapping[str, DetectionScores], sides: Iterable[Sequence[str]]) -> str:
    return next((scores[slug].reason for side in sides for slug in side if scores[slug].reason), "")


BIAS = Table(
    "bias",
    (
        *columns.RUN,
        columns.Count("total", "Items", sort="n"),
        columns.MeanCount("missing", "No verdict"),
        columns.FIELDS,
        *columns.plain("bias", "figure", "first", "second", "difference", "sd", "cells", "reason"),
    ),
    tabulate_bias,
    group_by=detectors.BY_ITEM_FIELDS,
    of_people=False,
    about="A row per evaluator with several of the four prompts of study 001, group and "
    "figure: the difference between two orders of the options or two wordings; then the "
    "means.",
    meanings={
        "run": "always empty, since a row is about several runs",
        "endpoint": "name of the evaluator; empty in rows of means",
        "strategy": "`mean` in rows of means, otherwise empty",
        "total": "number of items that all prompts of the evaluator judged; in rows of means the "
        "sum over evaluators and groups",
        "missing": "mean number of items without a verdict; in rows of means the sum over "
        "evaluators and groups",
        "bias": "what is compared: `order-1` (prompt 1-A with 1-B), `order-2` (2-A with 2-B) or "
        "`wording` (both prompts of type 1 with both of type 2)",
        "figure": "`recall` or `precision`",
        "first": "the figure with the first prompts of the comparison",
        "second": "the figure with the other prompts",
        "difference": "first minus second, a fraction of 1",
        "sd": "in rows of means: population standard deviation of the differences",
        "cells": "number of pairs of evaluator and group in the row; 1 except in rows of means",
    },
)
CHANGES = Table(
    "changes",
    (
        *columns.RUN,
        *columns.plain("total", "missing"),
        columns.FIELDS,
        columns.RunNumber("against", "Against run"),
        columns.Count(
            "n",
            "Items in both",
            columns.items(**{drilldown.SHARED_WITH: "{against}"}),
            note=lambda row: f"{row['left_out']} in one only" if row["left_out"] else "",
        ),
        *columns.plain("left_out", "figure", "before", "after", "difference", "low", "high", "p"),
        *columns.plain("starred", "reason"),
    ),
    tabulate_changes,
    group_by=detectors.BY_ITEM_FIELDS,
    of_people=False,
    about="A row per run of error detection, group and figure: the change from the "
    "evaluator's last run of prompt 1-A over the same items.",
    meanings={
        "total": "number of items of the run, those without a verdict included",
        "missing": "number of items of the run without a verdict",
        "against": "number of the run of prompt 1-A that it is compared with",
        "n": "number of items that count in both runs",
        "left_out": "number of items that count in one of the two runs alone",
        "figure": "`accuracy`, `precision`, `recall`, `f1` or `mcc`",
        "before": "the figure of the run of prompt 1-A, over the `n` items",
        "after": "the figure of this run, over the same items",
        "difference": "after minus before",
        "low": "lower end of the 95 % interval of `difference`",
        "high": "upper end of this interval",
        "p": "share of 1,000 bootstrap samples of the questions in which the figure is not higher "
        "than before; one-sided and not adjusted",
        "starred": "true if p is below 0.1, as for the stars of study 001",
    },
)

BIAS_TITLES = {
    "wording": "Wording: type 1 minus type 2",
    "order-1": "Order, type 1: A minus B",
    "order-2": "Order, type 2: A minus B",
}
SIDE_TITLES = {"wording": ("type 1", "type 2"), "order-1": ("A", "B"), "order-2": ("A", "B")}
BIAS_FIGURES = {"recall": "Recall", "precision": "Precision"}
CHANGE_FIGURES = {"f1": "F1", "precision": "Precision", "recall": "Recall", "accuracy": "Accuracy"}
DRAWN_CHANGES = ("f1", "precision", "recall")
BIAS_SWITCH = Switch("bias", "Comparison", BIAS_TITLES)
_BY = ("task", "response_model")
EMPTY_BIAS = (
    "No evaluator was asked with two or more of the four prompts. Start runs of detect-1a, "
    "detect-1b, detect-2a and detect-2b at one endpoint over the same items."
)
EMPTY_CHANGES = (
    "No evaluator was asked both with prompt 1-A and in another way. Start runs of detect-1a "
    "and of detect-steps or detect-self-consistency at one endpoint over the same items."
)


class _Evaluators(Detectors):
    """The row's groups and its evaluator; the mean over evaluators says over how many pairs."""

    def name_cell(self, row: Row) -> Cell:
        if row["endpoint"] is not None:
            return cells.text_cell(row["endpoint"])
        n = row["cells"]
        return cells.text_cell("Mean", note=f"over {n} pair{'s' * (n > 1)} of evaluator and group")

    def kind(self, row: Row) -> str:
        return "published" if row["endpoint"] is None else ""


def _merge_figures(rows: Rows, of: str, fields: Sequence[str]) -> Rows:
    """One row per group and run (or evaluator), with its row of each figure in `of_figures`."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = (row[of], *(row[one] for one in fields))
        found.setdefault(key, {**row, "of_figures": {}})["of_figures"][row["figure"]] = row
    return list(found.values())


def _select_biases(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    page, bias = Detectors(asked, tables[0]), asked.switch_value(BIAS_SWITCH.name)
    rows = page.ordered(row for row in tables[0] if row["bias"] == bias)
    return _merge_figures(rows, "endpoint", page.fields)


def _select_changes(asked: PageQuery, tables: Sequence[Rows]) -> Rows:
    page = Detectors(asked, tables[0])
    merged = _merge_figures(page.ordered(tables[0]), "run", page.fields)
    return [row["of_figures"]["f1"] | {"of_figures": row["of_figures"]} for row in merged]


def _bias_columns(bias: str) -> list[columns.Custom]:
    """Both sides and their difference, for each figure."""
    first, second = SIDE_TITLES[bias]
    return [
        column
        for name, title in BIAS_FIGURES.items()
        for column in (
            columns.Custom(
                f"{name}-first", f"{title}, {first}", make=_of_figure(name, _side("first"))
            ),
            columns.Custom(
                f"{name}-second", f"{title}, {second}", make=_of_figure(name, _side("second"))
            ),
            columns.Custom(
                f"{name}-by",
                f"{title}: difference",
                unit=cells.POINTS_UNIT,
                make=_of_figure(name, _bias_cell),
            ),
        )
    ]


def _of_figure(name: str, cell: Callable[[Row], Cell]) -> Callable[[Row, columns.Leading], Cell]:
    """Make a cell from the row of one figure."""
    return lambda row, of: cell(row["of_figures"][name])


def _side(side: str) -> Callable[[Row], Cell]:
    return lambda row: cells.percent_cell(row[side])


def _bias_cell(row: Row) -> Cell:
    difference = cells.points_cell(row["difference"], reason=row["reason"])
    if row["sd"] is not None:
        return Cell(difference.text, difference.place, note=f"± {100 * row['sd']:.1f}")
    if row["reason"] and difference.is_there:
        return Cell(difference.text, difference.place, note=row["reason"])
    return difference


def build_biases(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per evaluator and group: recall and precision for each way to ask."""
    bias = asked.switch_value(BIAS_SWITCH.name)
    return lines.Lines(
        BIAS,
        BIAS_TITLES[bias],
        ("n", "missing", *_bias_columns(bias)),
        "In percentage points, on the items that all prompts of the evaluator share. Type 1 "
        "asks for errors, type 2 asks whether the response is valid; A and B differ in which "
        "answer is named first. Last row: mean and standard deviation over evaluators and "
        "groups, as in study 001, section 4.3; its figure 11 draws B minus A.",
        _draw_biases,
        _select_biases,
        _Evaluators,
    )(asked, tables)


def _draw_biases(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    page = Detectors(asked, rows)
    drawn = [one for row in rows for one in row["of_figures"].values() if one["endpoint"]]
    # An evaluator with several prompts has no run number.
    labels = page.labels([{**row, "run": None} for row in drawn])
    bias = asked.switch_value(BIAS_SWITCH.name)
    shifts = [
        (label, BIAS_FIGURES[row["figure"]], row, row["total"])
        for row, label in zip(drawn, labels, strict=True)
    ]
    caption = f"{BIAS_TITLES[bias]}: differences of recall and precision, in points."
    return _draw_shifts(shifts, caption)


def _change_cell(row: Row) -> Cell:
    cell = cells.points_cell(row["difference"], row["low"], row["high"], row["reason"])
    if not cell.is_there:
        return cell
    before, after = (cells.percent_cell(row[name]).text for name in ("before", "after"))
    star = "*" if row["starred"] else ""
    # The cell itself marks an interval as rough.
    reason = "" if row["reason"] == bootstrap.ROUGH else row["reason"]
    note = f"{before} to {after}" + (f"; {reason}" if reason else "")
    return Cell(
        f"{cell.text}{star}", cell.place, interval=cell.interval, reason=cell.reason, note=note
    )


def _draw_changes(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    drawn = [row["of_figures"][name] for row in rows for name in DRAWN_CHANGES]
    shifts = [
        (label, CHANGE_FIGURES[row["figure"]], row, row["n"])
        for row, label in zip(drawn, Detectors(asked, drawn).labels(drawn), strict=True)
    ]
    return _draw_shifts(shifts, "Differences from prompt 1-A in points, with 95 % intervals.")


def _draw_shifts(shifts: Sequence[tuple[str, str, Row, int]], caption: str) -> ChartSpec | None:
    # Altair takes a second to import; nothing else should wait for it.
    from charts import shifts as charted

    labels = [label for label, _, row, _ in shifts if row["difference"] is not None]
    room = detector_lines.select_first(labels)
    found = [
        charted.Shift(label, figure, 100 * row["difference"], *_ends(row), n)
        for label, figure, row, n in shifts
        if row["difference"] is not None and label in room
    ]
    if not found:
        return None
    spec = charted.draw_shifts(found, title="Difference in points")
    return ChartSpec(spec, f"{caption}{detector_lines.caption_cut(labels)}")


def _ends(row: Row) -> tuple[float | None, float | None]:
    low, high = row.get("low"), row.get("high")
    return (None, None) if low is None or high is None else (100 * low, 100 * high)


VIEWS = (
    ResultView(
        slug="prompts",
        title="Wording and order",
        asks=(TableQuery(BIAS),),
        figures=("prompts", "detector"),
        build=build_biases,
        studies={
            "001": (
                *study_figures("section 4.3", "figure 10", by=_BY),
                StudyFigure("figure 11", by=_BY, query={"bias": "order-1"}),
            )
        },
        empty=EMPTY_BIAS,
        switches=(BIAS_SWITCH,),
        groups=group_fields.list_fields,
    ),
    ResultView(
        slug="changes",
        title="Steps and samples",
        asks=(TableQuery(CHANGES),),
        figures=("stars", "detector", "f1"),
        build=lines.Lines(
            CHANGES,
            "Effect of steps, samples and prompts",
            (
                *("against", "n"),
                *(
                    columns.Custom(name, title, make=_of_figure(name, _change_cell))
                    for name, title in CHANGE_FIGURES.items()
                ),
            ),
            "Each run minus prompt 1-A of the same evaluator, in percentage points, on the items "
            "that both evaluated. Star: the figure is higher with p < 0.1 (one-sided, 1,000 "
            "paired bootstrap draws of clusters, not corrected for multiple comparisons, as in "
            "study 001). With many rows, some stars are due to chance.",
            _draw_changes,
            _select_changes,
            Detectors,
        ),
        studies={
            "001": (
                StudyFigure("table 5", ("detect-self-consistency", "detect-1a"), _BY),
                StudyFigure("table 7", ("detect-steps", "detect-1a"), _BY),
            )
        },
        empty=EMPTY_CHANGES,
        groups=group_fields.list_fields,
    ),
)
