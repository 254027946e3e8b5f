"""What a reply says: a number, a verdict, one number a metric, true or false, or a text.

The finish reason is read before the text: half a reply, a refusal or a filtered reply is never
searched for an answer. A score off the scale or off its steps is kept out, never moved onto it.
A last verdict that was not offered makes the reply unparsable, even if an offered one stands
before it. A verdict speaks of the shown order: A is what stood first.

score      a number on the strategy's scale
verdict    one of those the strategy offers
detection  "error" or "no_error"; in words read by `phrases.last_statement`, or as study 001 did
scores     {metric: number}; a metric that was not read has its cause in the number's place
flag       true or false
text       what stands in the last `<RESULT>...</RESULT>`, for a later step of a chain; the whole
           reply where the prompt asks for no such tags
answer     the whole reply, as the gold answer that it is to be
perturbation  {"perturbed", "claim", "rationale"}, each a text; one that is missing or empty makes
           the reply incomplete, since what was changed could not be vetted
input      {"input", "context", "rationale"}, each a text, of which the context alone may be empty,
           unless the strategy needs it
ability    {"ability", "rationale"}: one of the abilities that prompts are sorted into, by its slug,
           name or code, and why, which may be missing; another ability leaves the reply unparsable
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from annotation import taxonomy
from judging.prompts.declared import (
    ABILITY,
    CLAIM,
    CONTEXT,
    INPUT,
    PERTURBED,
    RATIONALE,
    Metric,
    Scale,
    Step,
    Strategy,
)
from judging.prompts.frames import CallSpec
from judging.replies import grades, objects, parsing, phrases, scores
from judging.replies.grades import Value
from judging.replies.objects import Fields
from judging.replies.parsing import Patterns, bare, last, marks

PARSER = parsing.PARSER
# Named parsers of an output; the first is what a strategy gets that names none.
PHRASES = "phrases-001"
PARSERS = {"detection": ("strict", PHRASES)}
# finish reason -> cause; any other ("stop", "other", none given) leaves a text to read
CUT_SHORT = {"length": "truncated", "refused": "refused", "filtered": "filtered"}
LONGEST_NAME = 80

_UNMARKED = Patterns(lambda text, start: None)
_SCORE_MARK = last(marks("score", r"[-+−]?[0-9][^\n]{0,60}"))
_SCORE_BARE = bare(re.compile(rf"[*_`\"']{{0,4}}({grades.NUMBER})[*_`\"'.]{{0,4}}"))
_VERDICT_PATTERNS = Patterns(
    marked=last(
        marks("verdict", rf"(?:{grades.SAID}){grades.ENDS}[^\n]{{0,40}}|[^\n]{{1,30}}(?:\n|\Z)")
    ),
    loose=(bare(re.compile(rf"[*_`\"'(]{{0,4}}({grades.SAID})[*_`\"').!]{{0,4}}", re.IGNORECASE)),),
)
_TRUE = r"(?:true|false|yes|no)\b"
_FLAG_PATTERNS = Patterns(
    marked=last(marks("flag|answer|result|verdict", rf"{_TRUE}[^\n]{{0,40}}")),
    loose=(
        last(re.compile(rf"^[*_`\"' \t]{{0,9}}({_TRUE})(?=[*_`\"'.! \t]{{0,9}}$)", re.I | re.M)),
    ),
)
_DETECTION_PATTERNS = Patterns(
    marked=last(marks("detection", r"(?:no[ _-]?)?error\b[^\n]{0,40}")),
    loose=(
        phrases.concluded,
        bare(re.compile(r"[*_`\"']{0,4}((?:no[ _-]?)?error)[*_`\"'.]{0,4}", re.IGNORECASE)),
    ),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a parser made of one reply.

    `value` is what the output says (see above), or None, and then `cause` says why: truncated,
    refused, filtered, unparsable, incomplete, off_scale, or the cause of a request that failed. Of
    scores it
    is None only if no metric was read. `path` is the way by which the answer was found (see
    parsing), "" if none was.
    """

    value: float | str | bool | dict[str, float | str] | None
    path: str = ""
    cause: str = ""
    explanation: str = ""


