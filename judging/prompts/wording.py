"""Which placeholders the prompts of a strategy must and may hold."""

from collections.abc import Iterable, Mapping
from typing import Any

from judging.prompts import placeholders
from judging.prompts.declared import Strategy
from judging.prompts.parts import listed, need
from judging.prompts.placeholders import SHOWN


def check(strategy: Strategy, source: str) -> None:
    """Raise StrategyError for prompts that are missing, or hold unknown names or lack needed ones.

    A name that a chain needs may stand in any of its steps.
    """
    if strategy.metric or strategy.frame == "fold":
        _check_wordless(strategy, source)
        return
    if strategy.steps:
        need(strategy.prompt == "", source, "prompt", "leave it out, each step has its own")
    else:
        need(strategy.prompt != "", source, "prompt", "is missing, write it, or name a metric")
    needed, allowed = _names(strategy)
    used: set[str] = set()
    for number in range(strategy.last_step + 1):
        step, key = strategy.step(number), _key(strategy, number)
        need("{{" not in step.system, source, f"{key}system", "move its placeholders to prompt")
        earlier = {before.name for before in strategy.steps[:number]}
        _check_known(step.prompt, allowed | earlier, source, f"{key}prompt")
        used |= placeholders.used(step.prompt)
    missing = (needed | {step.name for step in strategy.steps[:-1]}) - used
    key = "steps" if strategy.steps else "prompt"
    need(not missing, source, key, f"does not use {_braced(missing)}, add it")


def shows_rubric(definition: Mapping[str, Any]) -> bool:
    """Whether a prompt of a definition, which may be wrong yet, shows the rubric of an axis."""
    steps = [step.get("prompt") for step in definition.get("steps", []) if isinstance(step, dict)]
    prompts = [definition.get("prompt"), *steps]
    return any("rubric" in placeholders.used(one) for one in prompts if isinstance(one, str))


def _names(strategy: Strategy) -> tuple[frozenset[str], frozenset[str]]:
    """What the prompts must hold, and all that they may."""
    needed, allowed = set(SHOWN[strategy.frame].needed), set(SHOWN[strategy.frame].allowed)
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
    unknown = placeholders.used(prompt) - set(allowed)
    right = not unknown and not placeholders.is_odd(prompt)
    named = _braced(unknown) or "{{"
    need(right, source, key, f"unknown placeholder {named}, use {_braced(allowed)}")


def _check_wordless(strategy: Strategy, source: str) -> None:
    worded = bool(
        strategy.system or strategy.prompt or strategy.explanation or strategy.steps
        or strategy.axes or strategy.examples or strategy.worded or strategy.parameters
    )  # fmt: skip
    what = "metric" if strategy.metric else "fold"
    need(not worded, source, what, "takes no system, no prompt and no explanation")


def _key(strategy: Strategy, number: int) -> str:
    return f"steps.{number}." if strategy.steps else ""


def _braced(names: Iterable[str]) -> str:
    return listed("{{" + name + "}}" for name in sorted(names))
