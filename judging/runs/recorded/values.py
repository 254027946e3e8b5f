"""Parse values in recorded files that somebody else read in replies; pure.

A value is parsed like a reply that consists only of this value. A number off the scale is not a
reading, but it is kept too: the original reply may be lost, and figures may use the number.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

from judging.strategies import Strategy, frames
from judging.strategies.replies import json_objects, metric_scores, outputs
from judging.strategies.replies.outputs import ParsedReply
from judging.strategies.schema import Metric

# A single number, or numbers by metric.
Numbers = float | dict[str, float]

OFF_SCALE = "off_scale"
# No scale exceeds this number, and larger whole numbers may not fit a float.
_MAX_NUMBER = 10**15


@dataclass(frozen=True)
class RecordedValue:
    """The reading of a value, with the original numbers if any of them is off its scale."""

    reading: ParsedReply
    off_scale: Numbers | None = None


def parse_value(said: Any, strategy: Strategy) -> RecordedValue | None:
    """Parse a value, or values by metric; None if the strategy never gives such a value."""
    output = strategy.step(strategy.last_step).output
    fields = said if isinstance(said, dict) else {output: said}
    plain = replace(strategy, parser="", worded=False)
    spec = frames.list_calls(strategy, step=strategy.last_step)[0]
    reading = outputs.parse_reply(plain, json.dumps(fields), spec=spec)
    if reading.cause == "unparsable":
        return None
    causes = reading.value.values() if isinstance(reading.value, dict) else [reading.cause]
    off_scale = _extract_numbers(said, strategy) if OFF_SCALE in causes else None
    return RecordedValue(replace(reading, explanation=""), off_scale)


def describe_values(strategy: Strategy) -> str:
    """Describe the allowed values as text."""
    output = strategy.step(strategy.last_step).output
    if output == "scores":
        example = {metric.slug: _example(metric) for metric in strategy.metrics}
        named, shown = ", ".join(example), json.dumps({"values": example})
        return f"values of {named}, such as {shown}"
    if output == "score" and strategy.scale:
        return f"a number from {strategy.scale.low:g} to {strategy.scale.high:g}"
    listed = {"verdict": strategy.verdicts, "detection": ("error", "no_error")}
    return ", ".join(listed.get(output, ("true", "false")))


def _example(metric: Metric) -> float:
    """A number that the metric admits, as a file writes it."""
    value = sorted(metric.points)[len(metric.points) // 2] if metric.points else metric.scale.low
    return int(value) if value == int(value) else value


def _extract_numbers(said: Any, strategy: Strategy) -> Numbers | None:
    if not isinstance(said, dict):
        return float(said) if _is_number(said) else None
    known = metric_scores.list_answer_keys(strategy)
    named = {name: one for name, one in said.items() if json_objects.normalize_key(name) in known}
    return {name: float(one) for name, one in named.items() if _is_number(one)}


def _is_number(value: Any) -> bool:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and abs(value) < _MAX_NUMBER