class Output(NamedTuple):
    """A kind of answer: its keys in JSON, its marks in prose, and how to read what they hold."""

    keys: Callable[[Strategy], frozenset[str]]
    patterns: Callable[[Strategy], Patterns]
    value: Callable[[Fields | str, Strategy], tuple[Any, str]]


def read(
    strategy: Strategy, text: str, finish: str = "stop", *, spec: CallSpec | None = None
) -> Reading:
    """The reading of one reply to `strategy`; never raises, whatever the text.

    `finish` is the finish reason in the words of judging.providers. `spec` is the call that was
    answered; only its step matters, and without it the last one is meant.
    """
    if finish in CUT_SHORT:
        return Reading(None, cause=CUT_SHORT[finish])
    step = strategy.step(spec.step if spec else strategy.last_step)
    if step.output in ("text", "answer"):
        return _text(text, in_tags=_in_tags(step))
    if step.output == "detection" and strategy.parser == PHRASES:
        return _published(text, strategy)
    output = OUTPUTS[step.output]
    answer = parsing.find(text, output.keys(strategy), output.patterns(strategy))
    if answer is None:
        return Reading(None, cause="unparsable")
    value, cause = output.value(answer.raw, strategy)
    return Reading(value, answer.path, cause, _explained(answer.explanation, strategy))


def parser(strategy: Strategy) -> str:
    """The parser's version with all of the strategy that a reading depends on.

    Two strategies with equal names here read every reply alike. At most 80 characters: what is
    longer ends in a digest.
    """
    steps = strategy.steps or (strategy.step(0),)
    outputs = [f"{step.output}-in-tags" if _in_tags(step) else step.output for step in steps]
    named = strategy.parser or PARSERS.get(strategy.output, ("",))[0]
    explained = "explained" if strategy.explanation else ""
    name = " ".join(filter(None, [PARSER, *outputs, named, _offered(strategy), explained]))
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{name[: LONGEST_NAME - len(digest) - 1]}~{digest}"


