"""The difference of two texts, as segments that a person can read.

`alignment` pairs lines, sentences and words. Inside a changed segment, characters are aligned like
the words and cleaned up by diff-match-patch. Changed characters are marked only if both sides share
most characters: scattered marks in two different words would only confuse.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from diff_match_patch import diff_match_patch
from rapidfuzz.distance import Indel

from annotation.items.diffing.alignment import Alignment, Span
from annotation.items.diffing.moves import settle_moves
from annotation.items.diffing.tokens import bond_clusters

ALGORITHM = "words-2"
"""The version of the diff: how texts are aligned, and how the result is stored. Another one gets
another name, because answers to single changes stay with the diff that they were given for."""

FORMER_ALGORITHM = "words-1"
"""The only version before; it knew no moves. What names no version is from its time."""

READABLE_ALGORITHMS = (FORMER_ALGORITHM, ALGORITHM)
"""The versions whose stored differences `from_json` reads."""

MAX_COMPARED_LENGTH = 2_000_000
"""Characters of both texts together; longer ones are one change."""

REFINEMENT_LIMIT = 400
"""Longest side of a change, in characters, that gets marks inside; a longer one is marked whole."""

MIN_SHARED_FRACTION = 0.6
"""Share of common characters that a change needs for marks inside; below, marks are noise."""

MOST_ROWS = 50_000
"""Line breaks of both texts up to which they are shown side by side line by line."""

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
    text on both sides. A passage that moved has two segments with the same number `move`, from 1:
    a `removed` one where it was and an `added` one where it is now. Their unchanged parts moved as
    they were. `move` is 0 for other segments.
    """

    number: int
    kind: SegmentKind
    gold: Parts
    perturbed: Parts
    move: int = 0


@dataclass(frozen=True)
class Difference:
    """The result of `compare`.

    segments: the gold parts, joined in order, give the gold text, and the perturbed parts the
        perturbed text.
    edit_size: characters (code points) in changed parts divided by those of both texts, 0 to 1;
        0 for equal texts, also for two empty ones, and 1 if only one of the two is empty. Text that
        moved unchanged counts once, where it is now.
    place: characters of the gold text before the first change divided by all of its characters, 0
        to 1; 1 if the perturbed text only adds to the end, 0 for an empty gold text, None for equal
        texts.
    white_space_only: True if the texts differ but consist of the same words, separated by white
        space. ("every day" and "everyday" differ in words.)
    algorithm: the version that computed it.
    """

    segments: tuple[Segment, ...]
    edit_size: float
    place: float | None
    identical: bool
    white_space_only: bool
    algorithm: str = ALGORITHM


@dataclass(frozen=True)
class Piece:
    """A part of one segment within one line of one side, including the line break if it has one.

    start: characters of the segment on this side before it.
    """

    text: str
    changed: bool
    kind: SegmentKind
    number: int
    start: int = 0


@dataclass(frozen=True)
class SideBySideRow:
    """One line of each side. A side without pieces has no line in this row (even a blank line has a
    piece: its line break)."""

    gold: tuple[Piece, ...]
    perturbed: tuple[Piece, ...]


# ---------------------------------------------------------------------------------------- public


def compare(gold: str, perturbed: str) -> Difference:
    """Compare two texts; the result is the same on every machine.

    Takes about a millisecond for answers of 2,000 characters, and some tenths of a second for
    100,000 with a fifth of the words changed. A section that is too large to align and has no
    passage in common becomes one change.
    """
    return _difference(tuple(_segments(gold, perturbed)))


def to_json(difference: Difference) -> dict[str, Any]:
    """Return the difference as plain JSON data, which is only a little larger than the texts.

    `segments` has a string for an equal segment, otherwise a pair [gold, perturbed] of lists of
    strings, which are unchanged and changed by turns. The first string is unchanged ("" if the
    segment begins with a change). A segment of a move has the number of the move as a third entry.
    """
    return {
        "algorithm": difference.algorithm,
        "segments": [_pack(segment) for segment in difference.segments],
    }


def from_json(data: dict[str, Any]) -> Difference:
    """Read what `to_json` returned. Raises `ValueError` if an unknown algorithm computed it."""
    algorithm = data.get("algorithm")
    if algorithm not in READABLE_ALGORITHMS:
        raise ValueError(f"The diff was computed by {algorithm!r}, which this version cannot read.")
    segments = tuple(_unpack(n, packed) for n, packed in enumerate(data["segments"]))
    return _difference(segments, algorithm)


