"""Frames: the texts of an item that an evaluator is shown, the calls that show them, and the
rendered prompts.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judging.strategies import criteria, schema
from judging.strategies.schema import TRANSLATION, Strategy, fill_template

RENDERER = "render-2"
# Frames that did not show the context of an item, by the renderer that a run was started with.
WITHOUT_CONTEXT = {"render-1": {"single", "pair", "reference"}}
NO_EXAMPLES = "(none)"
NO_LANGUAGE = "(language)"
# Stands for all texts of an item, in place of the name of one.
ALL_TEXTS = "*"
# The order in which all texts of an item are shown; others follow by name. Databases keep none.
_TEXT_ORDER = ("prompt", "input", "context", "gold", "response", "perturbed", "claim", "rationale")


@dataclass(frozen=True, slots=True, order=True)
class CallSpec:
    """One call for an item: its role, and the order of its texts.

    `order` is 0 if there is only one order. For a pair, 1 means that the gold answer is shown
    first, 2 that the perturbed answer is. `axis` is the slug of the axis to judge, "" for the whole
    answer; `step` is the step of a chain, from 0.
    """

    role: str
    order: int = 0
    axis: str = ""
    step: int = 0


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A rendered prompt: the system and the user text. Both are "" for a baseline, which uses
    `parts`."""

    system: str
    user: str
    parts: dict[str, Any] = field(default_factory=dict)


_RESPONSE = {"question": "question", "response": "response", "reference": "gold"}

# frame -> call -> placeholder -> name of the item's text
FRAMES: dict[str, dict[CallSpec, dict[str, str]]] = {
    "single": {
        CallSpec("gold"): {"question": "question", "response": "gold"},
        CallSpec("perturbed"): {"question": "question", "response": "perturbed"},
    },
    "pair": {
        CallSpec("pair", 1): {"question": "question", "first": "gold", "second": "perturbed"},
        CallSpec("pair", 2): {"question": "question", "first": "perturbed", "second": "gold"},
    },
    "reference": {
        CallSpec("perturbed"): {
            "question": "question",
            "response": "perturbed",
            "reference": "gold",
        },
    },
    "detection": {CallSpec("response"): {"question": "question", "response": "response"}},
    "rating": {CallSpec("response"): _RESPONSE},
    "rubric": {CallSpec("response"): _RESPONSE},
    "matching": {CallSpec("response"): _RESPONSE},
    # This frame shows no texts of the item, only the explanation and the score in a run's reply.
    "explanation": {CallSpec("perturbed"): {}, CallSpec("gold"): {}},
    "fold": {},
    # Generators: their replies are not judgements but texts of new items.
    "answer": {CallSpec("answer"): {"question": "question"}},
    "perturbation": {CallSpec("perturbation"): {"question": "prompt", "reference": "gold"}},
    "input": {CallSpec("input"): {"question": "question"}},
    "sorting": {CallSpec("sorting"): {"question": "question"}},
    "translation": {CallSpec("translation"): {"texts": ALL_TEXTS}},
}

# frame -> how an item must be resolved
_ITEM_NEEDS = {
    "single": "perturbation",
    "pair": "perturbation",
    "reference": "perturbation",
    "detection": "detection",
    "rating": "values",
    "rubric": "values",
    "matching": "values",
    "explanation": "run",
    "fold": "run",
    "answer": "prompt",
    "perturbation": "gold",
    "input": "prompt",
    "sorting": "prompt",
    "translation": "texts",
}


def get_item_needs(strategy: Strategy) -> str:
    """How an item must be resolved for this strategy.

    "perturbation": valid or score-invariant; "detection": error or no_error; "values": any
    resolution; "run": items with outcomes in another run; "prompt" and "gold": items with this
    text, resolved or not. An input of study 001 counts as a prompt too. "texts": every item.
    """
    return _ITEM_NEEDS[strategy.frame]


