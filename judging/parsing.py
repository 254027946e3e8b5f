"""Where in a reply the answer stands; what it is worth is for outputs to say.

A reply is looked through in this order, and the first way that finds an answer decides:

strict    the whole reply is one JSON object that has the key
fenced    a JSON object that has the key, alone at the start of a code block
embedded  such an object anywhere else
pattern   a mark: `[[7]]`, `[RESULT] 7`, `Score: 7` (`Verdict: A`), else a looser form of the
          output, such as `7/10`, else the reply being nothing but the answer

Where an answer stands more than once in one way, the last counts, and a mark behind the last
object counts instead of that object. Keys match in any case. A key that stands twice in one
object has no value, and the object still decides: taking either value would be a guess. Nothing
is repaired, but line breaks inside strings are let pass outside of strict.

Every search does a bounded amount of work for each character, however hostile the reply.
"""

import json
import math
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

PARSER = "parse-1"

EXPLANATION = "explanation"

Found = TypeVar("Found")

_OBJECT = re.compile(r"\{\s{0,100}\"")
_FENCE = re.compile(r"```[\w-]{0,20}\s{0,20}\Z")


class TooTangledError(ValueError):
    """A text with so many broken or nested objects that looking through it has no end."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it was found: `raw` a JSON value, or a phrase for the path "pattern".

    `raw` is None where the answer's key is there without a usable value.
    """

    raw: Any
    path: str
    explanation: str


class Patterns(NamedTuple):
    """How an output's answer may be marked: each pattern has one group, the phrase.

    `marked` also stands behind an object, `loose` is asked when nothing else is found, `bare`
    must match a whole reply.
    """

    marked: re.Pattern[str]
    loose: re.Pattern[str] | None
    bare: re.Pattern[str]


class _Object(NamedTuple):
    start: int
    end: int
    fields: dict[str, Any]


def marks(label: str, phrase: str) -> re.Pattern[str]:
    """The pattern of `[[...]]`, `[RESULT] ...` and `<label>: ...`; letter case does not matter.

    `phrase` is what must follow a label, so that prose behind "Reason for the score:" is no
    mark. A phrase is looked at, not taken up, so that marks may stand side by side.
    """
    closing, opening = r"[\"'*_`]{0,4}", r"[\"'*_`\[(]{0,4}"
    remark = r"(?:[ \t]?\([^()\n]{1,30}\))?"
    return re.compile(
        r"\[\[([^\[\]\n]{1,60})\]\]"
        r"|\[RESULT\]\s{0,4}(?=([^\n]{1,60}))"
        rf"|\b{label}{remark}{closing}[ \t]{{0,4}}[:=]{opening}\s{{0,4}}{opening}(?=({phrase}))",
        re.IGNORECASE,
    )


def find(text: str, key: str, patterns: Patterns) -> Answer | None:
    """The answer under `key` in a reply, by the ways named above; None if none finds one."""
    whole = _whole(text)
    if key in whole:
        return Answer(whole[key], "strict", _explanation(whole))
    try:
        last = _final(found for found in _objects(text) if key in found.fields)
    except TooTangledError:
        return None
    mark = _final(patterns.marked.finditer(text, last.end if last else 0))
    if mark:
        return _marked(text, mark)
    if last:
        return Answer(last.fields[key], _path(text, last), _explanation(last.fields))
    mark = _final(patterns.loose.finditer(text)) if patterns.loose else None
    mark = mark or patterns.bare.fullmatch(text.strip())
    return _marked(text, mark) if mark else None


def _path(text: str, found: _Object) -> str:
    return "fenced" if _FENCE.search(text, max(0, found.start - 50), found.start) else "embedded"


def _whole(text: str) -> dict[str, Any]:
    try:
        found = _STRICT.decode(text.strip())
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _objects(text: str) -> Iterator[_Object]:
    """The outermost JSON objects, from first to last.

    Every `{` that fails costs what was read, plus a fixed share of the text because the decoder
    counts lines for its error. Raises TooTangledError past eight readings of the text, and where
    objects stand in each other deeper than the decoder goes: what is not read to the end may
    hold a later answer, so an earlier one must not count.
    """
    budget = 8.0 * len(text) + 10_000
    opening = _OBJECT.search(text)
    while opening:
        start = end = opening.start()
        try:
            fields, end = _LENIENT.raw_decode(text, start)
            yield _Object(start, end, fields)
        except json.JSONDecodeError as error:
            budget -= error.pos - start + len(text) / 256
            end += 1
        except RecursionError as error:
            raise TooTangledError from error
        if budget < 0:
            raise TooTangledError
        opening = _OBJECT.search(text, end)


def _final(found: Iterable[Found]) -> Found | None:
    return next(iter(deque(found, maxlen=1)), None)


def _marked(text: str, mark: re.Match[str]) -> Answer:
    """What stands before a mark explains it; where nothing does, what stands behind it."""
    phrase = mark.lastindex or 0
    behind = max(mark.end(), mark.end(phrase))
    explanation = text[: mark.start()].strip() or text[behind:].strip()
    return Answer(mark[phrase], "pattern", explanation)


def _explanation(fields: dict[str, Any]) -> str:
    explanation = fields.get(EXPLANATION)
    return explanation if isinstance(explanation, str) else ""


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        name = key.strip().lower()
        fields[name] = None if name in fields else value
    return fields


def _integer(digits: str) -> float:
    """Beyond 18 digits no scale goes, and int() is slow or refuses."""
    return int(digits) if len(digits) <= 18 else math.inf


def _no_value(_: str) -> None:
    """NaN and Infinity are not JSON; as the answer they are none."""


_STRICT = json.JSONDecoder(object_pairs_hook=_fields, parse_int=_integer, parse_constant=_no_value)
_LENIENT = json.JSONDecoder(
    object_pairs_hook=_fields, parse_int=_integer, parse_constant=_no_value, strict=False
)
