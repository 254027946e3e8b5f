"""Classifies the changes of a text: changes of a number, a unit or a negation, of the place or of
the appearance only.

Readers look more closely at "5 km" changed to "5 m" than at "large" changed to "big", and may want
to skip a line that only has different line breaks. A number, a unit or a negation is marked at its
own word, so that a mark in a long change says what to look at. The words are in
`change_kinds.toml`. A mark is a hint for readers: it has no effect on results, and a change without
a mark may be just as important.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Literal, get_args

from rapidfuzz.distance import Indel

from annotation.items.diffing.alignment import ALIGNMENT_LIMIT
from annotation.items.diffing.difference import Difference, Part, Segment, SegmentKind
from annotation.items.diffing.pairing import TokenCodes

LEXICON_FILE = Path(__file__).parent / "change_kinds.toml"

ChangeKind = Literal["negation", "number", "unit", "moved", "white-space", "formatting"]
CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)
FOLDED_KINDS: frozenset[ChangeKind] = frozenset({"white-space", "formatting"})
"""Marks of changes that leave every word as it was; readers may fold such changes."""

Side = Literal["gold", "perturbed"]

CONTEXT_LENGTH = 60
"""Characters of the line on each side of a change, to tell a list mark from a minus."""

MAX_ONE_SIDED_WORDS = 5
"""Words of an insertion or a removal that is marked; in a longer one, everything is new."""

MAX_SHORT_WORDS = 12
"""Words of a change up to which number words count; in a longer one, only digits against digits."""

MAX_NEGATED_WORDS = 8
MAX_SWAPPED_WORDS = 4
"""Words of a change in which a unit counts against another unit, without a number beside it."""


MOST_MARKED = 20_000
"""Numbers, or units, of a change that are marked, each by an element of its own."""


@dataclass(frozen=True)
class Passage:
    """One side of a change: its text, and the equal text around it."""

    text: str
    before: str = ""
    after: str = ""

    def context(self) -> tuple[str, int, int]:
        """Return the line around the text, up to `CONTEXT_LENGTH` characters on each side, and
        where the text starts and ends in it."""
        before = self.before[-CONTEXT_LENGTH:].rpartition("\n")[2]
        after = self.after[:CONTEXT_LENGTH].partition("\n")[0]
        return before + self.text + after, len(before), len(before) + len(self.text)


@dataclass(frozen=True, order=True)
class MarkedWord:
    """A number, a unit or a negation: characters from `start` to `end` of one side of a change."""

    start: int
    end: int
    kind: ChangeKind


@dataclass(frozen=True)
class ClassifiedChange:
    """A change between the two texts: a segment that differs, or both ends of a moved passage.

    number: number of its segment; of a move, of the end that comes first in the inline view. kind:
    that of its segment. marks: in the order of `CHANGE_KINDS`, empty for a change of other words.
    offset: characters before the change in the inline view, which shows both removed and added
    text. gold, perturbed: its text on each side. words: the words to mark, by side; in order, and
    none within another. other_end: number of the segment of the other end and its offset, None for
    a change that is no move.
    """

    number: int
    kind: SegmentKind
    marks: tuple[ChangeKind, ...]
    offset: int
    gold: str
    perturbed: str
    words: Mapping[Side, tuple[MarkedWord, ...]]
    other_end: tuple[int, int] | None = None

    @property
    def folds(self) -> bool:
        """True if readers may fold the change, because the words are the same on both sides."""
        return not FOLDED_KINDS.isdisjoint(self.marks)


def classify_changes(difference: Difference) -> tuple[ClassifiedChange, ...]:
    """Return the changes in order, with their marks."""
    return tuple(_classify_segments(difference.segments))


def classify_change(
    gold: Passage, perturbed: Passage
) -> tuple[tuple[ChangeKind, ...], Mapping[Side, tuple[MarkedWord, ...]]]:
    """Return the marks of one change, and the words to mark on each side.

    If no word differs, "white-space" or "formatting" is the only mark, and no word is marked.
    """
    if looks := _appearance_kind(gold, perturbed):
        return (looks,), {}
    sizes = len(gold.text.split()), len(perturbed.text.split())
    longest = max(sizes)
    if longest > MAX_ONE_SIDED_WORDS and not min(sizes):
        return (), {}
    found = [
        *_changed_numbers(gold, perturbed, longest),
        *_changed_units(gold, perturbed, longest),
        *(_changed_negations(gold, perturbed) if longest <= MAX_NEGATED_WORDS else ()),
    ]
    words: dict[Side, tuple[MarkedWord, ...]] = {
        "gold": _without_overlaps(word for side, word in found if side == "gold"),
        "perturbed": _without_overlaps(word for side, word in found if side == "perturbed"),
    }
    kinds = {word.kind for side in words.values() for word in side}
    return tuple(kind for kind in CHANGE_KINDS if kind in kinds), words


def _without_overlaps(words: Iterable[MarkedWord]) -> tuple[MarkedWord, ...]:
    kept: list[MarkedWord] = []
    for word in sorted(words):
        if not kept or kept[-1].end <= word.start:
            kept.append(word)
    return tuple(kept)


def _classify_segments(segments: tuple[Segment, ...]) -> Iterator[ClassifiedChange]:
    offsets = list(accumulate((_inline_length(segment) for segment in segments), initial=0))
    ends: dict[int, list[Segment]] = {}
    for segment in segments:
        if segment.move:
            ends.setdefault(segment.move, []).append(segment)
    for number, segment in enumerate(segments):
        left, right = _text(segment.gold), _text(segment.perturbed)
        is_second_end = bool(segment.move) and segment is ends[segment.move][1]
        if segment.kind != "equal" and not is_second_end:
            marks: tuple[ChangeKind, ...] = ("moved",)
            words: Mapping[Side, tuple[MarkedWord, ...]] = {}
            other_end = None
            if segment.move:
                other = ends[segment.move][1]
                other_end = other.number, offsets[other.number]
                left, right = left or _text(other.gold), right or _text(other.perturbed)
            else:
                before = _equal_text(segments, number - 1)
                after = _equal_text(segments, number + 1)
                marks, words = classify_change(
                    Passage(left, before, after), Passage(right, before, after)
                )
            yield ClassifiedChange(
                number,
                segment.kind,
                marks,
                offsets[number],
                left,
                right,
                words,
                other_end,
            )


def _equal_text(segments: Sequence[Segment], number: int) -> str:
    """Return the text of an equal segment, "" for any other and beyond the ends."""
    if 0 <= number < len(segments) and segments[number].kind == "equal":
        return _text(segments[number].gold)
    return ""


def _inline_length(segment: Segment) -> int:
    return len(_text(segment.gold)) + len(_text(segment.perturbed)) * (segment.kind != "equal")


def _text(parts: Iterable[Part]) -> str:
    return "".join([part.text for part in parts])


# ---------------------------------------------------------------------------- appearance only

_LINE_SIGN = re.compile(
    r"^[ \t]*(?:\#{1,6}[ \t]+|>[ \t]?|[-*+•][ \t]+|\d{1,3}[.)][ \t]+"
    r"|([-*_=])(?:[ \t]*\1){2,}[ \t]*$|(?:```|~~~)[\w-]*[ \t]*$)",
    re.MULTILINE,
)
# The same inside a line, where a sentence ends: texts were also written as one long line.
_SIGN_INSIDE = re.compile(
    r"(?:(?<=[.!?:)*\"” ] )|^)(?:\#{1,6}|[-*+•]|-{3})[ \t]+(?=\*\*|[A-Z\"“\#])"
)
_EMPHASIS = re.compile(
    r"(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)|~~|`+"
    r"|(?<![\d\s*])\*{1,3}(?![\d*])|(?<!\*)\*{1,3}(?![\d\s*])|(?<=[^\W\d])\*{1,3}|\*\*(?=\d)|(?<=\d)\*\*"
)
_MAY_BE_FORMATTING = re.compile(r"[-*_~`#>+•=]|^[ \t]*\d{1,3}[.)]", re.MULTILINE)


def _appearance_kind(gold: Passage, perturbed: Passage) -> ChangeKind | None:
    same = "".join(gold.text.split()) == "".join(perturbed.text.split())
    signs = _MAY_BE_FORMATTING.search(gold.text) or _MAY_BE_FORMATTING.search(perturbed.text)
    if not same and not signs:
        return None
    left, right = gold.context()[0], perturbed.context()[0]
    if left.split() == right.split():
        return "white-space"
    if not signs or _unformatted(left) != _unformatted(right):
        return None
    numbers = _list_numbers(left), _list_numbers(right)
    return None if all(numbers) and numbers[0] != numbers[1] else "formatting"


def _unformatted(text: str) -> list[str]:
    """The words of a text without Markdown's signs for headings, lists and emphasis."""
    return _EMPHASIS.sub("", _SIGN_INSIDE.sub("", _LINE_SIGN.sub("", text))).split()