def list_calls(strategy: Strategy, *, axis: str = "", step: int = 0) -> tuple[CallSpec, ...]:
    """List the calls for one item at a step and along an axis, in the order in which they are
    created.
    """
    return tuple(
        CallSpec(spec.role, spec.order, axis, step)
        for spec in FRAMES[strategy.frame]
        if strategy.frame != "explanation" or spec.role == (strategy.about or "perturbed")
    )


def list_all_calls(strategy: Strategy) -> tuple[CallSpec, ...]:
    """List the calls for one item along every axis and at every step."""
    axes = [axis.slug for axis in strategy.axes] or [""]
    steps = range(strategy.last_step + 1)
    return tuple(
        spec
        for axis in axes
        for step in steps
        for spec in list_calls(strategy, axis=axis, step=step)
    )


def count_calls_per_axis(strategy: Strategy, samples: int | None = None) -> int:
    """The number of calls for one item along one axis: every order, step and sample, by default the
    strategy's number of samples."""
    made = len(list_calls(strategy)) * (strategy.last_step + 1)
    return made * (strategy.samples if samples is None else samples)


def can_show(strategy: Strategy, texts: Collection[str]) -> bool:
    """True if items that have the texts of these names have all that the calls show."""
    names = {*texts, "question"} if {"prompt", "input"} & {*texts} else {*texts}
    return all(names >= _list_shown_texts(strategy, spec) for spec in list_all_calls(strategy))


def _list_shown_texts(strategy: Strategy, spec: CallSpec) -> set[str]:
    sources = _sources(strategy, spec)
    if strategy.metric:
        return {*sources.values()}
    names = schema.find_names(strategy.step(spec.step).prompt)
    return {text for name, text in sources.items() if name in names} - {ALL_TEXTS}


def render_prompt(
    strategy: Strategy,
    texts: Mapping[str, Any],
    spec: CallSpec,
    *,
    more: Mapping[str, str] | None = None,
) -> RenderedPrompt:
    """Render the prompt of one call about an item with these texts.

    It depends only on the strategy, the texts that the call shows, and `more`: replies of earlier
    steps by step name, `examples`, what was drawn for the item, and for an explanation check
    `explanation` and `score`. So for two items with the same prompt and gold answer, the prompts
    about the gold answer are identical. Texts are inserted unchanged. Raises ValueError if the
    strategy does not make this call, or if a text is missing.
    """
    sources = _sources(strategy, spec)
    if strategy.metric:
        parts = {name: _get_measured_text(texts, source, spec) for name, source in sources.items()}
        return RenderedPrompt("", "", {"metric": strategy.metric, "reference": "", **parts})
    step = strategy.step(spec.step)
    values = _build_strategy_values(strategy, spec) | dict(more or {})
    for name in schema.find_names(step.prompt) - values.keys():
        if name not in sources:
            raise ValueError(f"call {spec} needs {name!r}, which it was not given")
        values[name] = format_text(texts, sources[name], spec)
    return RenderedPrompt(system=step.system, user=fill_template(step.prompt, values))


def render_examples(strategy: Strategy, shown: Sequence[tuple[Mapping[str, Any], Any]]) -> str:
    """Return the text for {{examples}}. Each example is a pair: the texts of an item, and its final
    label.

    A label is a value for each metric, a score, or a verdict. The examples show the same texts as
    the last step. Raises ValueError for a missing text.
    """
    spec = list_calls(strategy)[0]
    used = schema.find_names(strategy.step(strategy.last_step).prompt)
    sources = _sources(strategy, spec)
    names = [name for name in criteria.PART_TITLES if name in used & sources.keys()]
    made: list[str] = []
    for texts, truth in shown:
        parts = {
            criteria.PART_TITLES[name]: format_text(texts, sources[name], spec) for name in names
        }
        made.append(
            criteria.render_example(
                len(made) + 1,
                parts,
                criteria.render_truth(strategy, truth),
                markers=strategy.markers,
            )
        )
    return "\n\n".join(made)


