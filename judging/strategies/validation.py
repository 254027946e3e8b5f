"""Which placeholders the prompts of a strategy must and may hold."""

from collections.abc import Iterable, Mapping
from typing import Any

from judging.strategies import placeholders
from judging.strategies.definition_tables import format_names, require
from judging.strategies.placeholders import FRAME_PLACEHOLDERS
from judging.strategies.schema import Strategy


def check_prompts(strategy: Strategy, source: str) -> None:
    """Raise StrategyError for prompts that are missing, or hold unknown names or lack needed ones.

    A name that a chain needs may stand in any of its steps.
    """
    if strategy.metric or strategy.frame == "fold":
        _check_no_prompt(strategy, source)
        return
    if strategy.steps:
        require(strategy.prompt == "", source, "prompt", "leave it out, each step has its own")
    else:
        require(strategy.prompt != "", source, "prompt", "is missing, write it, or name a metric")
    needed, allowed = _names(strategy)
    used: set[str] = set()
    for number in range(strategy.last_step + 1):
        step, key = strategy.step(number), _key(strategy, number)
        require("{{" not in step.system, source, f"{key}system", "move its placeholders to prompt")
        earlier = {before.name for before in strategy.steps[:number]}
        _check_known(step.prompt, allowed | earlier, source, f"{key}prompt")
        used |= placeholders.find_names(step.prompt)
    missing = (needed | {step.name for step in strategy.steps[:-1]}) - used
    key = "steps" if strategy.steps else "prompt"
    require(not missing, source, key, f"does not use {_format_placeholders(missing)}, add it")


def shows_rubric(definition: Mapping[str, Any]) -> bool:
    """Whether a prompt of a definition, which may be wrong yet, shows the rubric of an axis."""
    steps = [step.get("prompt") for step in definition.get("steps", []) if isinstance(step, dict)]
    prompts = [definition.get("prompt"), *steps]
    return any("rubric" in placeholders.find_names(one) for one in prompts if isinstance(one, str))


def _names(strategy: Strategy) -> tuple[frozenset[str], frozenset[str]]:
    """What the prompts must hold, and all that they may."""
    needed, allowed = (
        set(FRAME_PLACEHOLDERS[strategy.frame].needed),
        set(FRAME_PLACEHOLDERS[strategy.frame].allowed),
    )
    if strategy.axes:
        needed.add("axis")
        if all(axis.points for axis in strategy.axes):
            allowed.add("rubric")
    if strategy.output == "scores":
        needed.add("metrics")
        (needed if strategy.metrics_from else allowed).add("form")
    if strategy.examples:
        needed.add("examples")
    return frozenset(needed), frozenset(needed | allowed)


def _check_known(prompt: str, allowed: Iterable[str], source: str, key: str) -> None:
    unknown = placeholders.find_names(prompt) - set(allowed)
    right = not unknown and not placeholders.has_malformed(prompt)
    named = _format_placeholders(unknown) or "{{"
    require(right, source, key, f"unknown placeholder {named}, use {_format_placeholders(allowed)}")


def _check_no_prompt(strategy: Strategy, source: str) -> None:
    worded = bool(
        strategy.system or strategy.prompt or strategy.explanation or strategy.steps
        or strategy.axes or strategy.examples or strategy.worded or strategy.parameters
    )  # fmt: skip
    what = "metric" if strategy.metric else "fold"
    require(not worded, source, what, "takes no system, no prompt and no explanation")


def _key(strategy: Strategy, number: int) -> str:
    return f"steps.{number}." if strategy.steps else ""


def _format_placeholders(names: Iterable[str]) -> str:
    return format_names("{{" + name + "}}" for name in sorted(names))
