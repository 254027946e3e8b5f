"""Descriptions of a strategy for people: the texts that it shows, the possible answers, and how it
decides. All functions are pure.
"""

from typing import NamedTuple

from judging.strategies import draws, frames, markers
from judging.strategies.frames import CallSpec
from judging.strategies.schema import TOTAL, Scale, Strategy


class FrameDescription(NamedTuple):
    """The title of a frame, and the texts that it shows."""

    title: str
    shows: str


FRAME_DESCRIPTIONS = {
    "single": FrameDescription(
        "Single answers",
        "The question with one answer per call: the gold answer, then the perturbed answer.",
    ),
    "pair": FrameDescription(
        "Pairs",
        "The question with both answers, in both orders.",
    ),
    "reference": FrameDescription(
        "With a reference", "The question, the perturbed answer, and the gold answer as reference."
    ),
    "detection": FrameDescription("Error detection", "An input and a model's response."),
    "rating": FrameDescription(
        "Ratings", "A task and a response; also the gold answer if the prompt shows it."
    ),
    "rubric": FrameDescription(
        "Rubrics", "A response; also question and gold answer if the prompt shows them."
    ),
    "matching": FrameDescription("Matching", "A response and the gold answer it should match."),
    "explanation": FrameDescription(
        "Checks of explanations", "Another run's explanations of items it did not detect."
    ),
    "fold": FrameDescription(
        "Votes and panels", "Nothing. It combines the outcomes of other runs."
    ),
    "answer": FrameDescription("Generators of answers", "The prompt alone."),
    "perturbation": FrameDescription(
        "Generators of perturbations", "The prompt with the gold answer."
    ),
    "input": FrameDescription("Generators of inputs", "The source prompt for a new input."),
    "translation": FrameDescription("Translations", "All texts of the item."),
    "sorting": FrameDescription("Suggestions of abilities", "The prompt alone."),
}
# The finish reasons of a reply.
FINISH_DESCRIPTIONS = {
    "stop": "complete",
    "length": "cut off at the token limit",
    "refused": "the evaluator refused",
    "filtered": "blocked by a filter of the provider",
    "other": "ended early by the provider",
    "unknown": "the provider named no reason",
}
PATH_DESCRIPTIONS = {
    "strict": "the whole reply is the answer, or one JSON object that contains it",
    "fenced": "a JSON object in a code block",
    "embedded": "a JSON object among other text",
    "repaired": "a JSON object that was repaired",
    "pattern": "a marker or a phrase in the text",
}
_CALL_TITLES = {
    ("gold", 0): "Gold answer",
    ("perturbed", 0): "Perturbed answer",
    ("response", 0): "Response",
    ("answer", 0): "Prompt",
    ("perturbation", 0): "Gold answer",
    ("input", 0): "Prompt",
    ("sorting", 0): "Prompt",
    ("translation", 0): "All texts",
    ("pair", 1): "Both answers, gold first as A",
    ("pair", 2): "Both answers, perturbed first as A",
}
_FOLD_DESCRIPTIONS = {
    "majority": "Detected if more than half of all members detect; missing members count in the "
    "total.",
    "veto": "Detected if any member detects; a missing member counts as one that does not.",
    "weighted": "Detected if the members that detect have more than half of all weights; missing "
    "members count in the total.",
    "mean": "Scores are averaged over the members first, then compared.",
}
_PARSER_DESCRIPTIONS = {
    "": "JSON first, then markers in the text",
    "strict": "JSON first, then markers in the text",
    "phrases-001": "closing phrases, as in study 001",
}


def format_call_title(strategy: Strategy, spec: CallSpec) -> str:
    """Describe what one call shows, with the axis and the step if there are several."""
    shown = _CALL_TITLES.get((spec.role, spec.order), f"{spec.role} {spec.order}")
    if strategy.frame == "explanation":
        shown = f"Explanation of the {spec.role} answer"
    axis = strategy.axis(spec.axis)
    step = strategy.step(spec.step).name if strategy.last_step else ""
    parts = (shown, axis.title if axis else "", f"step {spec.step + 1}: {step}" if step else "")
    return ", ".join(part for part in parts if part)


def format_call_name(spec: CallSpec) -> str:
    """The name of a call in URLs and forms."""
    return ".".join((spec.role, str(spec.order), spec.axis, str(spec.step)))


def find_call(strategy: Strategy, wanted: str) -> CallSpec | None:
    """Find the call with this name, the first call for "", or None if there is no such call."""
    specs = frames.list_all_calls(strategy)
    if not wanted:
        return specs[0] if specs else None
    return next((spec for spec in specs if format_call_name(spec) == wanted), None)