def storable(text: str) -> str:
    """A text as a column takes it: without NUL and half surrogate pairs, which JSON can spell."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return whole.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _offered(strategy: Strategy) -> str:
    if strategy.metrics:
        return ",".join(f"{metric.slug}:{_values(metric)}" for metric in strategy.metrics)
    if strategy.scale:
        return _range(strategy.scale)
    if strategy.needs_context:
        return "with-context"
    if strategy.output == "ability":
        return "+".join(ability.slug for ability in taxonomy.load().sorts())
    return "+".join(verdict.replace(" ", "-") for verdict in strategy.verdicts)


def _values(metric: Metric) -> str:
    """The title too: a metric is known by it."""
    points = "/".join(f"{value:g}" for value in sorted(metric.points))
    return f"{points or _range(metric.scale)}={objects.name(metric.title)}"


def _range(scale: Scale) -> str:
    return f"{scale.low:g}..{scale.high:g}" + (f"/{scale.step:g}" if scale.step else "")


def _in_tags(step: Step) -> bool:
    return step.output == "text" and "<result>" in step.prompt.lower()


def _text(text: str, *, in_tags: bool) -> Reading:
    """Tags that were asked for and are not there, or have no end, leave the reply unparsable."""
    mark = parsing.tagged(text, 0) if in_tags else None
    found = mark.phrase if mark else "" if in_tags else text.strip()
    if not found:
        return Reading(None, cause="unparsable")
    return Reading(storable(found), "pattern" if in_tags else "strict")


def _published(text: str, strategy: Strategy) -> Reading:
    """As study 001 read it; the phrase may stand anywhere, so the whole reply explains it."""
    value = phrases.published(text)
    if value is None:
        return Reading(None, cause="unparsable")
    return Reading(value, "pattern", explanation=_explained(text.strip(), strategy))


def _explained(explanation: str, strategy: Strategy) -> str:
    return storable(explanation) if strategy.explanation else ""


def _perturbation(raw: Fields | str, _: Strategy) -> tuple[dict[str, str] | None, str]:
    return _parts(raw, (PERTURBED, CLAIM, RATIONALE))


def _input(raw: Fields | str, strategy: Strategy) -> tuple[dict[str, str] | None, str]:
    may_be_empty = "" if strategy.needs_context else CONTEXT
    return _parts(raw, (INPUT, CONTEXT, RATIONALE), may_be_empty=may_be_empty)


def _ability(raw: Fields | str, _: Strategy) -> tuple[dict[str, str] | None, str]:
    said = raw if isinstance(raw, dict) else {}
    known, named, why = taxonomy.load(), said.get(ABILITY), said.get(RATIONALE)
    slug = known.ability_called(named.strip()) if isinstance(named, str) else ""
    if slug not in [ability.slug for ability in known.sorts()]:
        return None, "unparsable"
    return {ABILITY: slug, RATIONALE: storable(why) if isinstance(why, str) else ""}, ""


def _parts(
    raw: Fields | str, names: tuple[str, ...], *, may_be_empty: str = ""
) -> tuple[dict[str, str] | None, str]:
    said = raw if isinstance(raw, dict) else {}
    parts = {name: said.get(name) for name in names}
    texts = {name: storable(part) for name, part in parts.items() if isinstance(part, str)}
    filled = all(text.strip() or name == may_be_empty for name, text in texts.items())
    return (texts, "") if filled and len(texts) == len(parts) else (None, "incomplete")


def _score_patterns(strategy: Strategy) -> Patterns:
    """`7/10` is a score only where 10 ends the scale: 3/4 of something is not."""
    if strategy.scale is None:
        return Patterns(_SCORE_MARK, (_SCORE_BARE,))
    return Patterns(_SCORE_MARK, (last(_out_of(f"{strategy.scale.high:g}")), _SCORE_BARE))


@cache
def _out_of(high: str) -> re.Pattern[str]:
    score = rf"({grades.NUMBER}{grades.OUT_OF}{re.escape(high)}){grades.NO_MORE}"
    return re.compile(rf"(?<![\w./+-]){score}", re.IGNORECASE)


def _one(
    key: str, patterns: Callable[[Strategy], Patterns], value: Callable[[Any, Strategy], Value]
) -> Output:
    """An output whose answer stands under one key."""

    def read_one(raw: Fields | str, strategy: Strategy) -> Value:
        return value(raw[key] if isinstance(raw, dict) else raw, strategy)

    return Output(lambda _: frozenset({key}), patterns, read_one)


OUTPUTS: dict[str, Output] = {
    "score": _one("score", _score_patterns, lambda raw, how: grades.score(raw, how.scale)),
    "verdict": _one(
        "verdict", lambda _: _VERDICT_PATTERNS, lambda raw, how: grades.verdict(raw, how.verdicts)
    ),
    "detection": _one(
        "detection", lambda _: _DETECTION_PATTERNS, lambda raw, _: grades.detection(raw)
    ),
    "scores": Output(scores.keys, scores.patterns, scores.read),
    # Nothing but an object holds three texts, so no mark is looked for.
    "perturbation": Output(lambda _: frozenset({PERTURBED}), lambda _: _UNMARKED, _perturbation),
    "input": Output(lambda _: frozenset({INPUT}), lambda _: _UNMARKED, _input),
    "ability": Output(lambda _: frozenset({ABILITY}), lambda _: _UNMARKED, _ability),
    "flag": _one("flag", lambda _: _FLAG_PATTERNS, lambda raw, _: grades.flag(raw)),
}
