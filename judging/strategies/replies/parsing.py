"""Find the answer in a reply; `outputs` parses its value.

These ways to find an answer are tried in order, and the first way that finds an answer decides:

strict    the whole reply is one JSON object that has the key
fenced    a JSON object that has the key, alone at the start of a code block
embedded  such an object anywhere else
repaired  such an object that is valid JSON only after repairs (see json_objects)
pattern   a mark: `[[7]]`, `[RESULT] 7`, `<RESULT>7</RESULT>`, `Score: 7` (`Verdict: A`), else a
          looser form of the output, such as `7/10`, else a reply that is only the answer

If one way finds several answers, the last answer counts. A mark after the last object takes
precedence over that object. Keys match in any case, with spaces, hyphens or underscores between
words. A key that occurs twice in one object has no value, since choosing either value would be a
guess; the object still decides. The explanation is under one of the keys in EXPLANATIONS.

Every search does a bounded amount of work for each character, even on hostile replies.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from judging.strategies.replies import json_objects
from judging.strategies.replies.json_objects import Fields, FoundObject, TooTangledError

PARSER = "parse-4"

# The keys of an explanation, in the order of preference.
EXPLANATIONS = ("explanation", "reasoning", "feedback", "rationale")

Any_ = TypeVar("Any_")

_FENCE = re.compile(r"```[\w-]{0,20}\s{0,20}\Z")
_TAG = re.compile(r"<(/?)RESULT>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """An answer as found: `raw` is the object that contains it, or a phrase ("pattern")."""

    raw: Fields | str
    path: str
    explanation: str


class MarkedPhrase(NamedTuple):
    """A phrase that is marked as the answer; the mark is from `start` to `end`."""

    phrase: str
    start: int
    end: int


# finds the last mark in a text after a position
Finder = Callable[[str, int], MarkedPhrase | None]


class AnswerPatterns(NamedTuple):
    """The patterns by which the answer of an output is found in prose.

    `marked` is also searched for after an object; the patterns in `loose` are tried in turn if
    nothing else is found.
    """

    marked: Finder
    loose: tuple[Finder, ...] = ()


def build_last_finder(pattern: re.Pattern[str]) -> Finder:
    """Build a function that finds the last match; the phrase is the group that matched."""

    def find(text: str, start: int) -> MarkedPhrase | None:
        found = _get_last(pattern.finditer(text, start))
        return _build_mark(found) if found else None

    return find


def build_bare_finder(pattern: re.Pattern[str]) -> Finder:
    """Build a function that finds a match only if the pattern covers the whole text."""

    def find(text: str, start: int) -> MarkedPhrase | None:
        found = pattern.fullmatch(text[start:].strip())
        return MarkedPhrase(found[found.lastindex or 0], start, len(text)) if found else None

    return find


def find_tagged(text: str, start: int) -> MarkedPhrase | None:
    """Find the content of the last closed `<RESULT>`."""
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
    """The pattern of `[[...]]`, `[RESULT] ...`, `<RESULT>...</RESULT>` and `<label>: ...`; case
    does not matter.

    `phrase` must follow a label, so that prose after "Reason for the score:" is not a mark. Only a
    lookahead matches a phrase, so that marks may be adjacent.
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
    """Find the answer under one of `keys` in a reply, in the ways listed above; None if there is no
    answer.
    """
    fields = json_objects.parse_whole(text)
    if keys & fields.keys():
        return FoundAnswer(fields, "strict", _explanation(fields, keys))
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
    """Find the last object with one of the keys, or the last mark after this object."""
    found = _get_last(one for one in json_objects.find_objects(text) if keys & one.fields.keys())
    if not found:
        return None
    mark = patterns.marked(text, found.end)
    if mark:
        return _build_marked_answer(text, mark)
    return FoundAnswer(found.fields, _path(text, found), _explanation(found.fields, keys))


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
    """The marked phrase. It may come after the end of the match, if only a lookahead matched it."""
    phrase = found.lastindex or 0
    return MarkedPhrase(found[phrase], found.start(), max(found.end(), found.end(phrase)))


def _build_marked_answer(text: str, mark: MarkedPhrase) -> FoundAnswer:
    """Build the marked answer. The explanation is the text before the mark, or the text after it if
    there is no text before.
    """
    explanation = text[: mark.start].strip() or text[mark.end :].strip()
    return FoundAnswer(mark.phrase, "pattern", explanation)


def _explanation(fields: Fields, keys: frozenset[str]) -> str:
    """The text under the first key of an explanation that has one; keys of the answer have none."""
    said = (fields.get(name) for name in EXPLANATIONS if name not in keys)
    return next((text for text in said if isinstance(text, str) and text.strip()), "")
