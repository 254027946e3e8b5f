"""Metrics on which evaluators and people give numbers, and the scales of both sides."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import nan
from typing import Any

from annotation.tasktypes import TaskType
from annotation.tasktypes.fields import Field
from judging.strategies import TOTAL, Scale, Strategy
from judging.strategies.replies import json_objects

# Frames whose outcomes are numbers about a single response.
SCORING_FRAMES = ("rating", "rubric", "matching")
# The key, in an outcome's values, of a number that belongs to no metric.
_SCORE = "score"


@dataclass(frozen=True, slots=True)
class ScoredMetric:
    """A metric with its scale on either side; None if a side has no scale.

    `parts` are people's fields (several for a total), and `titles` their titles in the strategy.
    `value` is the name of the evaluator's number in outcomes. `total` is people's scale of the
    total that this metric is part of; None if there is no total. `on_several_scales`: people have
    no scale because the scale was changed between their labels.
    """

    name: str
    parts: tuple[str, ...]
    titles: tuple[str, ...]
    value: str
    people: Scale | None
    evaluator: Scale | None
    total: Scale | None = None
    on_several_scales: bool = False

    @property
    def is_comparable(self) -> bool:
        """True if both sides have the same scale, so that their difference is an error."""
        if self.people is None or self.evaluator is None:
            return False
        return (self.people.low, self.people.high) == (self.evaluator.low, self.evaluator.high)

    def of_people(self, held: Mapping[str, Any]) -> float:
        """Return people's number from their answers by field; nan if a part of the number is
        missing."""
        return _sum_or_nan([held.get(part) for part in self.parts])

    def of_evaluator(self, values: Mapping[str, Any]) -> float:
        """Return the evaluator's number from the values of an outcome; nan without a number."""
        return _number_or_nan(values.get(self.value))

    def of_given(self, said: Any) -> float:
        """The number in a recorded value: a plain number, or the sum of its parts, whose keys are
        slugs or titles of metrics."""
        if not isinstance(said, Mapping):
            return _number_or_nan(said)
        named = {json_objects.normalize_key(name): number for name, number in said.items()}
        pairs = zip(self.parts, self.titles, strict=True)
        return _sum_or_nan(
            [
                named.get(json_objects.normalize_key(p), named.get(json_objects.normalize_key(t)))
                for p, t in pairs
            ]
        )


def strategy_metrics(strategy: Strategy, task: TaskType) -> list[ScoredMetric]:
    """Each metric of a strategy, and the total if it has one, paired with people's field of the
    same name. A strategy with a single number, such as ROUGE-L, is paired with each field of
    people."""
    asked = people_metrics(task)
    if strategy.frame == "matching":
        return [replace(one, value=_SCORE, evaluator=strategy.scale) for one in asked]
    scales = {one.name: one.people for one in asked}
    found = [
        ScoredMetric(one.slug, (one.slug,), (one.title,), one.slug, scales.get(one.slug), one.scale)
        for one in strategy.metrics
    ]
    has_total = strategy.frame == "rubric" or strategy.decides == TOTAL
    if not (has_total and found):
        return found
    total = _total_metric(found)
    return [replace(one, total=total.people) for one in (*found, total)]


def rated_metrics(
    strategy: Strategy, task: TaskType, given: Sequence[TaskType]
) -> list[ScoredMetric]:
    """The metrics of `strategy_metrics`, with the scales on which people rated: `given` are the
    versions of the task type that their labels were given under."""
    before = [{one.name: one for one in strategy_metrics(strategy, version)} for version in given]
    return [
        _with_given_scales(metric, [found[metric.name] for found in before if metric.name in found])
        for metric in strategy_metrics(strategy, task)
    ]


def _with_given_scales(metric: ScoredMetric, given: Sequence[ScoredMetric]) -> ScoredMetric:
    scales = {one.people for one in given if one.people is not None}
    totals = {one.total for one in given if one.total is not None}
    if not scales:
        return metric
    if len(scales) > 1 or len(totals) > 1:
        return replace(metric, people=None, total=None, on_several_scales=True)
    return replace(metric, people=scales.pop(), total=totals.pop() if totals else metric.total)


def people_metrics(task: TaskType) -> list[ScoredMetric]:
    """People's metrics: each field with a scale, and the total of the fields with points."""
    found = [
        ScoredMetric(
            field.name, (field.name,), (field.title,), field.name, _option_scale(field), None
        )
        for field in task.fields
        if field.is_number
    ]
    points = {field.name for field in task.fields if field.is_summed}
    return (
        [*found, _total_metric([m for m in found if m.name in points])]
        if len(points) > 1
        else found
    )


def _total_metric(found: Sequence[ScoredMetric]) -> ScoredMetric:
    return ScoredMetric(
        TOTAL,
        tuple(one.name for one in found),
        tuple(title for one in found for title in one.titles),
        TOTAL,
        _add_scales([one.people for one in found]),
        _add_scales([one.evaluator for one in found]),
    )


def _add_scales(scales: Sequence[Scale | None]) -> Scale | None:
    there = [scale for scale in scales if scale is not None]
    if len(there) < len(scales):
        return None
    return Scale(
        sum(one.low for one in there),
        sum(one.high for one in there),
        _common_step(s.step for s in there),
    )


def _option_scale(field: Field) -> Scale | None:
    """The scale formed by the options of a field. It has no step if the distances between options
    differ."""
    values = sorted(float(one.value) for one in field.options)
    if len(values) < 2:
        return None
    return Scale(
        values[0], values[-1], _common_step(after - before for before, after in pairwise(values))
    )


def _common_step(steps: Iterable[float | None]) -> float | None:
    """The step if all steps are equal; None if they differ."""
    found = set(steps)
    return found.pop() if len(found) == 1 else None


def _sum_or_nan(values: Sequence[Any]) -> float:
    """The sum; nan unless all values are numbers."""
    return sum(map(_number_or_nan, values)) if values else nan


def _number_or_nan(value: Any) -> float:
    """The number; nan if the value is not a JSON number."""
    return float(value) if type(value) in (int, float) else nan
