"""From the readings of one item to its outcome (figures, "Items and outcomes").

A pair verdict speaks of the shown order; here it is turned back into gold and perturbed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from judging.frames import CallSpec, calls
from judging.outputs import Reading
from judging.strategies import Strategy

DETECTED, UNDETECTED, MISSING = "detected", "undetected", "missing"

# What the evaluator itself did comes before what happened on the way, since asking again would
# not mend it. Of several causes in one item the first in this list is named, whichever call it
# is from; a cause that is not listed comes last, by name.
CAUSES = (
    "refused",
    "filtered",
    "truncated",
    "off_scale",
    "unparsable",
    "rejected",
    "rate-limited",
    "timed_out",
    "unavailable",
)
ONE_ORDER = "one_order"

# shown order -> verdict -> what it says of the item
_MEANS = {
    1: {"A": "gold", "B": "perturbed", "both good": "both_good", "both unacceptable": "both_bad"},
    2: {"A": "perturbed", "B": "gold", "both good": "both_good", "both unacceptable": "both_bad"},
}
_DETAIL = {"gold": "G", "perturbed": "P", "both_good": "both_good", "both_bad": "both_bad"}
_SIDES = {"gold", "perturbed"}


@dataclass(frozen=True, slots=True)
class Decision:
    """What a run says of one item.

    `detail` is "" and `cause` set when `result` is missing, the other way round when not.
    `values` is plain JSON: what each call said, by role (single, reference), or by
    `gold_first` and `perturbed_first` (pair), None where it said nothing.
    """

    result: str
    detail: str = ""
    cause: str = ""
    values: dict[str, Any] = field(default_factory=dict)


def decide(frame: str, strategy: Strategy, readings: Mapping[CallSpec, Reading]) -> Decision:
    """The outcome of one item, from a reading for every call of `frame`.

    A request that failed for good comes as Reading(None, cause=...). Raises ValueError if the
    reading of a call is not there: an item with open calls has no outcome yet.
    """
    absent = [spec for spec in calls(frame) if spec not in readings]
    if absent:
        raise ValueError(f"no reading of {absent[0]}, so the item is not decided yet")
    return _DECIDERS[frame](strategy, {spec: readings[spec] for spec in calls(frame)})


def _single(strategy: Strategy, readings: Mapping[CallSpec, Reading]) -> Decision:
    """Gold and perturbed answer scored apart: a lower score for the perturbed one detects."""
    values = {spec.role: _number(reading) for spec, reading in readings.items()}
    gold, perturbed = values["gold"], values["perturbed"]
    if gold is None or perturbed is None:
        return Decision(MISSING, cause=_cause(readings.values()), values=values)
    if perturbed < gold:
        return Decision(DETECTED, "lower", values=values)
    return Decision(UNDETECTED, "equal" if perturbed == gold else "higher", values=values)


def _reference(strategy: Strategy, readings: Mapping[CallSpec, Reading]) -> Decision:
    """The perturbed answer scored against gold: anything below the top detects.

    On a scale with steps the detail counts steps below the top: top-1, top-2, then lower.
    """
    (score,) = (_number(reading) for reading in readings.values())
    values = {"perturbed": score}
    if score is None:
        return Decision(MISSING, cause=_cause(readings.values()), values=values)
    detail = _below_top(strategy, score)
    return Decision(UNDETECTED if detail == "top" else DETECTED, detail, values=values)


def _number(reading: Reading) -> float | None:
    return None if reading.value is None else float(reading.value)


def _below_top(strategy: Strategy, score: float) -> str:
    if strategy.top is None or strategy.scale is None:
        raise ValueError(f"strategy {strategy.slug!r} has no top to compare with")
    if score >= strategy.top:
        return "top"
    if strategy.scale.step is None:
        return "lower"
    steps = round((strategy.top - score) / strategy.scale.step)
    return f"top-{steps}" if steps <= 2 else "lower"


def _pair(strategy: Strategy, readings: Mapping[CallSpec, Reading]) -> Decision:
    """Both orders: gold chosen in both detects. Either reply missing leaves the item missing.

    One parsed order is noted as `chose_gold`: where that is false, no second reply could have
    made the item detected. A mixed item says in `order_effect` whether the place decided:
    first_twice, second_twice, half_tie (one order ties), or "" (two unlike ties).
    """
    first, second = (_meaning(spec, reading) for spec, reading in readings.items())
    values: dict[str, Any] = {"gold_first": first, "perturbed_first": second}
    if first is None and second is None:
        return Decision(MISSING, cause=_cause(readings.values()), values=values)
    if first is None or second is None:
        values["chose_gold"] = "gold" in (first, second)
        values["missing"] = _cause(readings.values())
        return Decision(MISSING, cause=ONE_ORDER, values=values)
    if first != second:
        values["order_effect"] = _order_effect(first, second)
        return Decision(UNDETECTED, "mixed", values=values)
    return Decision(DETECTED if first == "gold" else UNDETECTED, _DETAIL[first], values=values)


def _meaning(spec: CallSpec, reading: Reading) -> str | None:
    return None if reading.value is None else _MEANS[spec.order][str(reading.value)]


def _order_effect(first: str, second: str) -> str:
    """For two orders that disagree; gold stood first in the first of them."""
    if {first, second} == _SIDES:
        return "first_twice" if first == "gold" else "second_twice"
    return "half_tie" if _SIDES & {first, second} else ""


def _cause(readings: Iterable[Reading]) -> str:
    causes = {reading.cause for reading in readings if reading.value is None}
    return min(causes, key=lambda cause: (_place(cause), cause))


def _place(cause: str) -> int:
    return CAUSES.index(cause) if cause in CAUSES else len(CAUSES)


_DECIDERS: dict[str, Callable[[Strategy, Mapping[CallSpec, Reading]], Decision]] = {
    "single": _single,
    "pair": _pair,
    "reference": _reference,
}
