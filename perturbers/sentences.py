"""Find the sentences of a text, and the parts that are not prose."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

# Code, formulas, addresses and placeholders, which nobody reads word by word. If the end of a
# pattern may be missing, its length is limited. Otherwise, in a text with many beginnings, the time
# would grow with the square of the text's length.
_NO_PROSE = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`"
    r"|\\\[.{0,2000}?\\\]|\\\(.{0,2000}?\\\)|\$\$.*?\$\$|\$[^$\n]{1,200}\$"
    r"|https?://\S+|(?<!\S)[^\s@]++@\S+\.\w+|\[[^\]\n]{0,1000}+\](?:\([^)\n]{0,1000}+\))?",
    re.DOTALL,
)
# The mark of a list, a heading or a quotation, with the space before it.
LINE_MARK = re.compile(r"[ \t]*(?:(?:[-*+•>]|#{1,6}|\d{1,3}[.)])[ \t]+)+|[ \t]+")
NUMBERED = re.compile(r"[ \t]*\d{1,3}[.)][ \t]")
# The end of a sentence, with a closing quotation mark or bold mark.
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)*_]*+(?=\s++[\"'“‘(*_]*+[A-Z0-9]|\s*+\Z)")
_SPACE = re.compile(r"\s*")
# Longer than any abbreviation that ends with a full stop.
_LOOK_BEHIND = 12
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|e\.g|i\.e|cf|No|Fig|approx|[A-Z])|\A\d{1,3})\.\Z"
)


class Sentence(NamedTuple):
    """A sentence of a text, from `start` to `end`, and the number of its line."""

    start: int
    end: int
    line: int

    def of(self, text: str) -> str:
        """Return the text of the sentence, cut from the text in which it was found."""
        return text[self.start : self.end]


@lru_cache(maxsize=64)
def find_no_prose(text: str) -> tuple[tuple[int, int], ...]:
    """Find the spans of a text that are code, a formula, an address or a placeholder."""
    return tuple(found.span() for found in _NO_PROSE.finditer(text))


def is_prose(text: str, start: int, end: int) -> bool:
    """True if nothing from `start` to `end` is code, a formula, an address or a placeholder."""
    return not overlaps(find_no_prose(text), start, end)


def overlaps(places: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """True if anything from `start` to `end` is in one of the places. The places must be sorted and
    must not overlap."""
    first = bisect_right(places, start, key=lambda place: place[1])
    return first < len(places) and places[first][0] < end


@lru_cache(maxsize=64)
def split_sentences(text: str) -> tuple[Sentence, ...]:
    """Return the complete sentences of a text, without the marks of lists and headings.

    A sentence never continues past the end of a line. Text without end punctuation (a heading, the
    last line of a truncated answer) does not count as a sentence.
    """
    return tuple(_sentences(text))


def _sentences(text: str) -> Iterator[Sentence]:
    start_of_line = 0
    for number, line in enumerate(text.split("\n")):
        mark = LINE_MARK.match(line)
        start = mark.end() if mark else 0
        for end in _ends(line, start):
            yield Sentence(start_of_line + start, start_of_line + end, number)
            space = _SPACE.match(line, end)
            start = space.end() if space else end
        start_of_line += len(line) + 1


def _ends(line: str, start: int) -> Iterator[int]:
    for found in _END.finditer(line, start):
        if not _ABBREVIATION.search(line[max(start, found.end() - _LOOK_BEHIND) : found.end()]):
            yield found.end()
