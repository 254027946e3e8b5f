"""What a reply says: a number, a verdict, one number a metric, true or false, or a text.

The finish reason is read before the text: half a reply, a refusal or a filtered reply is never
searched for an answer. A score off the scale or off its steps is kept out, never moved onto it.
A last verdict that was not offered makes the reply unparsable, even if an offered one stands
before it. A verdict speaks of the shown order: A is what stood first.

score      a number on the strategy's scale
verdict    one of those the strategy offers
detection  "error" or "no_error"; in words read by `phrases.find_last_statement`, or as study 001
did scores     {metric: number}; a metric that was not read has its cause in the number's place
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

from annotation.items import taxonomy
from judging.strategies.frames import CallSpec
from judging.strategies.replies import json_objects, metric_scores, parsing, phrases, values
from judging.strategies.replies.json_objects import Fields
from judging.strategies.replies.parsing import (
    AnswerPatterns,
    build_bare_finder,
    build_last_finder,
    build_mark_pattern,
)
from judging.strategies.replies.values import ParsedValue
from judging.strategies.schema import (
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

PARSER = parsing.PARSER
# Named parsers of an output; the first is what a strategy gets that names none.
PHRASE_PARSER = "phrases-001"
PARSERS = {"detection": ("strict", PHRASE_PARSER)}
# finish reason -> cause; any other ("stop", "other", none given) leaves a text to read
FINISH_CAUSES = {"length": "truncated", "refused": "refused", "filtered": "filtered"}
MAX_NAME_LENGTH = 80

_UNMARKED = AnswerPatterns(lambda text, start: None)
_SCORE_MARK = build_last_finder(build_mark_pattern("score", r"[-+−]?[0-9][^\n]{0,60}"))
_SCORE_BARE = build_bare_finder(
    re.compile(rf"[*_`\"']{{0,4}}({values.NUMBER_PATTERN})[*_`\"'.]{{0,4}}")
)
_VERDICT_PATTERNS = AnswerPatterns(
    marked=build_last_finder(
        build_mark_pattern(
            "verdict",
            rf"(?:{values.VERDICT_PATTERN}){values.VERDICT_END}[^\n]{{0,40}}|[^\n]{{1,30}}(?:\n|\Z)",
        )
    ),
    loose=(
        build_bare_finder(
            re.compile(
                rf"[*_`\"'(]{{0,4}}({values.VERDICT_PATTERN})[*_`\"').!]{{0,4}}", re.IGNORECASE
            )
        ),
    ),
)
_TRUE = r"(?:true|false|yes|no)\b"
_FLAG_PATTERNS = AnswerPatterns(
    marked=build_last_finder(
        build_mark_pattern("flag|answer|result|verdict", rf"{_TRUE}[^\n]{{0,40}}")
    ),
    loose=(
        build_last_finder(
            re.compile(rf"^[*_`\"' \t]{{0,9}}({_TRUE})(?=[*_`\"'.! \t]{{0,9}}$)", re.I | re.M)
        ),
    ),
)
_DETECTION_PATTERNS = AnswerPatterns(
    marked=build_last_finder(build_mark_pattern("detection", r"(?:no[ _-]?)?error\b[^\n]{0,40}")),
    loose=(
        phrases.find_conclusion,
        build_bare_finder(
            re.compile(r"[*_`\"']{0,4}((?:no[ _-]?)?error)[*_`\"'.]{0,4}", re.IGNORECASE)
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class ParsedReply:
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


class OutputKind(NamedTuple):
    """A kind of answer: its keys in JSON, its marks in prose, and how to read what they hold."""

    keys: Callable[[Strategy], frozenset[str]]
    patterns: Callable[[Strategy], AnswerPatterns]
    value: Callable[[Fields | str, Strategy], tuple[Any, str]]


def parse_reply(
    strategy: Strategy, text: str, finish: str = "stop", *, spec: CallSpec | None = None
) -> ParsedReply:
    """The reading of one reply to `strategy`; never raises, whatever the text.

    `finish` is the finish reason in the words of judging.evaluators.providers. `spec` is the call
    that was answered; only its step matters, and without it the last one is meant.
    """
    if finish in FINISH_CAUSES:
        return ParsedReply(None, cause=FINISH_CAUSES[finish])
    step = strategy.step(spec.step if spec else strategy.last_step)
    if step.output in ("text", "answer"):
        return _parse_text(text, in_tags=_asks_for_tags(step))
    if step.output == "detection" and strategy.parser == PHRASE_PARSER:
        return _parse_published(text, strategy)
    output = OUTPUTS[step.output]
    answer = parsing.find_answer(text, output.keys(strategy), output.patterns(strategy))
    if answer is None:
        return ParsedReply(None, cause="unparsable")
    value, cause = output.value(answer.raw, strategy)
    return ParsedReply(value, answer.path, cause, _choose_explanation(answer.explanation, strategy))


def get_parser_version(strategy: Strategy) -> str:
    """The parser's version with all of the strategy that a reading depends on.

    Two strategies with equal names here read every reply alike. At most 80 characters: what is
    longer ends in a digest.
    """
    steps = strategy.steps or (strategy.step(0),)
    outputs = [f"{step.output}-in-tags" if _asks_for_tags(step) else step.output for step in steps]
    named = strategy.parser or PARSERS.get(strategy.output, ("",))[0]
    explained = "explained" if strategy.explanation else ""
    name = " ".join(filter(None, [PARSER, *outputs, named, _format_offered(strategy), explained]))
    if len(name) <= MAX_NAME_LENGTH:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{name[: MAX_NAME_LENGTH - len(digest) - 1]}~{digest}"


def strip_unstorable(text: str) -> str:
    """A text as a column takes it: without NUL and half surrogate pairs, which JSON can spell."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return whole.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _format_offered(strategy: Strategy) -> str:
    if strategy.metrics:
        return ",".join(f"{metric.slug}:{_format_metric(metric)}" for metric in strategy.metrics)
    if strategy.scale:
        return _range(strategy.scale)
    if strategy.needs_context:
        return "with-context"
    if strategy.output == "ability":
        return "+".join(ability.slug for ability in taxonomy.load().sorts())
    return "+".join(verdict.replace(" ", "-") for verdict in strategy.verdicts)


