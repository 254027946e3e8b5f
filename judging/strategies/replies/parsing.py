"""Where in a reply the answer stands; what it is worth is for outputs to say.

A reply is looked through in this order, and the first way that finds an answer decides:

strict    the whole reply is one JSON object that has the key
fenced    a JSON object that has the key, alone at the start of a code block
embedded  such an object anywhere else
repaired  such an object that JSON would not admit before it is mended (see objects)
pattern   a mark: `[[7]]`, `[RESULT] 7`, `<RESULT>7</RESULT>`, `Score: 7` (`Verdict: A`), else a
          looser form of the output, such as `7/10`, else the reply being nothing but the answer

Where an answer stands more than once in one way, the last counts, and a mark behind the last
object counts instead of that object. Keys match in any case, with spaces, hyphens or underscores
between words. A key that stands twice in one object has no value, and the object still decides:
taking either value would be a guess.

Every search does a bounded amount of work for each character, however hostile the reply.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from judging.strategies.replies import json_objects
from judging.strategies.replies.json_objects import Fields, FoundObject, TooTangledError

PARSER = "parse-2"

EXPLANATION = "explanation"

Any_ = TypeVar("Any_")

_FENCE = re.compile(r"```[\w-]{0,20}\s{0,20}\Z")
_TAG = re.compile(r"<(/?)RESULT>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """An answer as it was found: `raw` is the object that holds it, or a phrase ("pattern")."""

    raw: Fields | str
    path: str
    explanation: str


class MarkedPhrase(NamedTuple):
    """A phrase that a text marks as its answer; the mark is from `start` to `end`."""

    phrase: str
    start: int
    end: int


# the last mark of a text from a place on, if it has one
Finder = Callable[[str, int], MarkedPhrase | None]


class AnswerPatterns(NamedTuple):
    """How an output's answer may be marked.

    `marked` also stands behind an object, `loose` is asked in turn when nothing else is found.
    """

    marked: Finder
    loose: tuple[Finder, ...] = ()


def build_last_finder(pattern: re.Pattern[str]) -> Finder:
    """Finds the last match; the phrase is the group that matched."""

    def find(text: str, start: int) -> MarkedPhrase | None:
        found = _get_last(pattern.finditer(text, start))
        return _build_mark(found) if found else None

    return find


def build_bare_finder(pattern: re.Pattern[str]) -> Finder:
    """Finds a text that is nothing but what the pattern matches."""

    def find(text: str, start: int) -> MarkedPhrase | None:
        found = pattern.fullmatch(text[start:].strip())
        return MarkedPhrase(found[found.lastindex or 0], start, len(text)) if found else None

    return find


def find_tagged(text: str, start: int) -> MarkedPhrase | None:
    """Finds what the last `<RESULT>` with an end has in it."""
    phrase, opened = None, None
    for tag in _TAG.finditer(text, start):
        if not tag[1]:
            opened = tag
        elif opened:
            phrase = MarkedPhrase(
                text[opened.end() : tag.start()].strip(), opened.start(), tag.end()
            )
            opened = None
    return phrase


def build_mark_pattern(label: str, phrase: str) -> re.Pattern[str]:
    """The pattern of `[[...]]`, `[RESULT] ...`, `<RESULT>...</RESULT>` and `<label>: ...`; letter
    case does not matter.

    `phrase` is what must follow a label, so that prose behind "Reason for the score:" is no
    mark. A phrase is looked at, not taken up, so that marks may stand side by side.
    """
    closing, opening = r"[\"'*_`]{0,4}", r"[\"'*_`\[(]{0,4}"
    remark = r"(?:[ \t]?\([^()\n]{1,30}\))?"
    return re.compile(
        r"\[\[([^\[\]\n]{1,60})\]\]"
        r"|\[RESULT\]\s{0,4}(?=([^\n]{1,60}))"
        r"|<RESULT>\s{0,9}([^<>]{1,60})</RESULT>"
        rf"|\b(?:{label}){remark}{closing}[ \t]{{0,4}}[:=]{opening}\s{{0,4}}{opening}"
        rf"(?=({phrase}))",
        re.IGNORECASE,
    )


def find_answer(text: str, keys: frozenset[str], patterns: AnswerPatterns) -> FoundAnswer | None:
    """The answer under one of `keys` in a reply, by the ways named above; None without any."""
    fields = json_objects.parse_whole(text)
    if keys & fields.keys():
        return FoundAnswer(fields, "strict", _explanation(fields))
    try:
        return (
            _find_in_objects(text, keys, patterns)
            or _find_in_repaired(text, keys, patterns)
            or _find_loose(text, patterns)
        )
    except TooTangledError:
        return None


def _find_in_objects(
    text: str, keys: frozenset[str], patterns: AnswerPatterns
) -> FoundAnswer | None:
    """The last object, or the last mark behind it."""
    found = _get_last(one for one in json_objects.find_objects(text) if keys & one.fields.keys())
    if not found:
        return None
    mark = patterns.marked(text, found.end)
    if mark:
        return _build_marked_answer(text, mark)
    return FoundAnswer(found.fields, _path(text, found), _explanation(found.fields))


def _find_in_repaired(
    text: str, keys: frozenset[str], patterns: AnswerPatterns
) -> FoundAnswer | None:
    whole = json_objects.repair_objects(text)
    answer = _find_in_objects(whole, keys, patterns) if whole != text else None
    if answer and isinstance(answer.raw, str):
        return answer
    return answer and FoundAnswer(answer.raw, "repaired", answer.explanation)


def _find_loose(text: str, patterns: AnswerPatterns) -> FoundAnswer | None:
    found = (find(text, 0) for find in (patterns.marked, *patterns.loose))
    mark = next(filter(None, found), None)
    return _build_marked_answer(text, mark) if mark else None


def _path(text: str, found: FoundObject) -> str:
    if not json_objects.is_strict_json(text, found):
        return "repaired"
    return "fenced" if _FENCE.search(text, max(0, found.start - 50), found.start) else "embedded"


def _get_last(found: Iterable[Any_]) -> Any_ | None:
    return next(iter(deque(found, maxlen=1)), None)


def _build_mark(found: re.Match[str]) -> MarkedPhrase:
    """A phrase may stand behind its mark, where it was only looked at."""
    phrase = found.lastindex or 0
    return MarkedPhrase(found[phrase], found.start(), max(found.end(), found.end(phrase)))


def _build_marked_answer(text: str, mark: MarkedPhrase) -> FoundAnswer:
    """What stands before a mark explains it; where nothing does, what stands behind it."""
    explanation = text[: mark.start].strip() or text[mark.end :].strip()
    return FoundAnswer(mark.phrase, "pattern", explanation)


def _explanation(fields: Fields) -> str:
    explanation = fields.get(EXPLANATION)
    return explanation if isinstance(explanation, str) else ""