def align_lines(difference: Difference) -> tuple[SideBySideRow, ...]:
    """Return the two texts line by line, side by side. Every piece is in exactly one row.

    Equal lines share a row. Lines of a change are paired in order. Extra lines of one side have an
    empty cell beside them, so that the text after the change is aligned again. In such a change, a
    line of the shorter side may continue in a later row, but a list item stays whole. Two empty
    texts give no rows, and very many lines one row: no page holds a row for each.
    """
    if _count_breaks(difference) > MOST_ROWS:
        return (
            SideBySideRow(*(tuple(_whole(difference, side)) for side in ("gold", "perturbed"))),
        )
    made: list[SideBySideRow] = []
    gold, perturbed = _Line(), _Line()
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
    if len(gold) + len(perturbed) > MAX_COMPARED_LENGTH and gold != perturbed:
        yield _segment(0, _parts([(gold, True)]), _parts([(perturbed, True)]))
        return
    alignment = Alignment(gold, perturbed)
    spans = settle_moves(alignment)
    moves = _ends_of_moves(spans)
    drawn: list[tuple[Parts, Parts, int]] = []
    for span in spans:
        left = alignment.gold.text(span.a, span.b)
        right = alignment.perturbed.text(span.c, span.d)
        if span.equal:
            drawn.append((*_equal(left), 0))
        elif span.move in moves:
            gone, come = moves[span.move]
            sides = _compare_ends(alignment, gone, come)
            drawn.append((sides[0], (), span.move) if left else ((), sides[1], span.move))
        elif span.is_whole or span.is_plain:
            drawn.append((_parts([(left, True)]), _parts([(right, True)]), 0))
        else:
            drawn.append((*_refine(left, right), 0))
    yield from _with_ends(drawn, alignment.head, alignment.tail)


def _with_ends(drawn: list[tuple[Parts, Parts, int]], head: str, tail: str) -> Iterator[Segment]:
    """Number the segments, with the equal text before and after them in the first and the last."""
    if head:
        if drawn and _is_equal(*drawn[0]):
            head += drawn.pop(0)[0][0].text
        drawn.insert(0, (*_equal(head), 0))
    if tail:
        if drawn and _is_equal(*drawn[-1]):
            tail = drawn.pop()[0][0].text + tail
        drawn.append((*_equal(tail), 0))
    for number, (gold, perturbed, move) in enumerate(drawn):
        yield _segment(number, gold, perturbed, move)


def _equal(text: str) -> tuple[Parts, Parts]:
    return ((Part(text, False),),) * 2


def _is_equal(gold: Parts, perturbed: Parts, move: int) -> bool:
    return not move and not any(part.changed for part in gold + perturbed)


def _ends_of_moves(spans: list[Span]) -> dict[int, tuple[Span, Span]]:
    """Return the two ends of each move by its number. A move whose ends came together is none."""
    gone = {span.move: span for span in spans if span.move and span.c == span.d}
    come = {span.move: span for span in spans if span.move and span.a == span.b}
    return {move: (gone[move], come[move]) for move in gone if move in come}


def _compare_ends(alignment: Alignment, gone: Span, come: Span) -> tuple[Parts, Parts]:
    """Return the parts of both ends of a move; what changed on the way is marked."""
    gold, perturbed = alignment.gold, alignment.perturbed
    if gold.text(gone.a, gone.b).strip() == perturbed.text(come.c, come.d).strip():
        left, right = gold.text(gone.a, gone.b), perturbed.text(come.c, come.d)
        return (Part(left, False),), (Part(right, False),)
    sides: tuple[list[Part], list[Part]] = [], []
    for span in alignment.trim(alignment.align_words(gone.a, gone.b, come.c, come.d)):
        left, right = gold.text(span.a, span.b), perturbed.text(span.c, span.d)
        parts = _equal(left) if span.equal else _refine(left, right)
        sides[0].extend(parts[0])
        sides[1].extend(parts[1])
    left_parts, right_parts = (_parts((p.text, p.changed) for p in side) for side in sides)
    return left_parts, right_parts


def _segment(number: int, gold: Parts, perturbed: Parts, move: int = 0) -> Segment:
    kind: SegmentKind = "changed"
    if not perturbed:
        kind = "removed"
    elif not gold:
        kind = "added"
    elif not any(part.changed for part in gold + perturbed):
        kind = "equal"
    return Segment(number, kind, gold, perturbed, move)


