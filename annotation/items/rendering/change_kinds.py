"""Classifies the changes of a text: changes of a number, a unit or a negation, or of the appearance
only.

Readers look more closely at "5 km" changed to "5 m" than at "large" changed to "big", and may want
to skip a line that only has different line breaks. The words are in `change_kinds.toml`. A mark is
a hint for readers: it has no effect on results, and a change without a mark may be just as
important.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from annotation.items.diffing.difference import Difference, Part, Segment

LEXICON_FILE = Path(__file__).parent / "change_kinds.toml"

ChangeKind = Literal["negation", "number", "unit", "white-space", "formatting"]
CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)
FOLDED_KINDS: frozenset[ChangeKind] = frozenset({"white-space", "formatting"})
"""Marks of changes that leave every word as it was; readers may fold such changes."""

CONTEXT_LENGTH = 60
"""Characters of the line on each side of a change, to tell a list mark from a minus."""


@dataclass(frozen=True)
class ClassifiedChange:
    """A segment that differs between the two texts.

    number: number of its segment. place: index among the changes, from 1. marks: in the order of
    `CHANGE_KINDS`, empty for a change of other words. offset: characters before the change in the
    inline view, which shows both removed and added text. gold, perturbed: its text on each side.
    """

    number: int
    place: int
    kind: str
    marks: tuple[ChangeKind, ...]
    offset: int
    gold: str
    perturbed: str

    @property
    def folds(self) -> bool:
        """True if readers may fold the change, because the words are the same on both sides."""
        return not FOLDED_KINDS.isdisjoint(self.marks)


def classify_changes(difference: Difference) -> tuple[ClassifiedChange, ...]:
    """Return the segments that differ, in order, with their marks."""
    return tuple(_classify_segments(difference.segments))


def classify_change(
    gold: str, perturbed: str, before: str = "", after: str = ""
) -> tuple[ChangeKind, ...]:
    """Return the marks of one change; `before` and `after` are the unchanged texts around it.

    If no word differs, "white-space" or "formatting" is the only mark.
    """
    before, after = (
        before[-CONTEXT_LENGTH:].rpartition("\n")[2],
        after[:CONTEXT_LENGTH].partition("\n")[0],
    )
    if looks := _appearance_kind(gold, perturbed, before, after):
        return (looks,)
    left, right = _split_words(gold), _split_words(perturbed)
    differs: dict[ChangeKind, bool] = {
        "negation": _negations(left) != _negations(right) or _negated(left, right),
        "number": _numbers(gold, left) != _numbers(perturbed, right),
        "unit": _units(gold, left, before) != _units(perturbed, right, before),
    }
    return tuple(mark for mark in CHANGE_KINDS if differs.get(mark))


def _classify_segments(segments: tuple[Segment, ...]) -> Iterator[ClassifiedChange]:
    place = offset = 0
    for number, segment in enumerate(segments):
        gold, perturbed = _text(segment.gold), _text(segment.perturbed)
        if segment.kind == "equal":
            offset += len(gold)
            continue
        place += 1
        before = _text(segments[number - 1].gold) if number else ""
        after = _text(segments[number + 1].gold) if number + 1 < len(segments) else ""
        marks = classify_change(gold, perturbed, before, after)
        yield ClassifiedChange(segment.number, place, segment.kind, marks, offset, gold, perturbed)
        offset += len(gold) + len(perturbed)


def _text(parts: Iterable[Part]) -> str:
    return "".join([part.text for part in parts])


# ---------------------------------------------------------------------------- appearance only

_LINE_SIGN = re.compile(
    r"^[ \t]*(?:\#{1,6}[ \t]+|>[ \t]?|[-*+•][ \t]+|\d{1,3}[.)][ \t]+"
    r"|([-*_=])(?:[ \t]*\1){2,}[ \t]*$|(?:```|~~~)[\w-]*[ \t]*$)",
    re.MULTILINE,
)
_EMPHASIS = re.compile(
    r"(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)|~~|`+"
    r"|(?<![\d\s*])\*{1,3}(?![\d*])|(?<!\*)\*{1,3}(?![\d\s*])|(?<=[^\W\d])\*{1,3}|\*\*(?=\d)|(?<=\d)\*\*"
)
_MAY_BE_FORMATTING = re.compile(r"[-*_~`#>+•=]|^[ \t]*\d{1,3}[.)]", re.MULTILINE)


def _appearance_kind(gold: str, perturbed: str, before: str, after: str) -> ChangeKind | None:
    same = "".join(gold.split()) == "".join(perturbed.split())
    signs = _MAY_BE_FORMATTING.search(gold) or _MAY_BE_FORMATTING.search(perturbed)
    if not same and not signs:
        return None
    gold, perturbed = before + gold + after, before + perturbed + after
    if gold.split() == perturbed.split():
        return "white-space"
    if not signs or _unformatted(gold) != _unformatted(perturbed):
        return None
    left, right = _list_numbers(gold), _list_numbers(perturbed)
    return None if left and right and left != right else "formatting"


def _unformatted(text: str) -> list[str]:
    """The words of a text without Markdown's signs for headings, lists and emphasis."""
    return _EMPHASIS.sub("", _LINE_SIGN.sub("", text)).split()


