"""What an evaluator's numbers are held against: metrics, and the scales of both sides."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import nan
from typing import Any

from annotation.fields import Field
from annotation.tasktypes import TaskType
from judging.replies import objects
from judging.strategies import TOTAL, Scale, Strategy

# Frames whose outcomes are numbers of one response.
FRAMES = ("rating", "rubric", "matching")
_NUMBERS, _POINTS = ("scale", "points"), "points"
# Where an outcome holds a number that is of no metric.
_SCORE = "score"


@dataclass(frozen=True, slots=True)
class Metric:
    """What is scored, and on which scale by either side; None where that side has none.

    `parts` are people's fields, several for a total, and `titles` theirs in the strategy. `value`
    is the evaluator's name for it in outcomes.
    """

    name: str
    parts: tuple[str, ...]
    titles: tuple[str, ...]
    value: str
    people: Scale | None
    evaluator: Scale | None

    @property
    def is_comparable(self) -> bool:
        """Whether the numbers of both sides mean the same, so that their difference is an error."""
        if self.people is None or self.evaluator is None:
            return False
        return (self.people.low, self.people.high) == (self.evaluator.low, self.evaluator.high)

    def of_people(self, held: Mapping[str, Any]) -> float:
        """The number in what is said of an item, by field; nan if a part of it is missing."""
        return _sum([held.get(part) for part in self.parts])

    def of_evaluator(self, values: Mapping[str, Any]) -> float:
        """The number in an outcome's values; nan without one."""
        return _number(values.get(self.value))

    def of_given(self, said: Any) -> float:
        """The number in what was recorded: one, or some by slug or title of metrics, of which a
        total is the sum."""
        if not isinstance(said, Mapping):
            return _number(said)
        named = {objects.name(name): number for name, number in said.items()}
        pairs = zip(self.parts, self.titles, strict=True)
        return _sum([named.get(objects.name(p), named.get(objects.name(t))) for p, t in pairs])


def of_strategy(strategy: Strategy, task: TaskType) -> list[Metric]:
    """Each metric of a strategy, and their total where it has one, against people's field of the
    same name; what gives one number, such as ROUGE-L, against each of people's."""
    asked = of_people(task)
    if strategy.frame == "matching":
        return [replace(one, value=_SCORE, evaluator=strategy.scale) for one in asked]
    scales = {one.name: one.people for one in asked}
    found = [
        Metric(one.slug, (one.slug,), (one.title,), one.slug, scales.get(one.slug), one.scale)
        for one in strategy.metrics
    ]
    has_total = strategy.frame == "rubric" or strategy.decides == TOTAL
    return [*found, _total(found)] if has_total and found else found


def of_people(task: TaskType) -> list[Metric]:
    """What people give numbers to: each field with a scale, and the total of those with points."""
    found = [
        Metric(field.name, (field.name,), (field.title,), field.name, _scale(field), None)
        for field in task.fields
        if field.kind in _NUMBERS
    ]
    points = {field.name for field in task.fields if field.kind == _POINTS}
    return [*found, _total([m for m in found if m.name in points])] if len(points) > 1 else found


def _total(found: Sequence[Metric]) -> Metric:
    return Metric(
        TOTAL,
        tuple(one.name for one in found),
        tuple(title for one in found for title in one.titles),
        TOTAL,
        _added([one.people for one in found]),
        _added([one.evaluator for one in found]),
    )


def _added(scales: Sequence[Scale | None]) -> Scale | None:
    there = [scale for scale in scales if scale is not None]
    if len(there) < len(scales):
        return None
    return Scale(
        sum(one.low for one in there), sum(one.high for one in there), _one(s.step for s in there)
    )


def _scale(field: Field) -> Scale | None:
    """The scale that a field's options make; without a step where they are unlike far apart."""
    values = sorted(float(one.value) for one in field.options)
    if len(values) < 2:
        return None
    return Scale(values[0], values[-1], _one(after - before for before, after in pairwise(values)))


def _one(steps: Iterable[float | None]) -> float | None:
    """The step that all have."""
    found = set(steps)
    return found.pop() if len(found) == 1 else None


def _sum(values: Sequence[Any]) -> float:
    """nan unless all are numbers."""
    return sum(map(_number, values)) if values else nan


def _number(value: Any) -> float:
    """nan if it is none; JSON has no numbers but these."""
    return float(value) if type(value) in (int, float) else nan
