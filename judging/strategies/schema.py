"""What a strategy is made of, as its file declares it. How a file is read stands in `declaring`.

The names in double braces that a prompt may hold, and how they are filled.

Which texts of an item a frame shows is said here; a strategy adds names by what it declares:
{{axis}} and {{rubric}} with axes, {{metrics}} and {{form}} with metrics, {{examples}} with
examples, and in a chain the names of the earlier steps. {{guidance}} is what a person said against
an earlier attempt, and the attempt; "" for the first one.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from annotation.items import taxonomy

PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
# Names that are not free for a step of a chain.
RESERVED_NAMES = frozenset(
    {
        "question", "response", "reference", "first", "second", "explanation", "score",
        "axis", "rubric", "metrics", "form", "examples", "guidance",
    }
)  # fmt: skip


class FramePlaceholders(NamedTuple):
    """What the prompts of a frame show: names that they must hold, and that they may."""

    needed: frozenset[str]
    allowed: frozenset[str] = frozenset()


FRAME_PLACEHOLDERS: dict[str, FramePlaceholders] = {
    "single": FramePlaceholders(frozenset({"question", "response"})),
    "pair": FramePlaceholders(frozenset({"question", "first", "second"})),
    "reference": FramePlaceholders(frozenset({"question", "response", "reference"})),
    "detection": FramePlaceholders(frozenset({"question", "response"})),
    "rating": FramePlaceholders(frozenset({"question", "response"}), frozenset({"reference"})),
    "rubric": FramePlaceholders(frozenset({"response"}), frozenset({"question", "reference"})),
    "matching": FramePlaceholders(frozenset({"response", "reference"}), frozenset({"question"})),
    "explanation": FramePlaceholders(frozenset({"explanation"}), frozenset({"score"})),
    "answer": FramePlaceholders(frozenset({"question"})),
    "perturbation": FramePlaceholders(frozenset({"question", "reference", "guidance"})),
    "input": FramePlaceholders(frozenset({"question"})),
    "sorting": FramePlaceholders(frozenset({"question"})),
}
# frame -> the names that its prompt must hold
NEEDED_PLACEHOLDERS = {frame: shown.needed for frame, shown in FRAME_PLACEHOLDERS.items()}


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """`template` with each {{name}} replaced, in one pass: inserted text is never expanded."""
    return PLACEHOLDER.sub(lambda found: values[found[1]], template)


def find_names(template: str) -> set[str]:
    """The names that a template holds."""
    return set(PLACEHOLDER.findall(template))


def split_template(template: str) -> Iterator[tuple[str, bool]]:
    """The template cut up: each piece with whether it is a placeholder; none is empty."""
    at = 0
    for found in PLACEHOLDER.finditer(template):
        if at < found.start():
            yield template[at : found.start()], False
        yield found[0], True
        at = found.end()
    if at < len(template):
        yield template[at:], False


def has_malformed(template: str) -> bool:
    """Whether double braces are left that make no name, such as {{ first }}."""
    return "{{" in PLACEHOLDER.sub("", template)


VERDICTS = ("A", "B", "both good", "both unacceptable")
TOTAL = "total"
# The parts of a perturbation, as a generator is asked for them.
PERTURBED, CLAIM, RATIONALE = "perturbed", "claim", "rationale"
# Those of an input, beside a rationale. It may need no context.
INPUT, CONTEXT = "input", "context"
# What a prompt is sorted into, beside a rationale.
ABILITY = "ability"
# What makes texts of items, or sorts them, and judges none.
GENERATOR_FRAMES = frozenset({"answer", "perturbation", "input", "sorting"})


class StrategyError(ValueError):
    """A definition that cannot be used; the text names the file, the key and the remedy."""

    def __init__(self, source: str, key: str, remedy: str) -> None:
        super().__init__(f"{source}: {key}: {remedy}")
        self.source, self.key, self.remedy = source, key, remedy


@dataclass(frozen=True, slots=True)
class Scale:
    """The values a score may take: `low` to `high`, both included, `step` apart.

    `step` None is a continuous scale.
    """

    low: float
    high: float
    step: float | None = None

    def admits(self, value: float) -> bool:
        """Whether `value` is on the scale and on a step of it; never for NaN and infinities."""
        if not (math.isfinite(value) and self.low <= value <= self.high):
            return False
        if self.step is None:
            return True
        steps = (value - self.low) / self.step
        # steps such as 0.1 have no exact binary form
        return abs(steps - round(steps)) < 1e-9


@dataclass(frozen=True, slots=True)
class Axis:
    """What an evaluator is told to look at alone; `abilities` are those whose items it decides.

    Title and text are what {{axis}} becomes, `points` (what each score means) {{rubric}}.
    """

    slug: str
    title: str
    text: str
    abilities: tuple[str, ...] = ()
    points: Mapping[float, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Metric:
    """One thing that is scored by itself; `points` says what each value of its scale means."""

    slug: str
    title: str
    text: str
    scale: Scale
    points: Mapping[float, str] = field(default_factory=dict, hash=False)

    def admits(self, value: float) -> bool:
        """Whether `value` may be given: one of the points, where there are any."""
        return value in self.points if self.points else self.scale.admits(value)


@dataclass(frozen=True, slots=True)
class Step:
    """One question of a chain; a later step may show its reply as {{name}}."""

    name: str
    system: str
    prompt: str
    output: str


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to ask. `system` and `prompt` are "" for a baseline, `metric` "" for all others.

    `scale` is None for all that is no single score and for a metric without an upper end. `top`
    is the perfect score of a reference strategy, else None. `verdicts` are those offered to a
    pair strategy. `study` names where it comes from, "" if it is our own.

    `axes` each make a call and an outcome of their own. `metrics` are what a rating or a rubric
    scores; with `metrics_from` "task" they come from the task type. `steps` is () where one
    question is asked, and then system and prompt are that question's. `samples` is how often
    each call is made, and with `votes` the majority of them decides. `parameters` are laid over
    the endpoint's. `examples` is how many resolved items are shown first. `fold` says how a
    derived run makes one outcome of many: "majority" or "mean". `parser` is a named parser, ""
    for the usual one; `decides` the metric (or "total") that stands for the item; `about` whose
    explanation is checked: "perturbed" or "gold". With `worded` the answer is no JSON. `category`
    is what a generator of perturbations makes, "" for all else. With `needs_context` an input
    that comes without its context is incomplete.
    """

    slug: str
    title: str
    study: str
    frame: str
    output: str
    explanation: bool
    system: str
    prompt: str
    metric: str
    scale: Scale | None
    top: float | None
    verdicts: tuple[str, ...]
    definition: dict[str, Any] = field(repr=False, hash=False)
    axes: tuple[Axis, ...] = ()
    metrics: tuple[Metric, ...] = ()
    metrics_from: str = ""
    steps: tuple[Step, ...] = ()
    samples: int = 1
    votes: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    examples: int = 0
    fold: str = ""
    parser: str = ""
    decides: str = ""
    about: str = ""
    worded: bool = False
    category: str = ""
    needs_context: bool = False

    @property
    def generates(self) -> bool:
        """Whether it makes texts of items, and judges none."""
        return self.frame in GENERATOR_FRAMES

    @property
    def last_step(self) -> int:
        """The number of the step whose reply says what the item gets."""
        return max(0, len(self.steps) - 1)

    def step(self, number: int) -> Step:
        """What is asked at a step, from 0; IndexError if there is none."""
        if self.steps:
            return self.steps[number]
        return (Step("", self.system, self.prompt, self.output),)[number]

    def axis(self, slug: str) -> Axis | None:
        return next((axis for axis in self.axes if axis.slug == slug), None)

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema of the last step's answer; None where the answer is no JSON."""
        return self.schema_at(self.last_step)

    def schema_at(self, number: int) -> dict[str, Any] | None:
        """The JSON schema of a step's answer; None where the answer is no JSON."""
        answer = None if self.worded else self._answer(self.step(number).output)
        if answer is None or self.metric:
            return None
        explained = {"explanation": {"type": "string"}} if self.explanation else {}
        properties = explained | answer
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def _answer(self, output: str) -> dict[str, Any] | None:
        if output == "score":
            return {"score": _number(self.scale)}
        if output == "verdict":
            return {"verdict": {"type": "string", "enum": list(self.verdicts)}}
        if output == "scores":
            # None until a task type has given its metrics
            return {one.slug: _number(one.scale) for one in self.metrics} or None
        if output == "detection":
            return {"detection": {"type": "string", "enum": ["error", "no_error"]}}
        if output == "perturbation":
            return {name: {"type": "string"} for name in (PERTURBED, CLAIM, RATIONALE)}
        if output == "input":
            return {name: {"type": "string"} for name in (INPUT, CONTEXT, RATIONALE)}
        if output == "ability":
            known = [ability.slug for ability in taxonomy.load().sorts()]
            return {ABILITY: {"type": "string", "enum": known}, RATIONALE: {"type": "string"}}
        return {"flag": {"type": "boolean"}} if output == "flag" else None


def _number(scale: Scale | None) -> dict[str, Any]:
    """A short scale lists its values: every provider takes those, few take bounds."""
    if scale is None or scale.step is None or (scale.high - scale.low) / scale.step > 50:
        return {"type": "number"}
    steps = round((scale.high - scale.low) / scale.step)
    values = [round(scale.low + number * scale.step, 9) for number in range(steps + 1)]
    if all(float(value).is_integer() for value in values):
        return {"type": "integer", "enum": [int(value) for value in values]}
    return {"type": "number", "enum": values}
