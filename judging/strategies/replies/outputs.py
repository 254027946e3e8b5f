"""Parse a reply into a number, a verdict, one number for each metric, a boolean, or a text.

The finish reason is checked before the text: only a reply with a normal end, or whose provider
named no reason, is searched for an answer. A score outside the scale or between its steps is
refused, never rounded. If the last verdict is not among those offered, the reply is unparsable,
even if it contains an offered verdict before that. A verdict refers to the shown order: A is the
answer shown first.

score      a number on the strategy's scale
verdict    one of those the strategy offers
detection  "error" or "no_error"; in prose by `phrases.find_last_statement`, or as study 001 did
scores     {metric: number}; a metric that was not parsed has its cause in place of the number
flag       true or false
text       the content of the last `<RESULT>...</RESULT>`, for a later step of a chain; the whole
           reply if the prompt does not ask for these tags
answer     the whole reply, as the new gold answer
perturbation  {"perturbed", "claim", "rationale"}, each a text; if one is missing or empty, the
           reply is incomplete, since the change could not be reviewed
input      {"input", "context", "rationale"}, each a text; only the context may be empty, unless
           the strategy needs it
translation  {"translation": {name: text}}, where several references are a list of texts; whether
           no text of the item is missing is checked beside the item
ability    {"ability", "rationale"}: one of the abilities that prompts are sorted into, by its
           slug, name or code, and the reason, which may be missing; any other ability makes the
           reply unparsable
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from annotation.items.taxonomy import Taxonomy
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
    TRANSLATION,
    Metric,
    Scale,
    Step,
    Strategy,
)

PARSER = parsing.PARSER
# Named parsers of an output; the first is the default.
PHRASE_PARSER = "phrases-001"
PARSERS = {"detection": ("strict", PHRASE_PARSER)}
# The cause of a finish reason; with any other reason ("stop", "unknown") the text is parsed. If you
# change this table, give `parsing.PARSER` a new version, so that old readings keep the version
# they were made with.
FINISH_CAUSES = {
    "length": "truncated",
    "refused": "refused",
    "filtered": "filtered",
    "other": "interrupted",
}
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
    """The result of parsing one reply.

    `value` depends on the output (see above). If it is None, `cause` says why: truncated, refused,
    filtered, interrupted, empty, unparsable, incomplete, off_scale, or the cause of a failed
    request. For scores `value` is None only if no metric was parsed. `path` is the way in which the
    answer was found (see parsing), "" if there is no answer.
    """

    value: float | str | bool | dict[str, float | str] | None
    path: str = ""
    cause: str = ""
    explanation: str = ""


class OutputKind(NamedTuple):
    """An output: its keys in JSON, its patterns in prose, and how to parse the value."""

    keys: Callable[[Strategy], frozenset[str]]
    patterns: Callable[[Strategy], AnswerPatterns]
    value: Callable[[Fields | str, Strategy], tuple[Any, str]]


def parse_reply(
    strategy: Strategy, text: str, finish: str = "stop", *, spec: CallSpec | None = None
) -> ParsedReply:
    """Parse one reply to `strategy` into a reading. Never raises, whatever the text.

    `finish` is a finish reason of judging.evaluators.providers. `spec` is the call that was
    answered; only its step matters, by default the last one.
    """
    if finish in FINISH_CAUSES:
        return ParsedReply(None, cause=FINISH_CAUSES[finish])
    if not text.strip():
        return ParsedReply(None, cause="empty")
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
    """Return the version of the parser with every setting of the strategy that affects a reading.

    Strategies with equal versions parse every reply alike. At most 80 characters: a longer name
    ends in a digest.
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
    """Return the text in a form that the database can store: without NUL and lone surrogates, which
    JSON can contain.
    """
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
        return "+".join(ability.slug for ability in strategy.abilities)
    return "+".join(verdict.replace(" ", "-") for verdict in strategy.verdicts)


def _format_metric(metric: Metric) -> str:
    """Format the points or the range of a metric with its title, since replies may refer to the
    metric by its title.
    """
    points = "/".join(f"{value:g}" for value in sorted(metric.points))
    return f"{points or _range(metric.scale)}={json_objects.normalize_key(metric.title)}"


def _range(scale: Scale) -> str:
    return f"{scale.low:g}..{scale.high:g}" + (f"/{scale.step:g}" if scale.step else "")


def _asks_for_tags(step: Step) -> bool:
    return step.output == "text" and "<result>" in step.prompt.lower()


def _parse_text(text: str, *, in_tags: bool) -> ParsedReply:
    """Return the text of the reply, or the text inside the tags if the prompt asks for tags.
    Missing or unclosed tags make the reply unparsable.
    """
    mark = parsing.find_tagged(text, 0) if in_tags else None
    found = mark.phrase if mark else "" if in_tags else text.strip()
    if not found:
        return ParsedReply(None, cause="unparsable")
    return ParsedReply(strip_unstorable(found), "pattern" if in_tags else "strict")


def _parse_published(text: str, strategy: Strategy) -> ParsedReply:
    """Parse as study 001 did. The phrase may be anywhere, so the whole reply is the explanation."""
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


def _parse_translation(raw: Fields | str, _: Strategy) -> tuple[dict[str, Any] | None, str]:
    """The texts by their names as `json_objects.normalize_key` writes them."""
    said = raw.get(TRANSLATION) if isinstance(raw, dict) else None
    if not isinstance(said, dict) or not said:
        return None, "incomplete"
    parts: dict[str, Any] = {}
    for key, part in said.items():
        name = strip_unstorable(key)
        if isinstance(part, str):
            parts[name] = strip_unstorable(part)
        elif isinstance(part, list) and all(isinstance(one, str) for one in part):
            parts[name] = [strip_unstorable(one) for one in part]
        else:
            return None, "incomplete"
    return parts, ""


def _parse_ability(raw: Fields | str, strategy: Strategy) -> tuple[dict[str, str] | None, str]:
    said = raw if isinstance(raw, dict) else {}
    known, named, why = Taxonomy(strategy.abilities, ()), said.get(ABILITY), said.get(RATIONALE)
    slug = known.ability_called(named.strip()) if isinstance(named, str) else ""
    if slug not in known.ability_names():
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
    """Build the patterns for a score. `7/10` counts as a score only if the scale ends at 10; "3/4
    of the steps" does not.
    """
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
    """Build an output whose answer is under a single key."""

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
    # Only an object can hold three texts, so there are no patterns for prose.
    "perturbation": OutputKind(
        lambda _: frozenset({PERTURBED}), lambda _: _UNMARKED, _parse_perturbation
    ),
    "input": OutputKind(lambda _: frozenset({INPUT}), lambda _: _UNMARKED, _parse_input),
    "translation": OutputKind(
        lambda _: frozenset({TRANSLATION}), lambda _: _UNMARKED, _parse_translation
    ),
    "ability": OutputKind(lambda _: frozenset({ABILITY}), lambda _: _UNMARKED, _parse_ability),
    "flag": _build_output("flag", lambda _: _FLAG_PATTERNS, lambda raw, _: values.parse_flag(raw)),
}
