"""Decide one item from one reading of each of its calls (figures, "Items and outcomes").

A pair verdict refers to the shown order; this module maps it back to gold and perturbed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import ceil
from typing import Any

from judging.strategies import TOTAL, Strategy
from judging.strategies.frames import CallSpec
from judging.strategies.replies import unusable_texts
from judging.strategies.replies.causes import (
    DETECTED,
    MADE,
    MISSING,
    ONE_ORDER,
    SCORED,
    UNDETECTED,
    Decision,
    first_cause,
)
from judging.strategies.replies.outputs import ParsedReply

Readings = Mapping[CallSpec, ParsedReply]

# A key of `values` next to the metrics, but not a metric.
MISSING_KEY = "missing"

# shown order -> verdict -> its meaning for the item
_VERDICT_MEANINGS = {
    1: {"A": "gold", "B": "perturbed", "both good": "both_good", "both unacceptable": "both_bad"},
    2: {"A": "perturbed", "B": "gold", "both good": "both_good", "both unacceptable": "both_bad"},
}
_DETAIL_OF_MEANING = {
    "gold": "G",
    "perturbed": "P",
    "both_good": "both_good",
    "both_bad": "both_bad",
}
SIDES = {"gold", "perturbed"}
# What each detail says, in the words of a page.
DETAIL_WORDS = {
    "top": "the top score",
    "top-1": "one step below the top",
    "top-2": "two steps below the top",
    "lower": "a lower score",
    "higher": "a higher score",
    "equal": "equal scores",
    "G": "gold answer chosen in both orders",
    "P": "perturbed answer chosen in both orders",
    "both_good": "called equally good in both orders",
    "both_bad": "called equally bad in both orders",
    "mixed": "different verdicts in the two orders",
    "error": "says that there is an error",
    "no_error": "says that there is no error",
    "found": "the explanation names an error",
    "not_found": "the explanation names no error",
}
# Sums of floats that should be equal may differ by less than this.
_TOLERANCE = 1e-9


def decide_sample(strategy: Strategy, readings: Readings) -> Decision:
    """Decide one sample. The readings are those of all calls of the frame, in the order of the
    frame.
    """
    return _DECIDERS[strategy.frame](strategy, readings)


def compare_scores(gold: float, perturbed: float) -> tuple[str, str]:
    """Return the result and the detail for two scores: it is a detection if the perturbed answer
    has the lower score.
    """
    if perturbed < gold - _TOLERANCE:
        return DETECTED, "lower"
    return UNDETECTED, "higher" if perturbed > gold + _TOLERANCE else "equal"


def compare_with_top(strategy: Strategy, score: float) -> tuple[str, str]:
    """Return the result and the detail for a score with a reference: any score below the top is a
    detection.

    On a scale with steps the detail says how many steps the score is below the top: top-1, top-2,
    and "lower" for more. A mean between two steps counts as the lower step.
    """
    if strategy.top is None or strategy.scale is None:
        raise ValueError(f"strategy {strategy.slug!r} has no top to compare with")
    if score >= strategy.top - _TOLERANCE:
        return UNDETECTED, "top"
    if strategy.scale.step is None:
        return DETECTED, "lower"
    steps = ceil((strategy.top - score) / strategy.scale.step - _TOLERANCE)
    return DETECTED, f"top-{steps}" if steps <= 2 else "lower"


def decide_scores(found: Mapping[str, float | str], *, total: bool = False) -> Decision:
    """Decide numbers by metric, where a missing number is replaced by its cause. The result is
    scored if any number was parsed.

    `values` has every metric, with None if its number was not parsed; then "missing" has the
    causes. With `total` there is also "total": the sum of the metrics, None if one of them is
    missing.
    """
    values: dict[str, Any] = {name: _or_none(value) for name, value in found.items()}
    missing = {name: value for name, value in found.items() if isinstance(value, str)}
    if total:
        values[TOTAL] = None if missing else sum(values.values())
    if missing:
        values[MISSING_KEY] = missing
    if len(missing) == len(found):
        return Decision(MISSING, cause=first_cause(missing.values()), values=values)
    return Decision(SCORED, values=values)


def decide_generated(
    strategy: Strategy, readings: Iterable[ParsedReply], texts: Mapping[str, Any]
) -> Decision:
    """Decide a generator's replies for one item: the result is made if at least one reply has a
    usable text.

    `values`: the number of usable texts as "made", and the numbers of other replies by cause as
    "missing". The texts themselves stay in the readings.
    """
    said = [unusable_texts.mark_unusable(strategy, reading, texts) for reading in readings]
    missing = Counter(reading.cause for reading in said if reading.value is None)
    values = {"made": len(said) - missing.total(), MISSING_KEY: dict(missing)}
    if missing.total() == len(said):
        return Decision(MISSING, cause=first_cause(missing), values=values)
    return Decision(MADE, values=values)


def _decide_single(strategy: Strategy, readings: Readings) -> Decision:
    """Decide by separate scores for gold and perturbed answer; `values`: both scores by role, None
    if missing.
    """
    values = {spec.role: _number(reading) for spec, reading in readings.items()}
    gold, perturbed = values["gold"], values["perturbed"]
    if gold is None or perturbed is None:
        return Decision(MISSING, cause=_find_first_cause(readings.values()), values=values)
    result, detail = compare_scores(gold, perturbed)
    return Decision(result, detail, values=values)


def _decide_reference(strategy: Strategy, readings: Readings) -> Decision:
    """Decide by the score of the perturbed answer, with gold as the reference; `values`: this
    score.
    """
    (score,) = (_number(reading) for reading in readings.values())
    values = {"perturbed": score}
    if score is None:
        return Decision(MISSING, cause=_find_first_cause(readings.values()), values=values)
    result, detail = compare_with_top(strategy, score)
    return Decision(result, detail, values=values)


def _decide_pair(strategy: Strategy, readings: Readings) -> Decision:
    """Combine both orders: the result is detected if gold is chosen in both, and missing if either
    reply is missing.

    `values`: the meaning of each order, under `gold_first` and `perturbed_first`. If only one order
    was parsed, `chose_gold` says whether gold was chosen in that order. If it was not, the item
    could not have become detected. For a mixed item `order_effect` says whether the position
    decided: first_twice, second_twice, half_tie (one order ties), or "" (two different ties).
    """
    first, second = (_meaning(spec, reading) for spec, reading in readings.items())
    values: dict[str, Any] = {"gold_first": first, "perturbed_first": second}
    if first is None and second is None:
        return Decision(MISSING, cause=_find_first_cause(readings.values()), values=values)
    if first is None or second is None:
        values["chose_gold"] = "gold" in (first, second)
        values["missing"] = _find_first_cause(readings.values())
        return Decision(MISSING, cause=ONE_ORDER, values=values)
    if first != second:
        values["order_effect"] = _order_effect(first, second)
        return Decision(UNDETECTED, "mixed", values=values)
    return Decision(
        DETECTED if first == "gold" else UNDETECTED, _DETAIL_OF_MEANING[first], values=values
    )


def _decide_detection(strategy: Strategy, readings: Readings) -> Decision:
    """Decide a detection. The detail is error or no_error; comparison with the final label later
    shows whether it is right.
    """
    return _decide_by_meaning(
        readings, {"error": (DETECTED, "error"), "no_error": (UNDETECTED, "no_error")}
    )


def _decide_explanation(strategy: Strategy, readings: Readings) -> Decision:
    """Decide whether an explanation reports an error.

    The result of an unparsable reply is missing, so that the reply is listed; figures count it as
    an error not found.
    """
    return _decide_by_meaning(
        readings, {True: (DETECTED, "found"), False: (UNDETECTED, "not_found")}
    )


def _decide_by_meaning(readings: Readings, means: Mapping[Any, tuple[str, str]]) -> Decision:
    """Decide by the value of the only reading; `values`: this value, under "said"."""
    (reading,) = readings.values()
    values = {"said": reading.value}
    if reading.value is None:
        return Decision(MISSING, cause=reading.cause, values=values)
    result, detail = means[reading.value]
    return Decision(result, detail, values=values)


def _decide_metrics(strategy: Strategy, readings: Readings) -> Decision:
    """Decide one number for each metric. A rubric, and a rating that is decided by its total, also
    have a total.
    """
    (reading,) = readings.values()
    said = reading.value if isinstance(reading.value, dict) else {}
    unread = reading.cause or "unparsable"
    found = {metric.slug: said.get(metric.slug, unread) for metric in strategy.metrics}
    return decide_scores(found, total=strategy.frame == "rubric" or strategy.decides == TOTAL)


def _decide_matching(strategy: Strategy, readings: Readings) -> Decision:
    """One number, under "score"."""
    (reading,) = readings.values()
    number = _number(reading)
    return decide_scores({"score": reading.cause if number is None else number})


def _number(reading: ParsedReply) -> float | None:
    return float(reading.value) if isinstance(reading.value, int | float) else None


def _or_none(value: float | str) -> float | None:
    return None if isinstance(value, str) else float(value)


def _meaning(spec: CallSpec, reading: ParsedReply) -> str | None:
    return None if reading.value is None else _VERDICT_MEANINGS[spec.order][str(reading.value)]


def _order_effect(first: str, second: str) -> str:
    """Return the order effect for two orders that disagree. In the first of them, gold was shown
    first.
    """
    if {first, second} == SIDES:
        return "first_twice" if first == "gold" else "second_twice"
    return "half_tie" if SIDES & {first, second} else ""


def _find_first_cause(readings: Iterable[ParsedReply]) -> str:
    return first_cause({reading.cause for reading in readings if reading.value is None})


_DECIDERS: dict[str, Callable[[Strategy, Readings], Decision]] = {
    "single": _decide_single,
    "pair": _decide_pair,
    "reference": _decide_reference,
    "detection": _decide_detection,
    "rating": _decide_metrics,
    "rubric": _decide_metrics,
    "matching": _decide_matching,
    "explanation": _decide_explanation,
}
