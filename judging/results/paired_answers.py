"""Items as points (people's number, evaluator's number), and how often the two numbers agree."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from annotation.models import Project
from judging.models import Run
from judging.results import correlations, counted, paired_scores, raters
from judging.results.paired_scores import PairedScores
from stats import majority

POINT_COLUMNS = (
    "item", "metric", "raters", "mean", "decided", "people", "evaluator", "off_scale", "cause",
)  # fmt: skip
CELL_COLUMNS = ("off_scale", "people", "evaluator", "n", "share")
SCORE_COLUMNS = ("off_scale", "score", "n", "same", "agreement", "low", "high", "reason")


def tabulate_points(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The table `points`: a row per item and metric with a number from people.

    `people` is the final value, `mean` the mean over the labels of `raters` annotators, and
    `decided` whether more than half of them gave the same number. A recorded number off the scale
    is still shown in `evaluator`, and `off_scale` marks it. A missing number has a `cause`. Raises
    `UnknownField`.
    """
    people = raters.load_raters(project)
    for one in paired_scores.load_paired_scores(project, runs, by):
        table = people.numbers_of(one.metric, one.position)
        decided = majority.majority_values(table).decided
        for row in np.flatnonzero(~np.isnan(one.people)).tolist():
            given = table[row][~np.isnan(table[row])]
            yield {
                **counted.run_columns(one.run),
                **dict(zip(by, one.groups[one.group[row]], strict=True)),
                "metric": one.metric.name,
                "raters": len(given),
                "mean": float(given.mean()) if len(given) else None,
                "decided": bool(decided[row]) if len(given) > 1 else None,
                **_point_row(one, row),
            }


def tabulate_pairs(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The table `pairs`: how many items have each pair of numbers. (Drawn as points, such items
    would hide each other.) `share` is the share among items with the same number from people.
    Raises `UnknownField`."""
    for named, sides in correlations.split_scores(project, runs, by):
        both = sides.both
        pairs = Counter(
            zip(sides.people[both].tolist(), sides.evaluator[both].tolist(), strict=True)
        )
        of_people = Counter(sides.people[both].tolist())
        for (people, evaluator), n in sorted(pairs.items()):
            pair = {"people": people, "evaluator": evaluator, "n": n}
            yield {**named, **pair, "share": n / of_people[people]}


def tabulate_by_score(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The table `by_score`: how often the evaluator gives exactly people's number, by that number,
    for example on items with 1 or on items with 3 (study 003, section 4.3).

    `n` items have both numbers. A metric has rows only if both sides have the same scale. Raises
    `UnknownField`.
    """
    for named, sides in correlations.split_scores(project, runs, by):
        if not sides.metric.is_comparable:
            continue
        found = majority.agreement_by_score(sides.people, sides.evaluator, sides.cluster)
        for score, one in found.items():
            yield {
                **named,
                "score": score,
                "n": one.n,
                "same": None if one.value is None else round(one.value * one.n),
                "agreement": one.value,
                "low": one.low,
                "high": one.high,
                "reason": one.reason or None,
            }


def _point_row(one: PairedScores, row: int) -> dict[str, Any]:
    given = float(one.given[row])
    number = given if not np.isnan(given) else float(one.evaluator[row])
    return {
        "item": one.key[row],
        "people": float(one.people[row]),
        "evaluator": None if np.isnan(number) else number,
        "off_scale": not np.isnan(given),
        "cause": one.cause[row] or None,
    }