def _list_numbers(text: str) -> list[str]:
    """The numbers of list items: a change of these numbers is more than a change of appearance."""
    return re.findall(r"^[ \t]*(\d{1,3})[.)][ \t]", text, re.MULTILINE)


# ------------------------------------------------------------------------------------- lexicon

_NUMBER = re.compile(r"[-−+]?\d+(?:[.,:/]\d+)*|[½⅓⅔¼¾⅕⅛⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


@dataclass(frozen=True)
class _Lexicon:
    numbers: frozenset[str]
    units: frozenset[str]
    symbol: re.Pattern[str]
    signs: frozenset[str]
    negations: frozenset[str]
    endings: tuple[str, ...]
    prefixes: tuple[str, ...]


@cache
def _lexicon() -> _Lexicon:
    words = tomllib.loads(LEXICON_FILE.read_text(encoding="utf-8"))
    symbols = sorted(words["units"]["symbols"].split(), key=len, reverse=True)
    return _Lexicon(
        numbers=frozenset(words["numbers"]["words"].split()),
        units=frozenset(words["units"]["words"].split()),
        symbol=re.compile(rf"(?<=\d)[\s-]?({'|'.join(map(re.escape, symbols))})(?![\w])"),
        signs=frozenset(words["units"]["signs"].split()),
        negations=frozenset(words["negations"]["words"].split()),
        endings=tuple(words["negations"]["endings"].split()),
        prefixes=tuple(words["negations"]["prefixes"].split()),
    )


def _split_words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _numbers(text: str, words: list[str]) -> list[str]:
    """Return numbers in digits, then number words, each in the order of the text; "10,000" is
    "10000"."""
    known = _lexicon().numbers
    digits = [re.sub(r",(?=\d{3}(?!\d))", "", number) for number in _NUMBER.findall(text)]
    return digits + [part for word in words for part in word.split("-") if part in known]


def _units(text: str, words: list[str], before: str) -> list[str]:
    """Return unit words, then signs, then symbols, each in the order of the text. A symbol counts
    only after a number, which may be at the end of `before`."""
    lexicon = _lexicon()
    named = [word for word in words if word in lexicon.units]
    signs = [sign for sign in text if sign in lexicon.signs]
    tail = before[-12:]
    found = lexicon.symbol.finditer(tail + text)
    return named + signs + [match[1] for match in found if match.end() > len(tail)]


def _negations(words: list[str]) -> int:
    lexicon = _lexicon()
    return sum(word in lexicon.negations or word.endswith(lexicon.endings) for word in words)


def _negated(gold: list[str], perturbed: list[str]) -> bool:
    """True if a word of one side occurs on the other side with a negating prefix."""
    left, right = set(gold) - set(perturbed), set(perturbed) - set(gold)
    return any(
        len(word) > 3 and prefix + word in others
        for mine, others in ((left, right), (right, left))
        if others
        for word in mine
        for prefix in _lexicon().prefixes
    )
