"""The answers of each person, to compare people with each other and with an evaluator."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from annotation.models import Project
from annotation.reports import agreement_answers
from judging.models import Run
from judging.results import correlations
from judging.results.arrays import Floats, Ints
from judging.results.counted import UnknownField
from judging.results.metric_scales import ScoredMetric
from judging.runs.models import OutcomeQuerySet
from stats import ceiling


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