def _list_numbers(text: str) -> list[str]:
    """The numbers of list items: a change of these numbers is more than a change of appearance."""
    return re.findall(r"^[ \t]*(\d{1,3})[.)][ \t]", text, re.MULTILINE)


# ------------------------------------------------------------------------------------- lexicon


@dataclass(frozen=True)
class _Lexicon:
    numbers: frozenset[str]
    ambiguous_numbers: frozenset[str]
    units: frozenset[str]
    only_behind_numbers: frozenset[str]
    behind_number: re.Pattern[str]
    symbol: re.Pattern[str]
    sign: re.Pattern[str]
    negations: frozenset[str]
    endings: tuple[str, ...]
    prefixes: tuple[str, ...]
    behind_a: frozenset[str]


@cache
def _lexicon() -> _Lexicon:
    lists = tomllib.loads(LEXICON_FILE.read_text(encoding="utf-8"))
    numbers, units, negations = lists["numbers"], lists["units"], lists["negations"]
    measures = set(numbers["words"].split()) - set(numbers["no_measure"].split())
    return _Lexicon(
        numbers=frozenset(numbers["words"].split()) | {"second"},
        ambiguous_numbers=frozenset(numbers["ambiguous"].split()),
        units=frozenset(units["words"].split()),
        only_behind_numbers=frozenset(units["only_behind_numbers"].split()),
        behind_number=re.compile(
            rf"(?:\d|[½⅓⅔¼¾]|\b(?:{_any_of(measures)}))(?:\s*\w{{0,6}}(?:th|rd|nd|st)\b)?{_GAP}"
            r"(?:(?:square|cubic|sq|cu)\.?\s+)?$",
            re.IGNORECASE,
        ),
        symbol=re.compile(
            rf"(?<=\d){_GAP}({_any_of(units['symbols'].split())})(?![\w'’])"
            rf"(?!(?<=\din|.\bin)\s+(?:[\dA-Z]|(?:{_any_of(units['behind_no_inch'].split())})\b))"
        ),
        sign=re.compile(f"[{re.escape(''.join(units['signs'].split()))}]"),
        negations=frozenset(negations["words"].split()),
        endings=tuple(negations["endings"].split()),
        prefixes=tuple(negations["prefixes"].split()),
        behind_a=frozenset(negations["behind_a"].split()),
    )


