"""The effect of a changed prompt on an evaluator's detection of errors (study 001).

Section 4.3 changes the wording and the order of the options; appendix A adds samples or steps. Only
items that count in all compared runs are compared.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from annotation.models import Project
from judging.models import Run
from judging.results import detector_verdicts, detectors, progress
from judging.results.detectors import FIGURES, MEAN, DetectorVerdict, VerdictsByItem
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
CHANGE_COLUMNS = (
    "against", "n", "left_out", "figure", "before", "after", "difference", "low", "high", "p",
    "starred", "reason",
)  # fmt: skip
BIAS_COLUMNS = (
    "bias", "figure", "first", "second", "difference", "sd", "cells", "reason",
)  # fmt: skip
BIAS_FIGURES: tuple[Measure, ...] = ("recall", "precision")


@dataclass(frozen=True)
class DetectorChange:
    """One row of the `changes` table: a figure of a run compared with the same figure for prompt
    1-A.

    `total` and `missing` are those of the run. The figures are over the `n` items that count in
    both runs; `left_out` items count in only one of the runs. `p` is one-sided and uncorrected: the
    share of 1,000 bootstrap draws of the clusters in which the figure is not higher than before.
    """

    run: Run
    against: Run
    group: Mapping[str, str]
    total: int
    missing: int
    n: int
    left_out: int
    figure: Measure
    before: float | None
    after: float | None
    difference: Estimate
    p: float | None
    reason: str

    def as_row(self) -> dict[str, Any]:
        """The values of the row by column; `starred` is None without a p-value."""
        return {
            "run": self.run.number,
            "endpoint": self.run.endpoint.name,
            "strategy": self.run.strategy.slug,
            "total": self.total,
            "missing": self.missing,
            **self.group,
            "against": self.against.number,
            "n": self.n,
            "left_out": self.left_out,
            "figure": self.figure,
            "before": self.before,
            "after": self.after,
            "difference": self.difference.value,
            "low": self.difference.low,
            "high": self.difference.high,
            "p": self.p,
            "starred": None if self.p is None else self.p < STAR_LEVEL,
            "reason": self.reason or None,
        }


def tabulate_changes(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[DetectorChange]:
    """Compare every error-detection run with its evaluator's last run of prompt 1-A over the same
    group; groups are by fields of the items. Evaluators without such a run have no rows. Raises
    `UnknownField`."""
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
) -> Iterator[DetectorChange]:
    common = sorted(before.keys() & after.keys())
    first = detectors.score_items(before, common)
    second, own = detectors.score_items(after, common), detectors.score_items(after, after)
    for measure in FIGURES:
        difference, p = _estimate_difference(
            measure, run, base, [(before[i], after[i]) for i in common]
        )
        yield DetectorChange(
            run=run,
            against=base,
            group=group,
            total=own.n,
            missing=own.invalid,
            n=len(common),
            left_out=len(before.keys() ^ after.keys()),
            figure=measure,
            before=getattr(first, measure),
            after=getattr(second, measure),
            difference=difference,
            p=p,
            reason=second.reason or first.reason or difference.reason,
        )


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


@dataclass(frozen=True)
class PromptBias:
    """One row of the `bias` table: a figure for one way to ask, minus the same figure for another.

    A row without an endpoint is the mean over evaluators and groups. `cells` is the number of
    values in the mean, and `sd` is their population standard deviation (section 4.3).
    """

    endpoint: str
    group: Mapping[str, str | None]
    total: int
    missing: float
    bias: str
    figure: Measure
    first: float | None
    second: float | None
    reason: str = ""
    cells: int = 1
    sd: float | None = None

    @property
    def difference(self) -> float | None:
        """`first` minus `second`; None if either is None."""
        if self.first is None or self.second is None:
            return None
        return self.first - self.second

    def as_row(self) -> dict[str, Any]:
        """The values of the row by column; a mean over evaluators has no endpoint, and `MEAN` as
        its strategy."""
        return {
            "run": None,
            "endpoint": self.endpoint or None,
            "strategy": None if self.endpoint else MEAN,
            "total": self.total,
            "missing": self.missing,
            **self.group,
            "bias": self.bias,
            "figure": self.figure,
            "first": self.first,
            "second": self.second,
            "difference": self.difference,
            "sd": self.sd,
            "cells": self.cells,
            "reason": self.reason or None,
        }


def tabulate_bias(project: Project, runs: Sequence[Run], by: Sequence[str]) -> list[PromptBias]:
    """The effects of option order and wording, for each evaluator with more than one of the four
    prompts and each group, followed by the means. Raises `UnknownField`."""
    said = detectors.load_verdicts(runs, detectors.check_groupings(project, by))
    rows: list[PromptBias] = []
    for endpoint, found in detectors.group_by_endpoint(runs).items():
        for group, asked in sorted(detector_verdicts.group_by_prompt(found, said).items()):
            if len(asked) > 1:
                judged = {slug: one for slug, (_, one) in asked.items()}
                rows += _group_biases(endpoint, dict(zip(by, group, strict=True)), judged)
    return [*rows, *_mean_rows(rows, by)]


def _group_biases(
    endpoint: str, group: Mapping[str, str], said: Mapping[str, VerdictsByItem]
) -> Iterator[PromptBias]:
    common = set.intersection(*(set(judged) for judged in said.values()))
    scores = {slug: detectors.score_items(judged, common) for slug, judged in said.items()}
    missing = fmean(one.invalid for one in scores.values())
    for bias, sides in BIASES.items():
        absent = [slug for side in sides for slug in side if slug not in scores]
        for measure in BIAS_FIGURES:
            first, second = (None, None) if absent else (_mean(scores, measure, s) for s in sides)
            reason = f"no run of {', '.join(absent)}" if absent else _reason(scores, sides)
            row = (endpoint, group, len(common), missing, bias, measure)
            yield PromptBias(*row, first=first, second=second, reason=reason)


def _mean_rows(rows: Sequence[PromptBias], by: Sequence[str]) -> Iterator[PromptBias]:
    found: dict[tuple[str, Measure], list[tuple[PromptBias, float, float]]] = defaultdict(list)
    for row in rows:
        if row.first is not None and row.second is not None:
            found[row.bias, row.figure].append((row, row.first, row.second))
    for (bias, measure), cells in found.items():
        yield PromptBias(
            endpoint="",
            group=dict.fromkeys(by),
            total=sum(row.total for row, _, _ in cells),
            missing=sum(row.missing for row, _, _ in cells),
            bias=bias,
            figure=measure,
            first=fmean(first for _, first, _ in cells),
            second=fmean(second for _, _, second in cells),
            cells=len(cells),
            sd=pstdev([first - second for _, first, second in cells]),
        )


def _mean(
    scores: Mapping[str, DetectionScores], measure: Measure, slugs: Iterable[str]
) -> float | None:
    return getattr(detection.mean_scores([scores[slug] for slug in slugs]), measure)


def _reason(scores: Mapping[str, DetectionScores], sides: Iterable[Sequence[str]]) -> str:
    return next((scores[slug].reason for side in sides for slug in side if scores[slug].reason), "")
