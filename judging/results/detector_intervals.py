"""Intervals of detector scores, and their bounds due to missing verdicts (study 001)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from annotation.models import Project
from judging.models import Run
from judging.results import arrays, detector_verdicts, detectors, progress
from judging.results.detector_verdicts import OTHER_ITEMS_REASON, DetectorLine
from judging.results.detectors import FIGURES
from stats import bootstrap, detection
from stats.detection import ConfusionCounts, DetectionScores, Measure
from stats.estimates import Estimate

COLUMNS = ("figure", "value", "low", "high", "lowest", "highest", "valid", "reason")
DRAWING_STEP = "drawing clusters"
RATES: tuple[Literal["accuracy", "precision", "recall"], ...] = ("accuracy", "precision", "recall")
BOOTSTRAPPED: tuple[Measure, ...] = ("f1", "mcc")


def tabulate(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Iterator[dict[str, Any]]:
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
