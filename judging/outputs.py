"""What a reply says: a score on the strategy's scale, or one of the verdicts it offers.

The finish reason is read before the text: half a reply, a refusal or a filtered reply is never
searched for an answer. A score off the scale or off its steps is kept out, never moved onto it.
A last verdict that was not offered makes the reply unparsable, even if an offered one stands
before it. A verdict speaks of the shown order: A is what stood first.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from judging import parsing
from judging.parsing import Patterns
from judging.strategies import Scale, Strategy

PARSER = parsing.PARSER

# finish reason -> cause; any other ("stop", "other", none given) leaves a text to read
CUT_SHORT = {"length": "truncated", "refused": "refused", "filtered": "filtered"}

_NUMBER = r"[-+−]?[0-9]{1,15}(?:\.[0-9]{1,15})?"
_OUT_OF = r"\s{0,3}(?:/|out of)\s{0,3}"
_NO_MORE = r"(?![\w%/]|[.,][0-9])"
# no percentage, date, decimal comma, range, or choice between two numbers
_ALONE = r"(?![\w%/]|[.,][0-9]|\s{0,3}(?:-|–|to\b|or\b)\s{0,3}[0-9])"
_SCORE = re.compile(
    rf"\s{{0,9}}({_NUMBER})(?:{_OUT_OF}([0-9]{{1,6}}){_NO_MORE}|{_ALONE})", re.IGNORECASE
)

# a letter has to be a capital and to be followed by an end, or "A tie" would be a verdict
_SAID = r"(?-i:(?:[Rr]esponse[ ])?[AB])\b|both[ _-](?:good|unacceptable)\b"
_ENDS = (
    r"[\"'*_`)\]]{0,4}[ \t]{0,3}"
    r"(?!(?:,|/|\||and\b|or\b)[ \t]{0,3}(?:or[ ])?[\"'*_`\[]{0,4}(?:[AB]\b|both\b|response\b))"
    r"(?:\Z|[.;:!,(}\r\n]|-[ ]|[–—]|(?:because|since|as|is|wins)\b)"
)
_VERDICT = re.compile(rf"\s{{0,9}}({_SAID}){_ENDS}", re.IGNORECASE)
_MARKUP = " \t\r\n\"'*_`.()[]"

_SCORE_PATTERNS = Patterns(
    marked=parsing.marks("score", r"[-+−]?[0-9][^\n]{0,60}"),
    loose=None,
    bare=re.compile(rf"[*_`\"']{{0,4}}({_NUMBER})[*_`\"'.]{{0,4}}"),
)
_VERDICT_PATTERNS = Patterns(
    marked=parsing.marks("verdict", rf"(?:{_SAID}){_ENDS}[^\n]{{0,40}}|[^\n]{{1,30}}(?:\n|\Z)"),
    loose=None,
    bare=re.compile(rf"[*_`\"'(]{{0,4}}({_SAID})[*_`\"').!]{{0,4}}", re.IGNORECASE),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a parser made of one reply.

    `value` is a score, a verdict as the strategy spells it, or None, and then `cause` says why:
    truncated, refused, filtered, unparsable, off_scale, or the cause of a request that failed.
    `path` is the way by which the answer was found (see parsing), "" if none was.
    """

    value: float | str | None
    path: str = ""
    cause: str = ""
    explanation: str = ""


class _Value(NamedTuple):
    value: float | str | None
    cause: str


_UNPARSABLE = _Value(None, "unparsable")
_OFF_SCALE = _Value(None, "off_scale")


class Output(NamedTuple):
    """A kind of answer: its key in JSON, its marks in prose, and how to read what they hold."""

    key: str
    patterns: Callable[[Strategy], Patterns]
    value: Callable[[Any, Strategy], _Value]


def read(strategy: Strategy, text: str, finish: str = "stop") -> Reading:
    """The reading of one reply to `strategy`; never raises, whatever the text.

    `finish` is the finish reason in the words of judging.providers.
    """
    if finish in CUT_SHORT:
        return Reading(None, cause=CUT_SHORT[finish])
    output = OUTPUTS[strategy.output]
    answer = parsing.find(text, output.key, output.patterns(strategy))
    if answer is None:
        return Reading(None, cause="unparsable")
    value, cause = output.value(answer.raw, strategy)
    explanation = storable(answer.explanation) if strategy.explanation else ""
    return Reading(value, answer.path, cause, explanation)


def parser(strategy: Strategy) -> str:
    """The parser's version with all of the strategy that a reading depends on.

    Two strategies with equal names here read every reply alike.
    """
    scale = strategy.scale
    offered = "+".join(verdict.replace(" ", "-") for verdict in strategy.verdicts)
    if scale:
        offered = f"{scale.low:g}..{scale.high:g}" + (f"/{scale.step:g}" if scale.step else "")
    explained = "explained" if strategy.explanation else ""
    return " ".join(filter(None, [PARSER, strategy.output, offered, explained]))


def storable(text: str) -> str:
    """A text as a column takes it: without NUL and half surrogate pairs, which JSON can spell."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return whole.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _score(raw: Any, strategy: Strategy) -> _Value:
    """A number, or a text that holds one; true and false are none."""
    if isinstance(raw, str):
        return _score_in(raw, strategy.scale)
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return _UNPARSABLE
    return _on_scale(float(raw), strategy.scale)


def _score_in(phrase: str, scale: Scale | None) -> _Value:
    found = _SCORE.match(phrase)
    if not found:
        return _UNPARSABLE
    if found[2] and (scale is None or float(found[2]) != scale.high):
        return _OFF_SCALE
    return _on_scale(float(found[1].replace("−", "-")), scale)


def _on_scale(number: float, scale: Scale | None) -> _Value:
    admitted = scale.admits(number) if scale else math.isfinite(number)
    return _Value(number, "") if admitted else _OFF_SCALE


def _verdict(raw: Any, strategy: Strategy) -> _Value:
    if not isinstance(raw, str):
        return _UNPARSABLE
    said = _VERDICT.match(raw)
    name = re.sub(r"[\s_-]+", " ", said[1] if said else raw[:60]).strip(_MARKUP).casefold()
    offered = {verdict.casefold(): verdict for verdict in strategy.verdicts}
    verdict = offered.get(name.removeprefix("response "))
    return _Value(verdict, "") if verdict else _UNPARSABLE


def _score_patterns(strategy: Strategy) -> Patterns:
    """`7/10` is a score only where 10 ends the scale: 3/4 of something is not."""
    if strategy.scale is None:
        return _SCORE_PATTERNS
    return _SCORE_PATTERNS._replace(loose=_out_of(f"{strategy.scale.high:g}"))


@cache
def _out_of(high: str) -> re.Pattern[str]:
    score = rf"({_NUMBER}{_OUT_OF}{re.escape(high)}){_NO_MORE}"
    return re.compile(rf"(?<![\w./+-]){score}", re.IGNORECASE)


OUTPUTS: dict[str, Output] = {
    "score": Output("score", _score_patterns, _score),
    "verdict": Output("verdict", lambda _: _VERDICT_PATTERNS, _verdict),
}
