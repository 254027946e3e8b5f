"""People compared with each other and with an evaluator: majorities, the human ceiling, and the
alternative annotator test (study 003)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from annotation import tasktypes
from annotation.models import Item, Project
from annotation.reports import agreement_answers
from judging.models import Run
from judging.results import arrays, correlations, detectors, metric_scales
from judging.results.arrays import Floats, Ints
from judging.results.correlations import CORRELATIONS, ERRORS, RMSE
from judging.results.detectors import GroupKey
from judging.results.metric_scales import ScoredMetric
from judging.results.paired_scores import PairedScores
from judging.results.undetected import UnknownField
from judging.runs.models import OutcomeQuerySet
from stats import bootstrap, ceiling, majority
from stats.ceiling import AltTest, RaterCeiling
from stats.paired import ONE_CLUSTER
from stats.rates import estimate_rate

# The measures of the ceiling: rank order, linear relation, distance.
MEASURES = ("rho", "pearson", RMSE)
# How much worse the evaluator may be, since it costs less than crowds, trained people, experts.
EPSILONS = (0.1, 0.15, 0.2)

CEILING_COLUMNS = (
    "off_scale", "measure", "rater", "n", "people", "people_low", "people_high", "evaluator",
    "evaluator_low", "evaluator_high", "difference", "low", "high", "reason",
)  # fmt: skip
TEST_COLUMNS = (
    "off_scale", "epsilon", "rater", "n", "evaluator", "people", "p", "q", "wins", "passed",
    "reason",
)  # fmt: skip
RATING_COLUMNS = ("item", "metric", "raters", "mean", "decided")
MAJORITY_COLUMNS = ("metric", "n", "decided", "share", "low", "high", "reason")


@dataclass(frozen=True)
class RaterTable:
    """Each person's answers to each item, by the position of the item in the project."""

    people: tuple[str, ...]
    said: Mapping[int, Mapping[str, Mapping[str, Any]]]

    def numbers_of(self, metric: ScoredMetric, positions: Ints) -> Floats:
        """The people's numbers, items x people, nan where a person has no number."""
        found = np.full((len(positions), len(self.people)), np.nan)
        for row, position in enumerate(positions.tolist()):
            for column, person in enumerate(self.people):
                answers = self.said.get(position, {}).get(person)
                if answers is not None:
                    found[row, column] = metric.of_people(answers)
        return found


def load_raters(project: Project) -> RaterTable:
    """Load each person's last counted label that was given before the person could see the answers
    of others."""
    said: dict[int, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for one in agreement_answers.load_label_answers(project):
        said[one.position][one.person] = one.answers
    return RaterTable(tuple(sorted({person for given in said.values() for person in given})), said)


def tabulate_ceiling(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The table `ceiling`: each person against the mean of the others, and the evaluator against
    the same means on the same items; rows without a rater are the means over people.

    `difference` is the evaluator's figure minus the person's. If it is above 0, the evaluator is
    closer than the person (for a correlation) or farther away (for an error). Errors need the same
    scale on both sides. Raises `UnknownField`.
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
            rows = _ceiling_rows(every, sides, [*named.values(), name])
            for one, row in zip(every, rows, strict=True):
                rater = people.people[one.rater] if one.rater >= 0 else None
                yield {**named, "measure": name, "rater": rater, **row}


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


def filter_outcomes(found: OutcomeQuerySet, row: Mapping[str, Any]) -> OutcomeQuerySet:
    """The outcomes of one run behind a row of `ceiling` or `alt_test`.

    The row is identified by its `metric`, `off_scale`, `rater` and, in `group`, its grouping
    fields. Without a rater, it covers the outcomes of all raters. If there is no such row, there
    are no outcomes.
    """
    run = Run.objects.for_results().filter(pk__in=found.order_by().values("run")).first()
    group = row.get("group")
    if run is None or not isinstance(group, Mapping):
        return found.none()
    people, positions = load_raters(run.project), set[int]()
    try:
        parts = list(correlations.split_scores(run.project, [run], list(group)))
    except UnknownField:
        return found.none()
    asked = {"metric": row.get("metric"), "off_scale": row.get("off_scale"), **group}
    for named, sides in parts:
        if all(named[name] == value for name, value in asked.items()):
            table = people.numbers_of(sides.metric, sides.position)
            for rater, shared in ceiling.shared_items(table, sides.evaluator):
                if row.get("rater") in (None, people.people[rater]):
                    positions.update(sides.position[shared].tolist())
    return found.filter(item__position__among=sorted(positions))


def tabulate_ratings(project: Project, by: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The table `ratings`: a row per item and metric with numbers from two people or more: how many
    people, the mean, and whether more than half gave the same number. Raises `UnknownField`."""
    named, people = detectors.check_groupings(project, by), load_raters(project)
    items = Item.objects.in_project(project).filter(position__among=list(people.said))
    columns = ("position", "key", *(one.expression() for one in named))
    found = [(*row[:2], row[2:]) for row in items.order_by("position").values_list(*columns)]
    places = np.array([position for position, *_ in found], dtype=int)
    for metric in metric_scales.people_metrics(tasktypes.load_task_type(project)):
        table = people.numbers_of(metric, places)
        decided, numbers = majority.majority_values(table).decided, (~np.isnan(table)).sum(axis=1)
        for row in np.flatnonzero(numbers > 1).tolist():
            _, key, group = found[row]
            yield {
                "item": key,
                **dict(zip(by, detectors.make_group_key(group), strict=True)),
                "metric": metric.name,
                "raters": int(numbers[row]),
                "mean": float(np.nanmean(table[row])),
                "decided": bool(decided[row]),
            }


def tabulate_majority(project: Project, by: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The table `majority`: among the `n` items with two labels or more, the share where more than
    half gave the same number, by metric and group (study 003, section 3.4). Raises `UnknownField`.
    """
    named, people = detectors.check_groupings(project, by), load_raters(project)
    columns = ("position", "cluster", *(one.expression() for one in named))
    items = Item.objects.in_project(project).order_by("position").values_list(*columns)
    rows: dict[GroupKey, list[tuple[int, str]]] = defaultdict(list)
    for position, cluster, *group in items:
        if len(people.said.get(position, ())) > 1:
            rows[detectors.make_group_key(group)].append((position, cluster))
    for metric in metric_scales.people_metrics(tasktypes.load_task_type(project)):
        for group, found in sorted(rows.items()):
            yield {**dict(zip(by, group, strict=True)), **_majority_row(metric, found, people)}


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


def _majority_row(
    metric: ScoredMetric, items: Sequence[tuple[int, str]], people: RaterTable
) -> dict[str, Any]:
    table = people.numbers_of(metric, np.array([position for position, _ in items], dtype=int))
    several = (~np.isnan(table)).sum(axis=1) > 1
    clusters = np.array([cluster for _, cluster in items], dtype=object)
    decided = majority.majority_values(table[several]).decided
    share = estimate_rate(decided, clusters[several])
    return {
        "metric": metric.name,
        "n": share.n,
        "decided": int(np.nansum(decided)),
        "share": share.value,
        "low": share.low,
        "high": share.high,
        "reason": share.reason or None,
    }
