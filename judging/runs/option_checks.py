"""Whether what a run is to have of its own fits its strategy."""

import json
from collections.abc import Mapping
from typing import Any

from judging.errors import Refused
from judging.runs.run_config import MAIN_AXIS, RunOverrides
from judging.strategies import Strategy, placeholders
from judging.strategies.definitions import MAX_EXAMPLES, SECRET_NAME


def check_overrides(strategy: Strategy, own: RunOverrides, samples: int) -> None:
    """Raise `Refused` for what does not fit, with what to do instead."""
    _check_axes(strategy, own.axes)
    if own.votes and samples < 2:
        raise Refused("Votes need at least 2 samples per call.")
    if own.guidance and "guidance" not in _list_placeholders(strategy):
        raise Refused(
            f"The prompt of strategy {strategy.slug} has no slot for guidance. Leave it out."
        )
    if own.examples is not None:
        _check_examples(strategy, own.examples)
    if not is_storable(own.guidance):
        raise Refused("The guidance contains a character that cannot be sent. Remove it.")
    if not is_storable(own.parameters):
        raise Refused("The parameters contain a character that cannot be sent. Remove it.")
    if secret := next(filter(SECRET_NAME.search, own.parameters), None):
        raise Refused(
            f"{secret!r} looks like a key. Parameters are stored and shown; put the key into the "
            "environment variable named at the endpoint."
        )


def is_storable(parameters: Mapping[str, Any]) -> bool:
    """Whether a database takes them: without NUL and halves of surrogate pairs."""
    text = json.dumps(parameters, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\\u0000" not in text


def _list_placeholders(strategy: Strategy) -> set[str]:
    return placeholders.find_names(strategy.step(strategy.last_step).prompt)


def _check_axes(strategy: Strategy, axes: tuple[str, ...]) -> None:
    known = [axis.slug for axis in strategy.axes]
    if axes and not known:
        raise Refused(f"Strategy {strategy.slug} has no axes. Choose none.")
    if unknown := [axis for axis in axes if axis not in {*known, MAIN_AXIS}]:
        raise Refused(
            f"Strategy {strategy.slug} has no axis {unknown[0]!r}. Choose from {', '.join(known)}, "
            f"or {MAIN_AXIS} for the axis of each item's ability."
        )


def _check_examples(strategy: Strategy, examples: int) -> None:
    if examples and not strategy.examples:
        raise Refused(
            f"The prompt of strategy {strategy.slug} has no slot for examples. Leave their number "
            "empty."
        )
    if not 0 <= examples <= MAX_EXAMPLES:
        raise Refused(f"Choose up to {MAX_EXAMPLES} examples; 0 shows none.")
