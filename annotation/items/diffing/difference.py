"""The difference of two texts, as segments that a person can read.

Both texts are cut into tokens, and `alignment` pairs the tokens. Inside a changed segment,
characters are aligned like the tokens and cleaned up by diff-match-patch. Changed characters are
marked only if both sides share most characters: scattered marks in two different words would only
confuse.

Tokens are words with their marks, numbers with their separators ("1,250.50"), single line breaks,
other runs of white space, single signs, and single characters in scripts written without spaces.
People read changes word by word; a diff by characters would break words into pieces.

A base character is never separated from its combining marks, joiners or variation selectors, nor
one half of a flag from the other. Which characters are marks depends on the Unicode tables of this
Python.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Literal

from diff_match_patch import diff_match_patch
from rapidfuzz.distance import Indel

from annotation.items.diffing import alignment

MIN_UNIT_LENGTH = 30
"""Characters of a line or sentence that is trusted to be the same one in both texts."""


def tokenise(text: str) -> list[str]:
    """Return the tokens of a text; joined, they give the text."""
    return _TOKEN.findall(text)


def tokenise_pair(gold: str, perturbed: str) -> tuple[list[str], list[str], set[str]]:
    """Return the tokens of both texts, and the long tokens that occur once in each.

    The long tokens are whole lines and sentences. Two compared texts are mostly equal, so that most
    of them need not be split into words.
    """
    left, right = _units(gold), _units(perturbed)
    shared = _occurring_once(left) & _occurring_once(right)
    return _split(left, shared), _split(right, shared), shared


def bond_clusters(gold: str, perturbed: str) -> tuple[str, str, dict[int, str]]:
    """Replace each inseparable cluster in both texts by a private-use character. Return both texts
    and a table for `str.translate` that restores the clusters.

    Private-use characters of the texts themselves are replaced in the same way, so that they never
    clash with these.
    """
    if gold.isascii() and perturbed.isascii() and "\r" not in gold + perturbed:
        return gold, perturbed, {}
    known: dict[str, str] = {}

    def bond(match: re.Match[str]) -> str:
        return known.setdefault(match[0], chr(0xF0000 + len(known)))

    left, right = _INSEPARABLE.sub(bond, gold), _INSEPARABLE.sub(bond, perturbed)
    return left, right, {ord(private): cluster for cluster, private in known.items()}


def _units(text: str) -> list[str]:
    """Split a text after each line break and each sentence; no token crosses such a place."""
    cuts = [0, *(match.end() for match in _UNIT_END.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(cuts)]


def _occurring_once(units: list[str]) -> set[str]:
    counts = Counter(units)
    return {unit for unit in counts if counts[unit] == 1 and len(unit) >= MIN_UNIT_LENGTH}


def _split(units: list[str], shared: set[str]) -> list[str]:
    split: list[str] = []
    for unit in units:
        if unit in shared:
            split.append(unit)
        else:
            split += _TOKEN.findall(unit)
    return split


def _character_class(members: Iterable[int]) -> str:
    """Return what a regular expression needs between [ and ] to match these sorted code points."""
    ranges: list[list[int]] = []
    for point in members:
        if ranges and point == ranges[-1][1] + 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return "".join(f"\\U{first:08X}-\\U{last:08X}" for first, last in ranges)


# Marks are in the first two planes; variation selectors and tags are in plane 14.
_MARKS = [
    point
    for point in (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0))
    if unicodedata.category(chr(point)).startswith("M")
]
_EXTEND = (
    _character_class(_MARKS)
    + "\u200c\u200d"  # (non-)joiners
    + "\u1160-\u11ff\ud7b0-\ud7fb"  # vowels and finals of taken-apart Hangul
    + "\u0e33\u0eb3\uff9e\uff9f"  # Thai and Lao AM, half-width Kana voicing
    + "\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"  # skin tones, tags of flags
)
_VIRAMA = _character_class(point for point in _MARKS if unicodedata.combining(chr(point)) == 9)
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"
# Han, Kana, Bopomofo, Yi; Thai, Lao, Myanmar, Khmer: written without spaces.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3021-\u3029\u3040-\u312f\u31a0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
)
_PICTURE = "\u203c-\u2bff\U0001f000-\U0001f1e5\U0001f200-\U0001faff"
_TAIL = rf"(?:\u200d[{_PICTURE}]|[{_VIRAMA}]\u200d?\w|[{_EXTEND}])"
_LETTERS = rf"(?:[^\W{_UNSPACED}]++(?:(?=[{_EXTEND}]){_TAIL}++)?)++"
# Plain ASCII is tried first: it makes up nearly all of most texts, and the sets of marks are slow.
_PLAIN = r"[A-Za-z_]++(?=[ !-&(-/:-@[-^`{-~\r\n])| (?=[!-~])|[!-&(-/:-@[-^`{-~](?=[ -~\r\n])"
_TOKEN = re.compile(
    rf"{_PLAIN}|{_LETTERS}(?:(?:(?<=\d)[.,](?=\d)|['’](?=[^\W{_UNSPACED}])){_LETTERS})*+"
    rf"|[^\S\r\n]+(?![{_EXTEND}])"
    r"|\r\n|[\r\n]"
    rf"|{_FLAG}{_TAIL}*+"
    rf"|.{_TAIL}*+",
    re.DOTALL,
)
_BEYOND = "\U000f0000-\U0010ffff"  # private use: replaces a cluster that must not be cut
_INSEPARABLE = re.compile(rf"\r\n|{_FLAG}{_TAIL}*+|[^\r\n]{_TAIL}++|[{_BEYOND}]")
# Begins with a set instead of alternatives, which makes the search three times as fast.
_UNIT_END = re.compile(r"[\r\n.!?:;](?:(?<=\r)\n?|(?<=\n)|(?<=[.!?:;]) (?=[!-~]))")


ALGORITHM = "words-1"

REFINEMENT_LIMIT = 400
"""Longest side of a change, in characters, that gets marks inside; a longer one is marked whole."""

MIN_SHARED_FRACTION = 0.6
"""Share of common characters that a change needs for marks inside; below, marks are noise."""

SegmentKind = Literal["equal", "removed", "added", "changed"]
Parts = tuple["Part", ...]


@dataclass(frozen=True)
class Part:
    """A piece of one side of a segment, changed or unchanged."""

    text: str
    changed: bool


@dataclass(frozen=True)
class Segment:
    """A section of both texts; `number` is its index among all segments.

    The kinds: an `equal` segment has the same single unchanged part on both sides; a `removed` one
    has no text on the perturbed side, an `added` one none on the gold side, and a `changed` one has
    text on both sides.
    """

    number: int
    kind: SegmentKind
    gold: Parts
    perturbed: Parts


@dataclass(frozen=True)
class Difference:
    """The result of `compare`.

    segments: the gold parts, joined in order, give the gold text, and the perturbed parts the
        perturbed text.
    edit_size: characters (code points) in changed parts divided by those of both texts, 0 to 1;
        0 for equal texts, also for two empty ones, and 1 if only one of the two is empty.
    place: characters of the gold text before the first change divided by all of its characters, 0
        to 1; 1 if the perturbed text only adds to the end, 0 for an empty gold text, None for equal
        texts.
    white_space_only: True if the texts differ but consist of the same words, separated by white
        space. ("every day" and "everyday" differ in words.)
    """

    segments: tuple[Segment, ...]
    edit_size: float
    place: float | None
    identical: bool
    white_space_only: bool


@dataclass(frozen=True)
class Piece:
    """A part of one segment within one line of one side, including the line break if it has one."""

    text: str
    changed: bool
    kind: SegmentKind
    number: int


@dataclass(frozen=True)
class SideBySideRow:
    """One line of each side. A side without pieces has no line in this row (even a blank line has a
    piece: its line break)."""

    gold: tuple[Piece, ...]
    perturbed: tuple[Piece, ...]


# ---------------------------------------------------------------------------------------- public


def compare(gold: str, perturbed: str) -> Difference:
    """Compare two texts; the result is the same on every machine.

    Takes about half a millisecond for answers of 2,000 characters, and some tenths of a second for
    100,000 with a fifth of the words changed. A section that is too large to align and has no
    passage in common becomes one change.
    """
    return _difference(tuple(_segments(gold, perturbed)))


def to_json(difference: Difference) -> dict[str, Any]:
    """Return the difference as plain JSON data, which is only a little larger than the texts.

    `segments` has a string for an equal segment, otherwise a pair [gold, perturbed] of lists of
    strings, which are unchanged and changed by turns. The first string is unchanged ("" if the
    segment begins with a change).
    """
    return {
        "algorithm": ALGORITHM,
        "segments": [_pack(segment) for segment in difference.segments],
    }


def from_json(data: dict[str, Any]) -> Difference:
    """Read what `to_json` returned. Raises `ValueError` if another algorithm computed it."""
    if data.get("algorithm") != ALGORITHM:
        raise ValueError(f"made by {data.get('algorithm')!r}, not {ALGORITHM!r}: compare again")
    return _difference(tuple(_unpack(n, packed) for n, packed in enumerate(data["segments"])))


def align_lines(difference: Difference) -> tuple[SideBySideRow, ...]:
    """Return the two texts line by line, side by side. Every piece is in exactly one row.

    Equal lines share a row. Lines of a change are paired in order. Extra lines of one side have an
    empty cell beside them, so that the text after the change is aligned again. In such a change, a
    line of the shorter side may continue in a later row, but a list item stays whole. Two empty
    texts give no rows.
    """
    made: list[SideBySideRow] = []
    gold: list[Piece] = []
    perturbed: list[Piece] = []
    for segment in difference.segments:
        *whole, (gold, perturbed) = _paired_lines(segment, gold, perturbed)
        made += [SideBySideRow(tuple(left), tuple(right)) for left, right in whole]
    if gold or perturbed:
        made.append(SideBySideRow(tuple(gold), tuple(perturbed)))
    return tuple(made)


# ------------------------------------------------------------------------------------ refinement


def _refine(gold: str, perturbed: str) -> tuple[Parts, Parts]:
    """Return the parts of two differing texts, with changed characters marked if most are
    shared."""
    whole = _parts([(gold, True)]), _parts([(perturbed, True)])
    if not gold or not perturbed or max(len(gold), len(perturbed)) > REFINEMENT_LIMIT:
        return whole
    left, right, bonds = bond_clusters(gold, perturbed)
    if Indel.normalized_similarity(left, right) < MIN_SHARED_FRACTION:
        return whole
    diffs = [
        diff
        for step in Indel.opcodes(left, right)
        for diff in _as_diffs(
            left[step.src_start : step.src_end], right[step.dest_start : step.dest_end]
        )
    ]
    diff_match_patch().diff_cleanupSemantic(diffs)
    shared = sum(len(text) for sign, text in diffs if sign == 0)
    if 2 * shared < MIN_SHARED_FRACTION * (len(left) + len(right)):
        return whole
    freed = [(sign, text.translate(bonds)) for sign, text in diffs]
    return (
        _parts((text, sign != 0) for sign, text in freed if sign <= 0),
        _parts((text, sign != 0) for sign, text in freed if sign >= 0),
    )


def _as_diffs(gold: str, perturbed: str) -> list[tuple[int, str]]:
    """Return the diffs of diff-match-patch; their operations are -1 removed, 0 equal, 1
    inserted."""
    if gold == perturbed:
        return [(0, gold)]
    return [(sign, text) for sign, text in ((-1, gold), (1, perturbed)) if text]


def _parts(pieces: Iterable[tuple[str, bool]]) -> Parts:
    """Return the parts; empty parts are dropped, and neighbours of the same kind are merged."""
    parts = (
        Part("".join(text for text, _ in group), changed)
        for changed, group in groupby((piece for piece in pieces if piece[0]), lambda p: p[1])
    )
    return tuple(parts)


# -------------------------------------------------------------------------------------- segments


def _segments(gold: str, perturbed: str) -> Iterator[Segment]:
    left, right, shared = tokenise_pair(gold, perturbed)
    sides = alignment.Sides.from_tokens(left, right)
    for number, span in enumerate(alignment.align(sides, shared)):
        a, b = sides.gold_offsets[span.a], sides.gold_offsets[span.b]
        c, d = sides.perturbed_offsets[span.c], sides.perturbed_offsets[span.d]
        if span.equal:
            yield _segment(number, *([(Part(gold[a:b], False),)] * 2))
        else:
            yield _segment(number, *_refine(gold[a:b], perturbed[c:d]))


def _segment(number: int, gold: Parts, perturbed: Parts) -> Segment:
    kind: SegmentKind = "changed"
    if not perturbed:
        kind = "removed"
    elif not gold:
        kind = "added"
    elif not any(part.changed for part in gold + perturbed):
        kind = "equal"
    return Segment(number, kind, gold, perturbed)


def _difference(segments: tuple[Segment, ...]) -> Difference:
    gold = "".join(part.text for segment in segments for part in segment.gold)
    perturbed = "".join(part.text for segment in segments for part in segment.perturbed)
    changed = sum(
        len(part.text)
        for segment in segments
        for part in segment.gold + segment.perturbed
        if part.changed
    )
    identical = gold == perturbed
    return Difference(
        segments=segments,
        edit_size=changed / (len(gold) + len(perturbed)) if changed else 0.0,
        place=None if identical else _before_change(segments) / max(1, len(gold)),
        identical=identical,
        white_space_only=not identical and gold.split() == perturbed.split(),
    )


def _before_change(segments: tuple[Segment, ...]) -> int:
    """Return the number of characters of the gold text before the first change."""
    total = 0
    for segment in segments:
        if segment.kind != "equal":
            return total + min(_unchanged_start(segment.gold), _unchanged_start(segment.perturbed))
        total += len(segment.gold[0].text)
    return total


def _unchanged_start(parts: Parts) -> int:
    return len(parts[0].text) if parts and not parts[0].changed else 0


def _pack(segment: Segment) -> Any:
    if segment.kind == "equal":
        return segment.gold[0].text
    return [
        ([""] if side and side[0].changed else []) + [part.text for part in side]
        for side in (segment.gold, segment.perturbed)
    ]


def _unpack(number: int, packed: Any) -> Segment:
    if isinstance(packed, str):
        return _segment(number, *([(Part(packed, False),)] * 2))
    gold, perturbed = (
        _parts((text, place % 2 == 1) for place, text in enumerate(side)) for side in packed
    )
    return _segment(number, gold, perturbed)


# ------------------------------------------------------------------------------------------ rows


def _paired_lines(
    segment: Segment, gold: list[Piece], perturbed: list[Piece]
) -> list[tuple[list[Piece], list[Piece]]]:
    """Return the lines of a segment side by side; its first lines continue those of the open row.

    The last line of each side has no line break yet; the last row, which contains both, stays open.
    """
    left = _lines(segment, segment.gold, gold)
    right = _lines(segment, segment.perturbed, perturbed)
    height = max(len(left), len(right))
    return list(
        zip(_pad_lines(left, height, gold), _pad_lines(right, height, perturbed), strict=True)
    )


def _pad_lines(lines: list[list[Piece]], height: int, begun: list[Piece]) -> list[list[Piece]]:
    """Return the lines, padded to `height` with blank lines before the last line.

    The blank lines follow the last line if it is the only one and has text in the open row. A list
    mark or an indentation does not count as text, so that a list item stays in one row.
    """
    blanks: list[list[Piece]] = [[] for _ in range(height - len(lines))]
    if len(lines) == 1 and any(sign.isalpha() for piece in begun for sign in piece.text):
        return lines + blanks
    return lines[:-1] + blanks + lines[-1:]


def _lines(segment: Segment, parts: Parts, begun: list[Piece]) -> list[list[Piece]]:
    """Split the parts after each line break; the last line has no break and may be empty."""
    lines = [begun.copy()]
    for part in parts:
        for text in re.findall(r"[^\r\n]*(?:\r\n|[\r\n])|[^\r\n]+", part.text):
            lines[-1].append(Piece(text, part.changed, segment.kind, segment.number))
            if text[-1] in "\r\n":
                lines.append([])
    return lines