def _format_metric(metric: Metric) -> str:
    """The title too: a metric is known by it."""
    points = "/".join(f"{value:g}" for value in sorted(metric.points))
    return f"{points or _range(metric.scale)}={json_objects.normalize_key(metric.title)}"


def _range(scale: Scale) -> str:
    return f"{scale.low:g}..{scale.high:g}" + (f"/{scale.step:g}" if scale.step else "")


def _asks_for_tags(step: Step) -> bool:
    return step.output == "text" and "<result>" in step.prompt.lower()


def _parse_text(text: str, *, in_tags: bool) -> ParsedReply:
    """Tags that were asked for and are not there, or have no end, leave the reply unparsable."""
    mark = parsing.find_tagged(text, 0) if in_tags else None
    found = mark.phrase if mark else "" if in_tags else text.strip()
    if not found:
        return ParsedReply(None, cause="unparsable")
    return ParsedReply(strip_unstorable(found), "pattern" if in_tags else "strict")


def _parse_published(text: str, strategy: Strategy) -> ParsedReply:
    """As study 001 read it; the phrase may stand anywhere, so the whole reply explains it."""
    value = phrases.find_published_verdict(text)
    if value is None:
        return ParsedReply(None, cause="unparsable")
    return ParsedReply(value, "pattern", explanation=_choose_explanation(text.strip(), strategy))


def _choose_explanation(explanation: str, strategy: Strategy) -> str:
    return strip_unstorable(explanation) if strategy.explanation else ""