def describe_answers(strategy: Strategy) -> str:
    """The possible answers, as text."""
    said = {
        "score": f"a score {describe_scale(strategy.scale)}",
        "verdict": f"one verdict of {', '.join(strategy.verdicts)}",
        "detection": "error or no error",
        "scores": "a value of each metric",
        "flag": "true or false",
        "fold": "none: no request is sent",
        "answer": "the whole reply is the answer",
        "perturbation": "a perturbed answer, what was changed, and why it is worse",
        "input": "an input, the context that belongs to it, and why a model is likely to fail",
        "ability": "one of the abilities, and the reason",
        "translation": "all texts of the item in another language",
    }[strategy.output]
    if strategy.metric:
        return f"{said}, measured by {strategy.metric}"
    return f"an explanation, then {said}" if strategy.explanation else said


def describe_values(strategy: Strategy) -> str:
    """The values that are recorded without the text of a reply, in the plural."""
    named = {"score": "scores", "scores": "scores", "verdict": "verdicts", "detection": "verdicts"}
    return named.get(strategy.output, "values")


def describe_scale(scale: Scale | None) -> str:
    """A scale, as text."""
    if scale is None:
        return "of any size"
    steps = "" if scale.step in (None, 1) else f" in steps of {scale.step:g}"
    whole = ", whole numbers" if scale.step == 1 else ""
    return f"from {scale.low:g} to {scale.high:g}{steps}{whole}"


def describe_decision(strategy: Strategy) -> list[str]:
    """How the outcome of an item is decided, as sentences."""
    return [*describe_outcome(strategy), *filter(None, [_samples(strategy)])]


def describe_outcome(strategy: Strategy) -> list[str]:
    """What counts as which outcome, as sentences, whatever the number of samples."""
    drawn = map(draws.describe, strategy.draws)
    return [*filter(None, (_describe_output(strategy), _describe_axes(strategy), *drawn))]


def describe_parsing(strategy: Strategy) -> str:
    """How a reply is parsed, as text."""
    if strategy.metric or strategy.frame == "fold":
        return "there is no reply to read"
    return _PARSER_DESCRIPTIONS[strategy.parser]


def describe_protection(strategy: Strategy) -> str:
    """Whether the prompts mark the texts that they show, and what that means, as sentences."""
    marked, guarded = markers.has_markers(strategy.prompts), markers.has_guard(strategy.prompts)
    lines = "The texts stand between marker lines" if marked else "There are no marker lines"
    sentence = "a sentence says" if guarded else "no sentence says"
    return (
        f"{lines}, and {sentence} that instructions inside the texts are not to be followed. Such "
        "lines and such a sentence are meant to keep an evaluator from following a text that "
        "speaks to it; how well they do is not known. Both are part of the wording, and wording "
        "moves figures; markers = false and guard = false leave them out."
    )


def describe_wording(strategy: Strategy) -> str:
    """Whose words the prompts of a shipped strategy are, as sentences; "" if it has no prompt or is
    of no study."""
    if not (strategy.study and strategy.prompts):
        return ""
    return (
        f"The prompts are reworded after study {strategy.study[:3]}, not copied from it. "
        "Compare with its figures only with care, or import the study's own prompts."
    )


def _describe_output(strategy: Strategy) -> str:
    top = f"{strategy.top:g}" if strategy.top is not None else ""
    return {
        "single": "Detected if the perturbed answer gets a lower score than the gold answer.",
        "pair": "Detected if the gold answer is chosen in both orders.",
        "reference": f"Detected if the score is below {top}, the top of the scale.",
        "detection": "The verdict is compared with the final label.",
        "rating": _describe_metrics(strategy),
        "rubric": _describe_metrics(strategy),
        "matching": "The score is compared with the final label.",
        "answer": "Generated if the reply has a text.",
        "perturbation": "Generated if the reply has all three parts.",
        "input": "Generated if the reply has all three parts."
        if strategy.needs_context
        else "Generated if the reply has an input and a rationale; the context may be empty.",
        "translation": "Generated if the reply has every text of the item.",
        "sorting": "Suggested if the reply names an ability; a lead accepts it or chooses another.",
        "explanation": "Found if the explanation names an error; the item then counts as detected "
        "for the other run.",
        "fold": _FOLD_DESCRIPTIONS.get(strategy.fold, ""),
    }[strategy.frame]


def _describe_metrics(strategy: Strategy) -> str:
    if strategy.decides == TOTAL:
        return (
            "The total of all metrics is the item's outcome. It is missing if one "
            "metric is missing."
        )
    if strategy.decides:
        return (
            f"The metric {strategy.decides} is the item's outcome; the others are reported "
            "separately."
        )
    if strategy.metrics_from:
        return "The deciding field of the task type is the item's outcome."
    return "Each metric is compared with people separately; there is no overall outcome."


def _describe_axes(strategy: Strategy) -> str:
    if not strategy.axes:
        return ""
    return (
        "Each axis has its own calls and outcome; the axis of an item's "
        "ability is the item's outcome."
    )


def _samples(strategy: Strategy) -> str:
    if strategy.samples == 1:
        return ""
    if strategy.generates:
        return f"{strategy.samples} requests per item; each reply is a separate result."
    how = (
        "more than half of all of them decide."
        if strategy.votes
        else "the value is the share of the parsed repeats that detect."
    )
    return f"{strategy.samples} samples per call: {how}"
