"""How far the figures of detectors reach: by chance, and by what has no verdict (study 001)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from annotation.models import Project
from judging.models import Run
from judging.results import detecting, detecting_parts, gathering, progress
from judging.results.detecting import FIGURES
from judging.results.detecting_parts import OTHER_ITEMS, Part
from stats import bootstrap, detection
from stats.detection import Counts, Measure, Scores
from stats.estimates import Estimate

COLUMNS = ("figure", "value", "low", "high", "lowest", "highest", "valid", "reason")
DRAWING = "drawing clusters"
RATES: tuple[Literal["accuracy", "precision", "recall"], ...] = ("accuracy", "precision", "recall")
DRAWN: tuple[Measure, ...] = ("f1", "mcc")


def ranges(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The table `detector_ranges`: of every run, and of the mean over an evaluator's four prompts,
    a row a figure of the table `detector`, whose `value` it has.

    `low` and `high` are its 95 % interval: Wilson's for clustered items of accuracy, precision and
    recall, by drawing clusters 2,000 times of F1 and MCC; None under 10 of them and where all
    draws agree. Of a mean the prompts are fixed: it tells nothing of other wordings.
    `lowest` and `highest`: what it would be had every item without a verdict been judged wrongly,
    or rightly. `valid`: over the items that have a verdict alone. `total` and `missing` are those
    of `detector`. Chance and people have no rows. Raises `UnknownField`.
    """
    said = detecting.by_run(runs, detecting.groupings(project, by))
    for part in progress.through(list(detecting_parts.parts(runs, said, by)), DRAWING):
        yield from _rows(part)


def _rows(part: Part) -> Iterator[dict[str, Any]]:
    counts = [detection.tally(verdict[:2] for verdict in said.values()) for said in part.said]
    kinds: dict[str, Callable[[Counts], Scores]] = {
        "lowest": lambda one: detection.bounds(one).lowest,
        "highest": lambda one: detection.bounds(one).highest,
        "valid": detection.valid_only,
    }
    beside = {name: detection.mean([of(one) for one in counts]) for name, of in kinds.items()}
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


def _estimates(part: Part, counts: Sequence[Counts]) -> list[Estimate]:
    """Each figure with its interval; of those that are no rates from the same draws."""
    scores = detection.mean([detection.scores(one) for one in counts])
    plain = [
        _plain(getattr(scores, name), part.n, part.reason or scores.reason) for name in FIGURES
    ]
    if part.reason:
        return [replace(one, value=None) for one in plain]
    if part.other_items:
        return [replace(one, reason=one.reason or OTHER_ITEMS) for one in plain]
    items = part.common
    truths = [part.said[0][item].is_error for item in items]
    verdicts = [[said[item].verdict for said in part.said] for item in items]
    named = [part.said[0][item].cluster for item in items]
    _, clusters = np.unique(named, return_inverse=True)
    figures = [detection.figure(name, truths, verdicts) for name in DRAWN]
    rng = gathering.generator("detector_ranges", part.runs, *part.group.values())
    found: dict[Measure, Estimate] = dict(
        zip(DRAWN, bootstrap.estimates(figures, clusters, rng), strict=True)
    )
    for name in RATES:
        found[name] = detection.rate(name, truths, verdicts, named)
    return [_with(one, found[name]) for name, one in zip(FIGURES, plain, strict=True)]


def _plain(value: float | None, n: int, reason: str) -> Estimate:
    return Estimate(value, None, None, n, reason)


def _with(plain: Estimate, drawn: Estimate) -> Estimate:
    """The value of the table with the interval round it, and what is to be said."""
    said = dict.fromkeys(one for one in (plain.reason, drawn.reason) if one)
    return replace(plain, low=drawn.low, high=drawn.high, reason="; ".join(said))
