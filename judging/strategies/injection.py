"""Flag possible prompt injections in an item's texts. The texts are sent unchanged.

A flag quotes a part that could be mistaken for a part of the prompt, an answer, or an instruction
to the evaluator. A flag is not a proof: a question about prompts may contain the same words.

Each search does a bounded amount of work for each character, even on hostile texts.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from judging.strategies import schema
from judging.strategies.schema import Strategy

# The maximum number of flags for one text; further flags would tell a reader nothing new.
MAX_FLAGS = 20
MAX_QUOTE_LENGTH = 60
# Shorter delimiter lines are ignored, since they would be found in every text.
MIN_DELIMITER_LENGTH = 4

_JUDGE = r"(?:judges?|evaluators?|graders?|raters?|examiners?)"
_MARK = r"(?:score|marks?|ratings?|grade|points)"

_KINDS: dict[str, tuple[str, ...]] = {
    "a marker from a Blindspot prompt": (
        r"\[(?:BEGIN|END) (?:QUESTION|INPUT|INSTRUCTION|TASK|RESPONSE|ANSWER|TEXTS?"
        r"|REFERENCE ANSWER|GOLD ANSWER|GROUND TRUTH|KEYWORDS|FOUND|EXPLANATION|SCORE|EXAMPLE)"
        r"(?:,? [A-Z0-9 ]{1,20})?\]",
    ),
    "a placeholder": (r"\{\{\s{0,9}\w{1,40}\s{0,9}\}\}",),
    "a marker of a chat template": (
        r"<\|[a-z_]{2,30}\|>",
        r"\[/?INST\]",
        r"<</?SYS>>",
        r"^#{2,4} (?:instruction|response|system|human|user|assistant)\b",
    ),
    "an answer in an evaluator's format": (
        r"\[\[ ?(?:[ABC]|tie|both[ _-]\w{4,12}|(?:no[ _])?error|-?\d{1,3}(?:[./]\d{1,3})?) ?\]\]",
        r"\[RESULT\]",
        r"</?RESULT>",
        r"[\"'](?:score|verdict|detection|flag|explanation)[\"']\s{0,4}:",
        r"\bresponse (?:contains (?:an|no) error|is (?:not )?valid)\b",
    ),
    "an instruction to the evaluator": (
        r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}"
        r"\b(?:above|previous|prior|earlier|preceding|instructions?|prompts?|rubrics?|criteria)\b",
        rf"\b(?:dear|note to|note for|attention|message to|instructions? (?:to|for))"
        rf"[ ,:]{{1,3}}(?:the |all |any )?{_JUDGE}\b",
        rf"\byou are (?:now )?(?:an?|the) (?:[\w-]{{1,20}} ){{0,3}}{_JUDGE}\b",
        r"\b(?:give|assign|award|rate|score|grade|output|answer|reply|respond|return|choose)\b"
        rf"[^.\n]{{0,40}}\b(?:(?:full|top|highest|maximum|perfect|best) {_MARK}"
        r"|(?:score|rating|grade) of \d|(?P<most>\d{1,3}) ?(?:/|out of) ?(?P=most))\b",
        r"\bthis (?:response|answer|solution|submission|text) (?:deserves|earns|merits"
        r"|(?:should|must) (?:get|receive|be (?:rated|scored|graded|given|marked|judged)))\b",
        r"\bdo not (?:deduct|penali[sz]e|take off|take points|mark down|lower the)\b",
        r"\bresponse [AB] is (?:the )?(?:better|best|winner)\b",
    ),
}
_PATTERNS = {
    kind: re.compile("|".join(patterns), re.IGNORECASE | re.MULTILINE)
    for kind, patterns in _KINDS.items()
}


class _Found(NamedTuple):
    start: int
    kind: str
    held: str


def find_flags(texts: Mapping[str, Any], *, delimiters: Collection[str] = ()) -> list[str]:
    """The possible prompt injections in an item's texts, with their positions; [] for most items.

    `texts` are an item's: a text or a list of texts by name. Positions count characters from 1.
    `delimiters` are further lines to look for, such as the delimiters of a project's own strategy.
    """
    return [flag for name, text in _iterate_texts(texts) for flag in _flags(name, text, delimiters)]


def find_delimiters(strategy: Strategy) -> frozenset[str]:
    """Find the lines that delimit texts in the strategy's prompts: lines next to a line that
    contains only a placeholder.
    """
    found = set()
    for number in range(strategy.last_step + 1):
        lines = ["", *strategy.step(number).prompt.splitlines(), ""]
        for at, line in enumerate(lines):
            if schema.PLACEHOLDER.fullmatch(line.strip()):
                found |= {lines[at - 1].strip(), lines[at + 1].strip()}
    return frozenset(line for line in found if len(line) >= MIN_DELIMITER_LENGTH)


def _iterate_texts(texts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, text in texts.items():
        if isinstance(text, str):
            yield name, text
        elif isinstance(text, list | tuple):
            for number, one in enumerate(text, start=1):
                yield f"{name} {number}", str(one)


def _flags(name: str, text: str, delimiters: Collection[str]) -> list[str]:
    found = sorted({*_matches(text), *_find_delimiter_lines(text, delimiters)})
    said = [
        f"{name}, character {one.start + 1}: {one.kind}: {_shorten(one.held)}"
        for one in found[:MAX_FLAGS]
    ]
    return [*said, f"{name}: and more of this"] if len(found) > MAX_FLAGS else said


def _matches(text: str) -> Iterator[_Found]:
    for kind, pattern in _PATTERNS.items():
        for count, match in enumerate(pattern.finditer(text)):
            if count > MAX_FLAGS:
                break
            yield _Found(match.start(), kind, match[0])


def _find_delimiter_lines(text: str, delimiters: Collection[str]) -> Iterator[_Found]:
    for line in sorted(delimiters):
        at = text.find(line)
        for _ in range(MAX_FLAGS + 1):
            if at < 0:
                break
            yield _Found(at, "a marker from a Blindspot prompt", line)
            at = text.find(line, at + len(line))


def _shorten(held: str) -> str:
    line = " ".join(held.split())
    return line if len(line) <= MAX_QUOTE_LENGTH else f"{line[: MAX_QUOTE_LENGTH - 1]}…"
