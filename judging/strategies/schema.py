"""The parts of a strategy as its file declares them; `definitions` reads the file.

This module also has the names in double braces that a prompt may use, and fills them in.

FRAME_PLACEHOLDERS lists the texts that each frame shows. A strategy adds names by what it declares:
{{axis}}, {{rubric}} and {{rules}} with axes, {{metrics}} and {{form}} with metrics, {{examples}}
with examples, the names of its draws, and in a chain the names of the earlier steps. {{guidance}}
is the earlier attempt with the reviewer's remark about it; "" for the first attempt. {{texts}} are
all texts of an item as one JSON object, {{language}} is the language that a run translates into.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from annotation.items.taxonomy import Ability, Category, Taxonomy

PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
# Names that a step of a chain cannot have.
RESERVED_NAMES = frozenset(
    {
        "question", "response", "reference", "first", "second", "explanation", "score",
        "axis", "rubric", "metrics", "form", "examples", "guidance", "texts", "language",
    }
)  # fmt: skip


class FramePlaceholders(NamedTuple):
    """The names that the prompts of a frame must use, and the names that they may use."""

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
    "translation": FramePlaceholders(frozenset({"texts", "language"})),
}
# frame -> the names that its prompt must use
NEEDED_PLACEHOLDERS = {frame: shown.needed for frame, shown in FRAME_PLACEHOLDERS.items()}


# Characters of a filled-in prompt. It may show a text of a million characters many times.
MAX_PROMPT_LENGTH = 10_000_000


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """`template` with each {{name}} replaced, in one pass: inserted text is never expanded. Raises
    ValueError for a result of more than `MAX_PROMPT_LENGTH` characters."""
    length = len(template) + sum(len(values[name]) for name in PLACEHOLDER.findall(template))
    if length > MAX_PROMPT_LENGTH:
        raise ValueError(f"its prompt would be longer than {MAX_PROMPT_LENGTH:,} characters")
    return PLACEHOLDER.sub(lambda found: values[found[1]], template)


def find_names(template: str) -> set[str]:
    """The placeholder names in a template."""
    return set(PLACEHOLDER.findall(template))


def split_template(template: str) -> Iterator[tuple[str, bool]]:
    """Split the template into its non-empty pieces, each marked as a placeholder or not."""
    at = 0
    for found in PLACEHOLDER.finditer(template):
        if at < found.start():
            yield template[at : found.start()], False
        yield found[0], True
        at = found.end()
    if at < len(template):
        yield template[at:], False


def has_malformed(template: str) -> bool:
    """True if there are double braces that are not a placeholder, such as {{ first }}."""
    return "{{" in PLACEHOLDER.sub("", template)


VERDICTS = ("A", "B", "both good", "both unacceptable")
TOTAL = "total"
# The parts of a generated perturbation.
PERTURBED, CLAIM, RATIONALE = "perturbed", "claim", "rationale"
# The parts of a generated input, besides a rationale. The input may need no context.
INPUT, CONTEXT = "input", "context"
# The ability that a prompt is sorted into, besides a rationale.
ABILITY = "ability"
# All texts of an item in another language, by their names.
TRANSLATION = "translation"
# Frames that generate texts or sort them, but do not judge any.
GENERATOR_FRAMES = frozenset({"answer", "perturbation", "input", "sorting", "translation"})


class StrategyError(ValueError):
    """An invalid definition; the message has the file, the key and the remedy."""

    def __init__(self, source: str, key: str, remedy: str) -> None:
        super().__init__(f"{source}: {key}: {remedy}")
        self.source, self.key, self.remedy = source, key, remedy


@dataclass(frozen=True, slots=True)
class Scale:
    """The values that a score may take: `low` to `high`, both included, `step` apart.

    A `step` of None is a continuous scale.
    """

    low: float
    high: float
    step: float | None = None

    def admits(self, value: float) -> bool:
        """True if `value` is on the scale and on one of its steps. False for NaN and infinities."""
        if not (math.isfinite(value) and self.low <= value <= self.high):
            return False
        if self.step is None:
            return True
        steps = (value - self.low) / self.step
        # steps such as 0.1 have no exact binary form; of tiny ones there are infinitely many
        return math.isfinite(steps) and abs(steps - round(steps)) < 1e-9


@dataclass(frozen=True, slots=True)
class Axis:
    """An aspect that an evaluator judges separately. Its judgement decides the items of its
    `abilities`.

    Title and text are shown as {{axis}}, `points` (the meaning of each score) as {{rubric}}, and
    `rules` (how to compare along the axis) as {{rules}}.
    """

    slug: str
    title: str
    text: str
    abilities: tuple[str, ...] = ()
    points: Mapping[float, str] = field(default_factory=dict, hash=False)
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """One quality that is scored separately; `points` says what each value of its scale means."""

    slug: str
    title: str
    text: str
    scale: Scale
    points: Mapping[float, str] = field(default_factory=dict, hash=False)

    def admits(self, value: float) -> bool:
        """True if `value` is one of the points or, if there are no points, a value of the scale."""
        return value in self.points if self.points else self.scale.admits(value)


@dataclass(frozen=True, slots=True)
class Step:
    """One question of a chain; a later step may show its reply as {{name}}."""

    name: str
    system: str
    prompt: str
    output: str


@dataclass(frozen=True, slots=True)
class DrawOption:
    """One option of a draw: `share` is the percentage of the items that get it, `text` what the
    prompt then shows. With a `value`, a script of `draws.VALUES` finds in the item what the text
    shows as {{value}}; items in which it finds nothing do not get the option."""

    name: str
    text: str
    share: float = 0.0
    value: str = ""


@dataclass(frozen=True, slots=True)
class Draw:
    """What a generator draws for each item: `at_least` to `at_most` of the options, by their
    shares. {{name}} shows the texts of the drawn options, and the generated item has their names in
    its field `drawn_name`."""

    name: str
    options: tuple[DrawOption, ...]
    at_least: int = 1
    at_most: int = 1

    @property
    def percentages(self) -> list[tuple[DrawOption, float]]:
        """Each option with the percentage of the items that get it. Of draws that give one option,
        the shares may be mere proportions."""
        total = sum(one.share for one in self.options) if self.at_most == 1 else 100
        return [(one, 100 * one.share / total) for one in self.options]


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to ask an evaluator. `system` and `prompt` are "" for a baseline, `metric` "" for
    others.

    `scale` is None unless the output is a single score, and for a metric without an upper bound.
    `top` is the perfect score of a reference strategy, else None. `verdicts` are those offered to a
    pair strategy. `study` names its source, "" if it is our own.

    Each of the `axes` has its own call and outcome. `metrics` are what a rating or a rubric scores;
    with `metrics_from` "task" they come from the task type. `steps` is () if there is a single
    question, and then system and prompt are that question's. `samples` is how often each call is
    made; with `votes` their majority decides. `parameters` override the endpoint's. `examples` is
    the number of few-shot examples. `fold` says how a derived run combines outcomes: "majority",
    "veto", "weighted" or "mean"; `weights` are those of its members in the order of their numbers,
    from the run. `parser` is a named parser, "" for the default; `decides` the metric (or "total")
    that decides the item; `about` whose explanation is checked: "perturbed" or "gold". With
    `worded` the answer is not JSON. `category` is what a generator of perturbations generates, ""
    for others. With `needs_context` an input without its context is incomplete; with `rewords` it
    is the source prompt in other words. `draws` are what a generator draws for each item.
    `language` is what a run translates into, "" for other runs and as long as there is no run.
    `markers` and
    `guard` are False if the prompts leave out marker lines and the sentence against injected
    instructions (see `markers`). `abilities` and `made` come from the project,
    see `with_categories`.
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
    weights: tuple[float, ...] = ()
    parser: str = ""
    decides: str = ""
    about: str = ""
    worded: bool = False
    category: str = ""
    needs_context: bool = False
    draws: tuple[Draw, ...] = ()
    rewords: bool = False
    language: str = ""
    markers: bool = True
    guard: bool = True
    abilities: tuple[Ability, ...] = ()
    made: Category | None = None

    def with_categories(self, known: Taxonomy) -> "Strategy":
        """Return the same strategy in a project with these categories: with the `abilities` into
        which it sorts prompts, and `made`, the category of what it generates (None if the project
        has no such category)."""
        sorts = known.sorts if self.output == "ability" else ()
        made = known.find(self.category) if self.category else None
        if (sorts, made) == (self.abilities, self.made):
            return self
        return replace(self, abilities=sorts, made=made)

    @property
    def generates(self) -> bool:
        """True if the strategy generates texts of items and judges none."""
        return self.frame in GENERATOR_FRAMES

    @property
    def translates(self) -> bool:
        """True if the strategy translates all texts of an item into the language of a run."""
        return self.frame == "translation"

    @property
    def last_step(self) -> int:
        """The number of the step whose reply decides the item."""
        return max(0, len(self.steps) - 1)

    def step(self, number: int) -> Step:
        """The step with this number, from 0; IndexError if there is none."""
        if self.steps:
            return self.steps[number]
        return (Step("", self.system, self.prompt, self.output),)[number]

    @property
    def prompts(self) -> list[str]:
        """The system and user texts of every step."""
        asked = [self.step(number) for number in range(self.last_step + 1)]
        return [text for step in asked for text in (step.system, step.prompt) if text]

    def axis(self, slug: str) -> Axis | None:
        """The axis with this slug; None if there is none."""
        return next((axis for axis in self.axes if axis.slug == slug), None)

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema of the last step's answer; None if the answer is not JSON."""
        return self.schema_at(self.last_step)

    def schema_at(self, number: int) -> dict[str, Any] | None:
        """The JSON schema of a step's answer; None if the answer is not JSON."""
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
        if output == "translation":
            return {TRANSLATION: {"type": "object"}}  # frames.build_schema knows the item's texts
        if output == "ability":
            known = [ability.slug for ability in self.abilities]
            return {ABILITY: {"type": "string", "enum": known}, RATIONALE: {"type": "string"}}
        return {"flag": {"type": "boolean"}} if output == "flag" else None


def _number(scale: Scale | None) -> dict[str, Any]:
    """Return the schema of a number. A short scale becomes an enum of its values: every provider
    accepts enums, but few accept bounds.
    """
    if scale is None or scale.step is None or (scale.high - scale.low) / scale.step > 50:
        return {"type": "number"}
    steps = round((scale.high - scale.low) / scale.step)
    values = [round(scale.low + number * scale.step, 9) for number in range(steps + 1)]
    if all(float(value).is_integer() for value in values):
        return {"type": "integer", "enum": [int(value) for value in values]}
    return {"type": "number", "enum": values}