def _difference(segments: tuple[Segment, ...], algorithm: str = ALGORITHM) -> Difference:
    gold = "".join(part.text for segment in segments for part in segment.gold)
    perturbed = "".join(part.text for segment in segments for part in segment.perturbed)
    changed = sum(
        len(part.text)
        for segment in segments
        for part in segment.gold + segment.perturbed
        if part.changed or (segment.move and segment.kind == "added")
    )
    identical = gold == perturbed
    return Difference(
        segments=segments,
        edit_size=changed / (len(gold) + len(perturbed)) if changed else 0.0,
        place=None if identical else _before_change(segments) / max(1, len(gold)),
        identical=identical,
        white_space_only=not identical and gold.split() == perturbed.split(),
        algorithm=algorithm,
    )


def _before_change(segments: tuple[Segment, ...]) -> int:
    """Return the number of characters of the gold text before the first change."""
    total = 0
    for segment in segments:
        if segment.move:
            return total
        if segment.kind != "equal":
            return total + min(_unchanged_start(segment.gold), _unchanged_start(segment.perturbed))
        total += len(segment.gold[0].text)
    return total


def _unchanged_start(parts: Parts) -> int:
    return len(parts[0].text) if parts and not parts[0].changed else 0


def _pack(segment: Segment) -> Any:
    if segment.kind == "equal":
        return segment.gold[0].text
    sides = [
        ([""] if side and side[0].changed else []) + [part.text for part in side]
        for side in (segment.gold, segment.perturbed)
    ]
    return [*sides, segment.move] if segment.move else sides


def _unpack(number: int, packed: Any) -> Segment:
    if isinstance(packed, str):
        return _segment(number, *_equal(packed))
    left, right, *move = packed
    gold, perturbed = (
        _parts((text, place % 2 == 1) for place, text in enumerate(side)) for side in (left, right)
    )
    return _segment(number, gold, perturbed, *move)


# ------------------------------------------------------------------------------------------ rows


def _count_breaks(difference: Difference) -> int:
    """Return the number of line breaks of both texts."""
    parts = (part for segment in difference.segments for part in segment.gold + segment.perturbed)
    return sum(part.text.count("\n") + part.text.count("\r") for part in parts)


def _whole(difference: Difference, side: Literal["gold", "perturbed"]) -> Iterator[Piece]:
    """Yield the pieces of one text, which are not cut into lines."""
    for segment in difference.segments:
        start = 0
        for part in segment.gold if side == "gold" else segment.perturbed:
            yield Piece(part.text, part.changed, segment.kind, segment.number, start)
            start += len(part.text)


class _Line(list[Piece]):
    """The pieces of a line, and whether they have a letter. A line of very many pieces is never
    looked through or copied again, which would take as many times as long."""

    has_letter = False

    def add(self, piece: Piece) -> None:
        self.append(piece)
        self.has_letter = self.has_letter or any(map(str.isalpha, piece.text))


def _paired_lines(segment: Segment, gold: _Line, perturbed: _Line) -> list[tuple[_Line, _Line]]:
    """Return the lines of a segment side by side; its first lines continue those of the open row,
    which grow by it.

    The last line of each side has no line break yet; the last row, which contains both, stays open.
    """
    begun = gold.has_letter, perturbed.has_letter
    left = _lines(segment, segment.gold, gold)
    right = _lines(segment, segment.perturbed, perturbed)
    height = max(len(left), len(right))
    return list(
        zip(_pad_lines(left, height, begun[0]), _pad_lines(right, height, begun[1]), strict=True)
    )


def _pad_lines(lines: list[_Line], height: int, has_letter: bool) -> list[_Line]:
    """Return the lines, padded to `height` with blank lines before the last line.

    The blank lines follow the last line if it is the only one and has text in the open row. A list
    mark or an indentation does not count as text, so that a list item stays in one row.
    """
    blanks = [_Line() for _ in range(height - len(lines))]
    if len(lines) == 1 and has_letter:
        return lines + blanks
    return lines[:-1] + blanks + lines[-1:]


def _lines(segment: Segment, parts: Parts, begun: _Line) -> list[_Line]:
    """Split the parts after each line break, the first line going on from the one that was begun;
    the last line has no break and may be empty."""
    lines = [begun]
    start = 0
    for part in parts:
        for text in re.findall(r"[^\r\n]*(?:\r\n|[\r\n])|[^\r\n]+", part.text):
            lines[-1].add(Piece(text, part.changed, segment.kind, segment.number, start))
            start += len(text)
            if text[-1] in "\r\n":
                lines.append(_Line())
    return lines
