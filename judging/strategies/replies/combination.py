"""Combine several decisions on one item into one: repeats, votes, panels.

`values` contains the combined numbers and, under "parts", the result of each part with its detail
or cause.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import fsum
from statistics import median
from typing import Any, Protocol, TypeGuard

from judging.strategies import TOTAL, Strategy
from judging.strategies.replies import item_decisions
from judging.strategies.replies.causes import (
    DETECTED,
    MISSING,
    SCORED,
    UNDETECTED,
    Decision,
    first_cause,
)

PARTS_KEY = "parts"
# the detail if no part has the winning result
_OPPOSITE_DETAIL = {"error": "no_error", "found": "not_found", "G": "mixed"}

Average = Callable[[list[float]], float]


class DecisionLike(Protocol):
    """A decision, or an outcome, which has the same fields."""

    @property
    def result(self) -> str: ...
    @property
    def detail(self) -> str: ...
    @property
    def cause(self) -> str: ...
    @property
    def values(self) -> dict[str, Any]: ...


def combine_repeats(parts: Sequence[DecisionLike]) -> Decision:
    """Combine repeats of one question. `share` is the share of the parsed repeats that detect.

    The item is detected if the share is more than half, so a tie is undetected. A number is the
    mean over the repeats that have this number. The result is missing, with the first cause, if no
    repeat was parsed.
    """
    if _is_scored(parts):
        return _combine_scores(parts, mean)
    there = [part for part in parts if part.result != MISSING]
    return _combine_detections(parts, needed=len(there) / 2)


def combine_votes(parts: Sequence[DecisionLike]) -> Decision:
    """The majority of all members: detected if more than half detect; missing members count in the
    total.

    So two of four do not suffice, and neither do two of five if the other three are missing.
    `share` is still computed over the parsed members. The result is missing, with the first cause,
    only if no member was parsed. Numbers are medians. If a majority gives the same value, the
    median is that value; of three different values it is the middle value, as for the annotators in
    study 003.
    """
    if _is_scored(parts):
        return _combine_scores(parts, median)
    return _combine_detections(parts, needed=len(parts) / 2)


def combine_veto(parts: Sequence[DecisionLike]) -> Decision:
    """The minority veto: detected if any member detects, however many do not.

    A missing member counts in the total, as one that does not detect. So an item is undetected if
    no member detects and at least one was parsed, and missing, with the first cause, if none was.
    Raises ValueError for numbers, which no member can veto.
    """
    if _is_scored(parts):
        raise ValueError("numbers cannot be vetoed; use a majority or a mean")
    return _combine_detections(parts, needed=0)


def combine_weighted(parts: Sequence[DecisionLike], weights: Sequence[float]) -> Decision:
    """Weighted votes: detected if the weights of the members that detect are more than half of the
    weights of all members, those of missing members in the total.

    There is one weight, above 0, for each part, in their order; with equal weights it is
    `combine_votes`. `share` is still a share of the parsed members. The result is missing, with the
    first cause, only if no member was parsed. Raises ValueError for numbers, and for another number
    of weights.
    """
    if _is_scored(parts):
        raise ValueError("numbers have no weighted votes; use a majority or a mean")
    if len(weights) != len(parts):
        raise ValueError(f"{len(parts)} members need as many weights, not {len(weights)}")
    # As fractions, since sums such as .1 + .2 are inexact and a tie must not detect.
    exact = [Fraction(str(weight)) for weight in weights]
    return _combine_detections(parts, needed=sum(exact) / 2, weights=exact)


def combine_panel(parts: Sequence[DecisionLike], source: Strategy | None = None) -> Decision:
    """The mean of several evaluators: scores are averaged first and then compared.

    Gold and perturbed answer: the mean scores of the members that gave both. With a reference: the
    mean score against the top of `source`, the strategy of the members. Metrics: the mean of each
    metric over the members that gave it; a total is the sum of these means. The result is missing
    if no member was parsed. Raises ValueError if there are no scores to average.
    """
    if _is_scored(parts):
        return _combine_scores(parts, mean)
    there = [part for part in parts if part.result != MISSING]
    values = _numbers(there)
    if not there:
        return _missing(parts)
    if values.keys() >= {"gold", "perturbed"}:
        result, detail = item_decisions.compare_scores(values["gold"], values["perturbed"])
    elif "perturbed" in values and source:
        result, detail = item_decisions.compare_with_top(source, values["perturbed"])
    else:
        raise ValueError("there are no scores to average, or no scale top; use a majority")
    return Decision(result, detail, values=values | _parts(parts), share=_share(there))


def mean(numbers: Sequence[float]) -> float:
    """Return the arithmetic mean of one or more numbers. The sum is exact, so the order of the
    numbers does not matter.
    """
    return fsum(numbers) / len(numbers)


def _combine_detections(
    parts: Sequence[DecisionLike], needed: float | Fraction, weights: Sequence[Fraction] = ()
) -> Decision:
    """Combine detections: the result is detected if more than `needed` parts detect, or parts of
    more weight. The detail is the most frequent detail of the parts with this result.
    """
    there = [part for part in parts if part.result != MISSING]
    if not there:
        return _missing(parts)
    each = weights or [Fraction(1)] * len(parts)
    detecting = sum(
        weight for part, weight in zip(parts, each, strict=True) if part.result == DETECTED
    )
    result = DETECTED if detecting > needed else UNDETECTED
    values = _numbers(there) | _parts(parts)
    return Decision(result, _choose_detail(result, there), values=values, share=_share(there))


def _choose_detail(result: str, there: Sequence[DecisionLike]) -> str:
    """Return the most frequent detail of the parts with this result. If no part has it, for example
    if two of five detect and three are missing, return the opposite detail.
    """
    details = Counter(part.detail for part in there if part.result == result)
    if details:
        return details.most_common(1)[0][0]
    return _OPPOSITE_DETAIL.get(there[0].detail, "outvoted")


def _combine_scores(parts: Sequence[DecisionLike], fold: Average) -> Decision:
    metrics = dict.fromkeys(name for part in parts for name in _metrics(part))
    found: dict[str, float | str] = {}
    for name in metrics:
        given = [number for part in parts if _is_number(number := part.values.get(name))]
        found[name] = fold(given) if given else _find_metric_cause(name, parts)
    total = any(TOTAL in part.values for part in parts)
    decision = item_decisions.decide_scores(found, total=total)
    return replace(decision, values=decision.values | _parts(parts))


def _metrics(part: DecisionLike) -> list[str]:
    """Return the metrics with a number, and the metrics that are listed as missing."""
    there = [name for name, value in part.values.items() if _is_number(value) and name != TOTAL]
    return [*there, *part.values.get(item_decisions.MISSING_KEY, ())] if _has_scores(part) else []


def _find_metric_cause(name: str, parts: Sequence[DecisionLike]) -> str:
    missing = (
        part.values.get(item_decisions.MISSING_KEY, {}) for part in parts if _has_scores(part)
    )
    return first_cause({causes[name] for causes in missing if name in causes})


def _numbers(there: Sequence[DecisionLike]) -> dict[str, float]:
    """Return the mean of each value that is a number in every part."""
    return {
        name: mean([part.values[name] for part in there])
        for name in (there[0].values if there else ())
        if all(_is_number(part.values.get(name)) for part in there)
    }


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_scored(parts: Sequence[DecisionLike]) -> bool:
    return any(_has_scores(part) for part in parts)


def _has_scores(part: DecisionLike) -> bool:
    return part.result == SCORED


def _share(there: Sequence[DecisionLike]) -> float:
    return sum(part.result == DETECTED for part in there) / len(there)


def _missing(parts: Sequence[DecisionLike]) -> Decision:
    return Decision(
        MISSING, cause=first_cause({part.cause for part in parts}), values=_parts(parts)
    )


def _parts(parts: Sequence[DecisionLike]) -> dict[str, Any]:
    return {PARTS_KEY: [_part(part) for part in parts]}


def _part(part: DecisionLike) -> dict[str, Any]:
    said = {"cause": part.cause} if part.result == MISSING else {"detail": part.detail}
    inner = {name: value for name, value in part.values.items() if name != PARTS_KEY}
    return {"result": part.result, **said, "values": inner}