def render_blank_prompts(strategy: Strategy) -> list[RenderedPrompt]:
    """Render every prompt of the strategy without texts, to check whether a provider accepts the
    prompts.
    """
    more = {name: "" for step in strategy.steps for name in [step.name]}
    from_elsewhere = ("examples", "explanation", "score", "metrics", "form", "guidance", "texts")
    more |= dict.fromkeys(from_elsewhere, "")
    more |= {draw.name: "" for draw in strategy.draws}
    texts = dict.fromkeys(("prompt", "gold", "perturbed", "response"), "")
    return [render_prompt(strategy, texts, spec, more=more) for spec in list_all_calls(strategy)]


def build_schema(
    strategy: Strategy, spec: CallSpec, texts: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The JSON schema of the answer to a call about an item with these texts; None if the answer is
    not JSON. Only that of a translation depends on the texts."""
    found = strategy.schema_at(spec.step)
    if found is None or not strategy.translates:
        return found
    one: dict[str, Any] = {"type": "string"}
    many = {"type": "array", "items": one}
    parts = {
        name: one if isinstance(text, str) else many for name, text in list_texts(texts).items()
    }
    answer = {
        "type": "object",
        "properties": parts,
        "required": list(parts),
        "additionalProperties": False,
    }
    return found | {"properties": {TRANSLATION: answer}}


def list_texts(texts: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """The texts of an item that are not empty, in the order in which a prompt shows all of them;
    several references are a list."""
    names = [name for name in _TEXT_ORDER if name in texts]
    names += sorted(texts.keys() - set(names))
    found = {
        name: texts[name] if isinstance(texts[name], str) else [str(one) for one in texts[name]]
        for name in names
    }
    return {name: text for name, text in found.items() if "".join(text).strip()}


def _sources(strategy: Strategy, spec: CallSpec) -> dict[str, str]:
    sources = FRAMES[strategy.frame].get(CallSpec(spec.role, spec.order))
    known = strategy.axis(spec.axis) is not None if strategy.axes else not spec.axis
    if sources is None or not known or spec.step > strategy.last_step:
        raise ValueError(f"frame {strategy.frame!r} has no call {spec}")
    return sources


def _build_strategy_values(strategy: Strategy, spec: CallSpec) -> dict[str, str]:
    """Return the placeholder values that come from the strategy itself."""
    values = {"guidance": ""} if strategy.frame == "perturbation" else {}
    if not strategy.examples:
        values["examples"] = NO_EXAMPLES  # in case a run shows no examples
    if axis := strategy.axis(spec.axis):
        values = {
            "axis": criteria.render_axis(axis),
            "rubric": criteria.render_points(axis.points),
            "rules": criteria.render_rules(axis.rules),
        }
    if strategy.translates:
        values["language"] = strategy.language or NO_LANGUAGE
    if strategy.metrics:
        values["metrics"] = criteria.render_metrics(strategy.metrics)
        values["form"] = criteria.render_form(strategy)
    return values


def _text(texts: Mapping[str, Any], name: str, spec: CallSpec) -> Any:
    if name == "question":
        name = "prompt" if "prompt" in texts else "input"
    if name not in texts:
        raise ValueError(
            f"The {spec.role} call needs the text {name!r}, which this item does not have."
        )
    return texts[name]


def _get_measured_text(texts: Mapping[str, Any], name: str, spec: CallSpec) -> Any:
    """Return a text for a baseline; several references become a list."""
    text = _text(texts, name, spec)
    return list(text) if isinstance(text, Sequence) and not isinstance(text, str) else text


def format_text(texts: Mapping[str, Any], name: str, spec: CallSpec) -> str:
    """Format a text as a prompt shows it: a question with its context, and several references with
    numbers. All texts together are a JSON object. Raises ValueError for a missing text.
    """
    if name == ALL_TEXTS:
        if not list_texts(texts):
            raise ValueError("This item has no text to translate.")
        return json.dumps(list_texts(texts), ensure_ascii=False, indent=2)
    text = _text(texts, name, spec)
    if name == "question" and texts.get("context"):
        return f"{text}\n\n{texts['context']}"
    if isinstance(text, str):
        return text
    alternatives = list(text)
    if len(alternatives) == 1:
        return str(alternatives[0])
    return "\n\n".join(f"({number}) {one}" for number, one in enumerate(alternatives, start=1))
