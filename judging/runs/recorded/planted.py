"""Runs of planted evaluators: their replies are drawn at random with rates that are known, so that
everybody can see whether the figures find what was planted.

The replies go through the same import, parser and decisions as those of real evaluators.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from scipy.special import betaincinv

from annotation.models import Membership, Project
from formats.rows import Row
from judging.errors import Refused
from judging.models import Run
from judging.runs import run_items, selection
from judging.runs.recorded import record, transcripts
from judging.runs.recorded.storage import RecordedPart
from judging.runs.recorded.transcripts import Transcript

STRATEGY = "reference"
# How alike the items of a question are, and the share of replies that cannot be used.
WITHIN, UNUSABLE = 0.2, 0.02
TOP, BOTTOM = 10, 1


@dataclass(frozen=True)
class PlantedEvaluator:
    """Rates of an evaluator, fractions of 1: of errors detected, of score-invariant items taken for
    an error, and of errors detected in the largest category if it is blind there."""

    name: str
    detection: float
    false_alarm: float
    in_largest: float | None = None


EVALUATORS = (
    PlantedEvaluator("planted-even", 0.75, 0.10),
    PlantedEvaluator("planted-blind", 0.75, 0.10, in_largest=0.30),
    PlantedEvaluator("planted-alarmed", 0.95, 0.70),
    PlantedEvaluator("planted-guessing", 0.50, 0.50),
)


@dataclass(frozen=True)
class PlantedRun:
    """A run with what was planted in it: the mean rates over its items, and the category in which
    the evaluator is blind, "" if in none."""

    run: Run
    evaluator: PlantedEvaluator
    detection: float
    false_alarm: float | None
    blind: str

    @property
    def j(self) -> float | None:
        """Detection minus false alarms."""
        return None if self.false_alarm is None else self.detection - self.false_alarm


def plant(
    project: Project,
    seed: int,
    now: datetime,
    *,
    while_labelling: bool = False,
    member: Membership | None = None,
) -> list[PlantedRun]:
    """Create a finished run of each planted evaluator over all items; the same seed gives the same
    replies. Raises `Refused` if there are no items, or if they are still being labelled, unless
    `while_labelling` allows it."""
    version = selection.get_strategy_version(STRATEGY)
    strategy = record.build_project_strategy(project, version)
    places = run_items.draw_items(project, strategy, seed=seed).places
    errors = [place for place in places if not place["invariant"]]
    if not errors:
        raise Refused(
            "There are no error items, so no evaluator can be blind to any. Label items first, or "
            "import them with their final labels."
        )
    largest = Counter(place["category"] for place in errors).most_common(1)[0][0]
    rng = np.random.Generator(np.random.PCG64(seed))
    parts, planted = [], {}
    for evaluator in EVALUATORS:
        rates = [_rate(evaluator, place, largest) for place in places]
        rows = _write_rows(places, _draw(places, rates, rng), rng)
        told = [
            one for one in transcripts.parse_rows(rows, strategy) if isinstance(one, Transcript)
        ]
        name = f"{evaluator.name}-{seed}"
        parts.append(RecordedPart(name, version, told))
        planted[name] = evaluator, rates
    report = record.record_replies(
        project, parts, now=now, while_labelling=while_labelling, member=member
    )
    if report.bad:
        raise Refused(report.bad[0].reason)
    runs = {run.endpoint.name: run for run in (*report.runs, *report.known)}
    return [
        _describe(runs[name], evaluator, rates, places, largest)
        for name, (evaluator, rates) in planted.items()
    ]


def _rate(evaluator: PlantedEvaluator, place: Mapping[str, Any], largest: str) -> float:
    if place["invariant"]:
        return evaluator.false_alarm
    if evaluator.in_largest is not None and place["category"] == largest:
        return evaluator.in_largest
    return evaluator.detection


def _draw(
    places: Sequence[Mapping[str, Any]], rates: Sequence[float], rng: np.random.Generator
) -> list[bool]:
    """Whether each item is taken for an error. A question is easy or hard for all of its items: its
    chances are beta quantiles with the item's rate as mean."""
    ease = {cluster: rng.random() for cluster in sorted({place["cluster"] for place in places})}
    spread = 1 / WITHIN - 1
    quantiles = np.array([ease[place["cluster"]] for place in places])
    means = np.array(rates)
    chances = betaincinv(means * spread, (1 - means) * spread, quantiles)
    return [bool(hit) for hit in rng.random(len(places)) < chances]


def _write_rows(
    places: Sequence[Mapping[str, Any]], detected: Sequence[bool], rng: np.random.Generator
) -> list[Row]:
    rows = []
    for line, (place, is_detected) in enumerate(zip(places, detected, strict=True), start=1):
        score = int(rng.integers(BOTTOM, TOP)) if is_detected else TOP
        said = {"text": f'{{"explanation": "planted", "score": {score}}}'}
        if rng.random() < UNUSABLE:
            said = {"cause": "truncated"}
        rows.append(Row("planted", line, {"item": place["key"], **said}))
    return rows


def _describe(
    run: Run,
    evaluator: PlantedEvaluator,
    rates: Sequence[float],
    places: Sequence[Mapping[str, Any]],
    largest: str,
) -> PlantedRun:
    # Duplicates belong to no ability, and no figure counts them.
    counted = [(rate, place) for rate, place in zip(rates, places, strict=True) if place["ability"]]
    errors = [rate for rate, place in counted if not place["invariant"]]
    alarms = [rate for rate, place in counted if place["invariant"]]
    return PlantedRun(
        run,
        evaluator,
        float(np.mean(errors)),
        float(np.mean(alarms)) if alarms else None,
        largest if evaluator.in_largest is not None else "",
    )
