"""Parse the value of an answer: a number on a scale, an offered verdict, or a boolean.

Each function takes the raw answer, a JSON value or a phrase, and returns a ParsedValue. A number
outside the scale or between its steps is refused, never rounded.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from judging.strategies.replies import json_objects
from judging.strategies.schema import Scale

NUMBER_PATTERN = r"[-+−]?[0-9]{1,15}(?:\.[0-9]{1,15})?"
OUT_OF_PATTERN = r"\s{0,3}(?:/|out of)\s{0,3}"
NUMBER_END = r"(?![\w%/]|[.,][0-9])"
# excludes percentages, dates, decimal commas, ranges, and choices between two numbers
_ALONE = r"(?![\w%/]|[.,][0-9]|\s{0,3}(?:-|–|to\b|or\b)\s{0,3}[0-9])"
_SCORE = re.compile(
    rf"[\s\"'*_`(\[]{{0,9}}({NUMBER_PATTERN})(?:{OUT_OF_PATTERN}([0-9]{{1,6}}){NUMBER_END}|{_ALONE})",
    re.IGNORECASE,
)

# a letter must be a capital and end the phrase or clause; otherwise "A tie" would be a verdict
VERDICT_PATTERN = r"(?-i:(?:[Rr]esponse[ ])?[AB])\b|both[ _-](?:good|unacceptable)\b"
VERDICT_END = (
    r"[\"'*_`)\]]{0,4}[ \t]{0,3}"
    r"(?!(?:,|/|\||and\b|or\b)[ \t]{0,3}(?:or[ ])?[\"'*_`\[]{0,4}(?:[AB]\b|both\b|response\b))"
    r"(?:\Z|[.;:!,(}\r\n]|-[ ]|[–—]|(?:because|since|as|is|wins)\b)"
)
_VERDICT = re.compile(rf"\s{{0,9}}({VERDICT_PATTERN}){VERDICT_END}", re.IGNORECASE)

_WORD = re.compile(r"[\"'*_`(\[\s]{0,9}([a-z]{2,5})\b(?!\s{0,3}(?:/|\||or\b))", re.IGNORECASE)
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}

_DETECTION = re.compile(
    r"[\"'*_`(\[\s]{0,9}(no[ _-]?error|error)\b(?![ ]{0,3}(?:/|\||or\b))", re.IGNORECASE
)
_MARKUP = " \t\r\n\"'*_`.()[]"


class ParsedValue(NamedTuple):
    """The value of an answer, or None with a cause: unparsable or off_scale."""

    value: float | str | bool | None
    cause: str = ""


UNPARSABLE = ParsedValue(None, "unparsable")
OFF_SCALE = ParsedValue(None, "off_scale")


def parse_score(
    raw: Any, scale: Scale | None, admits: Callable[[float], bool] | None = None
) -> ParsedValue:
    """Parse a number, or a text that begins with a number; booleans do not count as numbers.

    `admits` says which numbers of the scale are allowed, by default all its steps; without a scale
    any finite number is.
    """
    admits = admits or (scale.admits if scale else math.isfinite)
    if isinstance(raw, str):
        return _parse_score_phrase(raw, scale, admits)
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return UNPARSABLE
    return _check_scale(float(raw), admits)


def parse_verdict(raw: Any, offered: Sequence[str]) -> ParsedValue:
    """Parse a verdict that was offered; any other verdict is unparsable."""
    if not isinstance(raw, str):
        return UNPARSABLE
    said = _VERDICT.match(raw)
    name = re.sub(r"[\s_-]+", " ", said[1] if said else raw[:60]).strip(_MARKUP).casefold()
    known = {verdict.casefold(): verdict for verdict in offered}
    found = known.get(name.removeprefix("response "))
    return ParsedValue(found) if found else UNPARSABLE


def parse_flag(raw: Any) -> ParsedValue:
    """Parse a boolean, or a text that begins with true, false, yes or no."""
    if isinstance(raw, bool):
        return ParsedValue(raw)
    said = _WORD.match(raw) if isinstance(raw, str) else None
    found = _FLAGS.get(said[1].lower()) if said else None
    return UNPARSABLE if found is None else ParsedValue(found)


def parse_detection(raw: Any) -> ParsedValue:
    """Parse "error" or "no_error", or a text that begins with either word."""
    said = _DETECTION.match(raw) if isinstance(raw, str) else None
    if not said:
        return UNPARSABLE
    return ParsedValue("error" if json_objects.normalize_key(said[1]) == "error" else "no_error")


def _parse_score_phrase(
    phrase: str, scale: Scale | None, admits: Callable[[float], bool]
) -> ParsedValue:
    found = _SCORE.match(phrase)
    if not found:
        return UNPARSABLE
    if found[2] and (scale is None or float(found[2]) != scale.high):
        return OFF_SCALE
    return _check_scale(float(found[1].replace("−", "-")), admits)


def _check_scale(number: float, admits: Callable[[float], bool]) -> ParsedValue:
    return ParsedValue(number) if admits(number) else OFF_SCALE
