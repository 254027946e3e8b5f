"""Draws the difference of two texts as safe HTML: removed text in `del`, added text in `ins`.

The changed characters inside a changed word are in `b`. For a change of white space only,
`data-blank` names the characters. The style sheet draws them, so the text itself is unchanged.
Every element has the number of its change in `data-change`, so that a key can jump to it. The kinds
of the change are in `data-mark`, and their letters in `data-badge`.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Literal

from annotation.items.diffing.difference import (
    Difference,
    Part,
    Piece,
    Segment,
    SegmentKind,
    SideBySideRow,
    align_lines,
)
from annotation.items.rendering import change_kinds, invisible_characters, texts
from annotation.items.rendering.texts import Format

Side = Literal["gold", "perturbed"]

BADGES: dict[change_kinds.ChangeKind, str] = {
    "negation": "¬", "number": "#", "unit": "u", "white-space": "␣", "formatting": "¶",
}  # fmt: skip

LONG_TEXT = 20_000
"""Characters from which a text is cut into chunks, so that only visible ones are laid out."""

CHUNK_LENGTH = 2_000

EXCERPT_LENGTH = 80
"""Characters of each side of a change in the list of changes."""

STRIP_STEPS = 250
"""Steps of the strip beside a text; changes within one step share a mark."""

_TAGS: dict[Side, str] = {"gold": "del", "perturbed": "ins"}
_LINE_DRAWN = re.compile("(?<=\n</i>)")
_CUT = None
"""Marks a position after a line where a text may be cut into chunks."""


@dataclass(frozen=True)
class DifferenceRenderer:
    """Draws all views of a difference. Changes and attributes are computed once for all of them."""

    difference: Difference

    @cached_property
    def changes(self) -> tuple[change_kinds.ClassifiedChange, ...]:
        """The changes with their marks, in the order of the text; computed once."""
        return change_kinds.classify_changes(self.difference)

    @cached_property
    def attributes(self) -> dict[int, str]:
        """The attributes of the elements of each change, by segment number."""
        return {change.number: _attributes(change) for change in self.changes}

    @cached_property
    def length(self) -> int:
        """The number of characters in the inline view."""
        segments = self.difference.segments
        return sum(
            len(_text(segment.gold)) + len(_text(segment.perturbed)) * (segment.kind != "equal")
            for segment in segments
        )

    def text(self, side: Side) -> str:
        """The whole text of one side, without marks."""
        return "".join(_text(_side(segment, side)) for segment in self.difference.segments)

    def inline(self) -> str:
        """Both texts merged into one: each change shows the removed text, then the added text.

        If one text has nothing at a change, an empty element marks the place in views of only that
        text.
        """
        return _joined(self._inline(), self.length)

    def sides(self) -> str:
        """Table rows with a line of the gold text on the left and a line of the perturbed text on
        the right."""
        return "\n".join(self._row(row) for row in align_lines(self.difference))

    def render_side(self, side: Side, form: Format) -> str:
        """Return one of the texts in this format, with its changes marked."""
        return texts.render_marked(self._stretches(side), form, self._drawn(side))

    def raw(self) -> str:
        """The perturbed text with its white space drawn, except single spaces of a long text."""
        return _joined(self._raw(), self.length)

    def strip(self) -> str:
        """The positions of the changes in the text, as the shapes of an SVG of 10 by 1,000."""
        places = groupby(
            self.changes, lambda change: STRIP_STEPS * change.offset // max(1, self.length)
        )
        return "".join(_place(place, [*changes]) for place, changes in places)

    def _inline(self) -> Iterator[str | None]:
        for segment in self.difference.segments:
            if segment.kind == "equal":
                yield from _lines(segment.gold[0].text)
                continue
            yield self._marked("gold", segment.gold, segment.number)
            yield self._marked("perturbed", segment.perturbed, segment.number)
            if segment.kind in ("removed", "added"):
                yield f'<span class="gap {segment.kind}"{self.attributes[segment.number]}></span>'

    def _raw(self) -> Iterator[str | None]:
        whole, at = self.text("perturbed"), 0
        for text, number in self._stretches("perturbed"):
            begin, at = at, at + len(text)
            beside = {"before": whole[max(0, begin - 1) : begin], "after": whole[at : at + 1]}
            drawn = invisible_characters.render_raw(
                text, sparing=self.length >= LONG_TEXT, **beside
            )
            if number is None:
                yield from _drawn_lines(drawn)
            else:
                yield f'<span class="spot"{self.attributes[number]}>{drawn}</span>'

    def _stretches(self, side: Side) -> list[texts.Stretch]:
        return [
            (_text(_side(segment, side)), None if segment.kind == "equal" else segment.number)
            for segment in self.difference.segments
        ]

    def _drawn(self, side: Side) -> texts.Draw:
        def draw(number: int, safe: str) -> str:
            attributes = self.attributes[number]
            if not safe:
                return f'<span class="gap"{attributes}></span>'
            if side == "gold":
                return f'<span class="spot"{attributes}>{safe}</span>'
            return f"<ins{attributes}>{safe}</ins>"

        return draw

    def _marked(self, side: Side, parts: Iterable[Part | Piece], number: int) -> str:
        parts = tuple(parts)
        if not parts:
            return ""
        tag, blank = _TAGS[side], _blank(_text(parts))
        return f"<{tag}{self.attributes[number]}{blank}>{_render_parts(parts)}</{tag}>"

    def _row(self, row: SideBySideRow) -> str:
        numbers = {piece.number for piece in row.gold + row.perturbed if piece.kind != "equal"}
        changed = ""
        if numbers:
            folds = all("data-folds" in self.attributes[number] for number in numbers)
            changed = " data-changed data-folds" if folds else " data-changed"
        cells = self._cell("gold", row.gold), self._cell("perturbed", row.perturbed)
        left, right = (f'<td role="cell" dir="auto">{cell}</td>' for cell in cells)
        return f'<tr role="row"{changed}>{left}{right}</tr>'

    def _cell(self, side: Side, pieces: tuple[Piece, ...]) -> str:
        segments = groupby(pieces, lambda piece: (piece.number, piece.kind))
        return "".join(self._stretch(side, *segment, group) for segment, group in segments)

    def _stretch(self, side: Side, number: int, kind: SegmentKind, pieces: Iterable[Piece]) -> str:
        if kind == "equal":
            return invisible_characters.escape_text(_text(pieces))
        return self._marked(side, pieces, number)


def render_plain(text: str) -> str:
    """A text without formatting, in chunks if it is long."""
    return _joined(_lines(text), len(text))


def render_excerpt(change: change_kinds.ClassifiedChange) -> str:
    """Return the removed and the added text of a change, each cut to `EXCERPT_LENGTH`
    characters."""
    sides = (("del", change.gold), ("ins", change.perturbed))
    marked = _marks(change)
    return " ".join(
        f"<{tag}{marked}{_blank(text)}>{invisible_characters.escape_text(_truncate(text))}</{tag}>"
        for tag, text in sides
        if text
    )


def _truncate(text: str) -> str:
    """A text cut to `EXCERPT_LENGTH` characters, without separating a letter from its marks."""
    if len(text) <= EXCERPT_LENGTH:
        return text
    end = EXCERPT_LENGTH
    while end > 1 and unicodedata.category(text[end])[0] in "MC":
        end -= 1
    return f"{text[:end].rstrip()} …"


def _blank(text: str) -> str:
    return f' data-blank="{invisible_characters.draw_blanks(text)}"' if text.isspace() else ""


def _attributes(change: change_kinds.ClassifiedChange) -> str:
    folds = " data-folds" if change.folds else ""
    return f' data-change="{change.number}"{_marks(change)}{folds}'


def _marks(change: change_kinds.ClassifiedChange) -> str:
    badge = "".join(BADGES[mark] for mark in change.marks)
    return f' data-mark="{" ".join(change.marks)}" data-badge="{badge}"' if badge else ""


def _side(segment: Segment, side: Side) -> tuple[Part, ...]:
    return segment.gold if side == "gold" else segment.perturbed


def _text(parts: Iterable[Part | Piece]) -> str:
    return "".join([part.text for part in parts])


def _render_parts(parts: Sequence[Part | Piece]) -> str:
    """Return the parts, with changed parts marked unless all parts are changed."""
    if all(part.changed for part in parts):
        return invisible_characters.escape_text(_text(parts))
    safe = ((invisible_characters.escape_text(part.text), part.changed) for part in parts)
    return "".join(f"<b>{text}</b>" if changed else text for text, changed in safe)


def _lines(text: str) -> Iterator[str | None]:
    """The lines of a text, with `_CUT` after each line break."""
    for line in text.splitlines(keepends=True):
        yield invisible_characters.escape_text(line)
        if line[-1] == "\n":
            yield _CUT


def _drawn_lines(drawn: str) -> Iterator[str | None]:
    """Yield the lines of a text with visible white space, with `_CUT` between the lines."""
    first, *others = _LINE_DRAWN.split(drawn)
    yield first
    for line in others:
        yield _CUT
        yield line


def _joined(pieces: Iterable[str | None], length: int) -> str:
    """Join the pieces; from `LONG_TEXT` characters on, put them in chunks of about
    `CHUNK_LENGTH`."""
    if length < LONG_TEXT:
        return "".join(filter(None, pieces))
    chunks: list[list[str]] = [[]]
    size = 0
    for piece in pieces:
        if piece is not _CUT:
            chunks[-1].append(piece)
            size += len(piece)
        elif size >= CHUNK_LENGTH:
            chunks.append([])
            size = 0
    if len(chunks) == 1:  # no gain: the browser lays out all of it anyway
        return "".join(chunks[0])
    return "".join(f'<div class="chunk">{"".join(chunk)}</div>' for chunk in chunks if chunk)


def _place(place: int, changes: list[change_kinds.ClassifiedChange]) -> str:
    found = {mark for change in changes for mark in change.marks}
    kinds = " ".join(mark for mark in change_kinds.CHANGE_KINDS if mark in found)
    folds = " data-folds" if all(change.folds for change in changes) else ""
    y = place * 1000 // STRIP_STEPS
    return (
        f'<rect x="0" y="{y}" width="10" height="{1000 // STRIP_STEPS}"'
        f' data-place="{changes[0].number}" data-mark="{kinds}"{folds}/>'
    )