def _parse_perturbation(raw: Fields | str, _: Strategy) -> tuple[dict[str, str] | None, str]:
    return _parse_parts(raw, (PERTURBED, CLAIM, RATIONALE))


def _parse_input(raw: Fields | str, strategy: Strategy) -> tuple[dict[str, str] | None, str]:
    may_be_empty = "" if strategy.needs_context else CONTEXT
    return _parse_parts(raw, (INPUT, CONTEXT, RATIONALE), may_be_empty=may_be_empty)


def _parse_ability(raw: Fields | str, _: Strategy) -> tuple[dict[str, str] | None, str]:
    said = raw if isinstance(raw, dict) else {}
    known, named, why = taxonomy.load(), said.get(ABILITY), said.get(RATIONALE)
    slug = known.ability_called(named.strip()) if isinstance(named, str) else ""
    if slug not in [ability.slug for ability in known.sorts()]:
        return None, "unparsable"
    return {ABILITY: slug, RATIONALE: strip_unstorable(why) if isinstance(why, str) else ""}, ""


def _parse_parts(
    raw: Fields | str, names: tuple[str, ...], *, may_be_empty: str = ""
) -> tuple[dict[str, str] | None, str]:
    said = raw if isinstance(raw, dict) else {}
    parts = {name: said.get(name) for name in names}
    texts = {name: strip_unstorable(part) for name, part in parts.items() if isinstance(part, str)}
    filled = all(text.strip() or name == may_be_empty for name, text in texts.items())
    return (texts, "") if filled and len(texts) == len(parts) else (None, "incomplete")


def _score_patterns(strategy: Strategy) -> AnswerPatterns:
    """`7/10` is a score only where 10 ends the scale: 3/4 of something is not."""
    if strategy.scale is None:
        return AnswerPatterns(_SCORE_MARK, (_SCORE_BARE,))
    return AnswerPatterns(
        _SCORE_MARK, (build_last_finder(_out_of(f"{strategy.scale.high:g}")), _SCORE_BARE)
    )


@cache
def _out_of(high: str) -> re.Pattern[str]:
    score = rf"({values.NUMBER_PATTERN}{values.OUT_OF_PATTERN}{re.escape(high)}){values.NUMBER_END}"
    return re.compile(rf"(?<![\w./+-]){score}", re.IGNORECASE)


def _build_output(
    key: str,
    patterns: Callable[[Strategy], AnswerPatterns],
    value: Callable[[Any, Strategy], ParsedValue],
) -> OutputKind:
    """An output whose answer stands under one key."""

    def read_one(raw: Fields | str, strategy: Strategy) -> ParsedValue:
        return value(raw[key] if isinstance(raw, dict) else raw, strategy)

    return OutputKind(lambda _: frozenset({key}), patterns, read_one)


OUTPUTS: dict[str, OutputKind] = {
    "score": _build_output(
        "score", _score_patterns, lambda raw, how: values.parse_score(raw, how.scale)
    ),
    "verdict": _build_output(
        "verdict",
        lambda _: _VERDICT_PATTERNS,
        lambda raw, how: values.parse_verdict(raw, how.verdicts),
    ),
    "detection": _build_output(
        "detection", lambda _: _DETECTION_PATTERNS, lambda raw, _: values.parse_detection(raw)
    ),
    "scores": OutputKind(
        metric_scores.list_answer_keys, metric_scores.build_patterns, metric_scores.parse_scores
    ),
    # Nothing but an object holds three texts, so no mark is looked for.
    "perturbation": OutputKind(
        lambda _: frozenset({PERTURBED}), lambda _: _UNMARKED, _parse_perturbation
    ),
    "input": OutputKind(lambda _: frozenset({INPUT}), lambda _: _UNMARKED, _parse_input),
    "ability": OutputKind(lambda _: frozenset({ABILITY}), lambda _: _UNMARKED, _parse_ability),
    "flag": _build_output("flag", lambda _: _FLAG_PATTERNS, lambda raw, _: values.parse_flag(raw)),
}