def _any_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=lambda word: (-len(word), word))))


# What may be between a number and its unit, also in LaTeX. Each piece fits in one way only, and
# none is given back: otherwise a long row of backslashes would take exponential time.
_GAP = r"(?>(?:[\s\-~{}]|\\(?:[,;:]|(?:text|mathrm|mbox|textrm)\{)?)*)"
_NUMBER = re.compile(
    r"(?<![\w.,])[-−+](?=\d)\d+(?:[.,:/]\d+)*|\d+(?:[.,:/]\d+)*|[½⅓⅔¼¾⅕⅛⁰¹²³⁴⁵⁶⁷⁸⁹]+"
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_PER = re.compile(rf"(?:\bper\s+(?:square\s+|cubic\s+)?|/\s*{_GAP})$", re.IGNORECASE)
_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_VALUES = {word: str(value) for value, word in enumerate(_SMALL.split())}
_VALUES |= {word: str(10 * tens) for tens, word in enumerate(_TENS.split(), 2)}


@dataclass(frozen=True)
class _Found:
    """A number or a unit in the context of a change, and what it is compared by. `is_digits` and
    `is_ambiguous` are of numbers, `is_sure` of units: a number is beside it."""

    start: int
    end: int
    value: str
    is_digits: bool = False
    is_ambiguous: bool = False
    is_sure: bool = False


Word = tuple[Side, MarkedWord]


def _changed_numbers(gold: Passage, perturbed: Passage, longest: int) -> Iterator[Word]:
    """Yield the numbers of each side that the other lacks, as values: "three" is 3, "1,000" is
    1000."""
    left, right = _only_here(_numbers(gold), _numbers(perturbed))
    if longest > MAX_SHORT_WORDS:
        left, right = ([n for n in side if n.is_digits] for side in (left, right))
        if not left or not right:
            return
    elif not left or not right:
        left, right = ([n for n in side if not n.is_ambiguous] for side in (left, right))
    elif all(n.is_ambiguous for n in left + right) and longest > MAX_SWAPPED_WORDS:
        return
    yield from _place(gold, perturbed, left, right, "number")


def _changed_units(gold: Passage, perturbed: Passage, longest: int) -> Iterator[Word]:
    """Yield the units of each side that the other lacks: those beside a number, and in a short
    change also a unit against another unit ("days" and "hours")."""
    left, right = _only_here(_units(gold), _units(perturbed))
    if longest > MAX_SHORT_WORDS and not (left and right):
        return
    swapped = bool(left and right) and longest <= MAX_SWAPPED_WORDS
    only_behind = _lexicon().only_behind_numbers
    left, right = (
        [unit for unit in side if unit.is_sure or (swapped and unit.value not in only_behind)]
        for side in (left, right)
    )
    yield from _place(gold, perturbed, left, right, "unit")


def _place(
    gold: Passage, perturbed: Passage, left: list[_Found], right: list[_Found], kind: ChangeKind
) -> Iterator[Word]:
    """Yield what was found in the contexts as words of the change itself; nothing of very many,
    since the whole change is to be read anyway."""
    if len(left) + len(right) > MOST_MARKED:
        return
    sides: tuple[tuple[Side, Passage, list[_Found]], ...] = (
        ("gold", gold, left),
        ("perturbed", perturbed, right),
    )
    for side, passage, found in sides:
        _, low, high = passage.context()
        for one in found:
            start, end = max(one.start, low), min(one.end, high)
            if start < end:
                yield side, MarkedWord(start - low, end - low, kind)


def _only_here(left: list[_Found], right: list[_Found]) -> tuple[list[_Found], list[_Found]]:
    """Return what is not in the longest common subsequence of both. Nothing if there is too much to
    align at once: then the whole change is to be read anyway."""
    if len(left) * len(right) > ALIGNMENT_LIMIT:
        return [], []
    codes = TokenCodes()
    steps = Indel.opcodes(
        codes.encode(one.value for one in left), codes.encode(one.value for one in right)
    )
    changed = [step for step in steps if step.tag != "equal"]
    return (
        [one for step in changed for one in left[step.src_start : step.src_end]],
        [one for step in changed for one in right[step.dest_start : step.dest_end]],
    )


def _numbers(passage: Passage) -> list[_Found]:
    text, low, high = passage.context()
    lexicon = _lexicon()
    found = [
        _Found(
            match.start(),
            match.end(),
            re.sub(r",(?=\d{3}(?!\d))", "", match[0].replace("−", "-")),
            is_digits=True,
        )
        for match in _NUMBER.finditer(text)
        if match.start() < high and low < match.end()
    ]
    for match in _WORD.finditer(text, low, high):
        word = match[0].lower()
        before = text[max(0, match.start() - CONTEXT_LENGTH) : match.start()]
        if word not in lexicon.numbers or before.endswith(("'", "’", "_")):
            continue
        if word == "second" and before.rstrip()[-1:].isdigit():  # a unit
            continue
        value = _VALUES.get(word, word)
        ambiguous = word in lexicon.ambiguous_numbers
        found.append(_Found(match.start(), match.end(), value, is_ambiguous=ambiguous))
    return sorted(found, key=lambda number: number.start)


def _units(passage: Passage) -> list[_Found]:
    text, low, high = passage.context()
    lexicon = _lexicon()
    found: list[_Found] = []
    for match in _WORD.finditer(text):
        word = match[0].lower()
        if match.end() <= low or high <= match.start() or word not in lexicon.units:
            continue
        before = text[max(0, match.start() - 40) : match.start()]
        sure = bool(lexicon.behind_number.search(before[-30:])) or (
            bool(_PER.search(before[-30:])) and any(map(str.isdigit, before))
        )
        found.append(_Found(match.start(), match.end(), word, is_sure=sure))
    for match in lexicon.symbol.finditer(text):
        if match.start(1) < high and low < match.end(1):
            found.append(_Found(match.start(1), match.end(1), match[1], is_sure=True))
    has_formulas = "\\" in text
    for match in lexicon.sign.finditer(text):
        if match.end() <= low or high <= match.start():
            continue
        start, end = match.span()
        before, after = text[max(0, start - 3) : start], text[end : end + 2]
        sign = match[0]
        if sign == "$":  # also around formulas
            if after[:1].isdigit() and not has_formulas:
                found.append(_Found(start, end, sign, is_sure=True))
            continue
        sure = bool(re.search(r"\d[\s\\]*$", before)) or (sign == "°" and before.endswith("^"))
        sure = sure or (sign in "€£¥₹₽₩¢" and bool(re.match(r"\s?\d", after)))
        found.append(_Found(start, end, sign, is_sure=sure))
    return sorted(found, key=lambda unit: unit.start)


def _changed_negations(gold: Passage, perturbed: Passage) -> Iterator[Word]:
    """Yield the negations that one side has more of, and words against the same word with a
    negating prefix."""
    counts = _negations(gold), _negations(perturbed)
    if len(counts[0]) != len(counts[1]):
        yield from (("gold", word) for word in counts[0][len(counts[1]) :])
        yield from (("perturbed", word) for word in counts[1][len(counts[0]) :])
    left, right = (
        {match[0].lower(): match for match in _WORD.finditer(side.text)}
        for side in (gold, perturbed)
    )
    pairs: tuple[tuple[Side, Side, dict[str, re.Match[str]], dict[str, re.Match[str]]], ...] = (
        ("gold", "perturbed", left, right),
        ("perturbed", "gold", right, left),
    )
    for side, other_side, mine, theirs in pairs:
        for word, match in mine.items():
            if word in theirs or len(word) <= 3:
                continue
            for negated in _negated_forms(word):
                if negated in theirs and negated not in mine:
                    other = theirs[negated]
                    yield side, MarkedWord(match.start(), match.end(), "negation")
                    yield other_side, MarkedWord(other.start(), other.end(), "negation")


def _negated_forms(word: str) -> Iterator[str]:
    lexicon = _lexicon()
    yield from (prefix + word for prefix in lexicon.prefixes)
    if word in lexicon.behind_a:
        yield f"a{word}"


def _negations(passage: Passage) -> list[MarkedWord]:
    text, low, high = passage.context()
    lexicon = _lexicon()
    found = []
    for match in _WORD.finditer(text, low, high):
        word = match[0].lower()
        if word not in lexicon.negations and not word.endswith(lexicon.endings):
            continue
        if word == "no" and _EXCLAIMS.search(text, max(0, match.start() - 20), match.start()):
            continue
        if word == "not" and _ONLY.match(text, match.end()):
            continue
        found.append(MarkedWord(match.start() - low, match.end() - low, "negation"))
    return found


_EXCLAIMS = re.compile(r"\b(?:oh|whether or|say)\W*$", re.IGNORECASE)
_ONLY = re.compile(r"\s+only\b")
