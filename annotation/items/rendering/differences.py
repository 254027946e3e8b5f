"""Draws the difference of two texts as safe HTML: removed text in `del`, added text in `ins`.

The changed characters inside a changed word are in `b`, and a changed number, unit or negation is
in `mark`. For a change of white space only, `data-blank` names the characters. The style sheet
draws them, so the text itself is unchanged. Every element has the number of its segment in
`data-change`, so that a key can jump to it, and the kinds of the change in `data-mark`;
`data-badge` has the sign of a kind. The two ends of a moved passage have `data-move`, "from" where
it was and "to" where it is now, and `data-where` says in words where the other end is.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from annotation.items.diffing.difference import (
    Difference,
    Part,
    Piece,
    Segment,
    SideBySideRow,
    align_lines,
)
from annotation.items.rendering import change_kinds, invisible_characters, texts
from annotation.items.rendering.change_kinds import MarkedWord, Side
from annotation.items.rendering.invisible_characters import SignNamer
from annotation.items.rendering.texts import Format

BADGES: dict[change_kinds.ChangeKind, str] = {
    "negation": "¬", "number": "#", "unit": "u", "moved": "⇅", "white-space": "␣",
    "formatting": "¶",
}  # fmt: skip

LONG_TEXT = 20_000
"""Characters from which a text is cut into chunks, so that only visible ones are laid out."""

CHUNK_LENGTH = 2_000

EXCERPT_LENGTH = 80
"""Characters of each side of a change in the list of changes."""

CONTEXT_LENGTH = 28
"""Characters of the unchanged text next to a change in that list."""

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
        return {number: kept for one in self.changes for number, kept in _attributes(one)}

    @cached_property
    def words(self) -> dict[int, Mapping[Side, tuple[MarkedWord, ...]]]:
        """The words to mark in each change, by segment number and side."""
        return {change.number: change.words for change in self.changes if change.words}

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
        names = SignNamer()
        return "\n".join(self._row(row, names) for row in align_lines(self.difference))

    def render_side(self, side: Side, form: Format, *, beside: bool = False) -> str:
        """Return one of the texts in this format, with its changes marked. `beside`: the other text
        is beside it, so that removed text is marked as such."""
        stretches: list[texts.Stretch] = []
        drawn: list[tuple[int, MarkedWord | None, bool]] = []
        for segment in self.difference.segments:
            parts = _side(segment, side)
            if segment.kind == "equal":
                stretches.append((_text(parts), None))
                continue
            if not segment.move:  # changed characters are only marked inside a moved passage
                parts = (Part(_text(parts), False),)
            start, words = 0, self._words(segment.number, side)
            for part in parts:
                for piece, word in _cut_at_words(part.text, start, words):
                    stretches.append((piece, len(drawn)))
                    drawn.append((segment.number, word, part.changed))
                start += len(part.text)
        said: set[int] = set()

        def draw(at: int, safe: str) -> str:
            number, word, changed = drawn[at]
            attributes = self.attributes[number]
            if number in said:  # a change in several elements says once where it moved
                attributes = attributes.partition(" data-where=")[0]
            said.add(number)
            if not safe:
                return "" if beside else f'<span class="gap"{attributes}></span>'
            if side == "gold" and not beside:
                return f'<span class="spot"{attributes}>{safe}</span>'
            inner = f"<b>{safe}</b>" if changed else _render_word(word, safe)
            return f"<{_TAGS[side]}{attributes}>{inner}</{_TAGS[side]}>"

        return texts.render_marked(stretches, form, draw)

    def columns(self, form: Format) -> str:
        """Both texts in this format, beside each other."""
        gold, perturbed = (
            self.render_side(side, form, beside=True) for side in ("gold", "perturbed")
        )
        return f'<div class="prose">{gold}</div><div class="prose">{perturbed}</div>'

    def raw(self) -> str:
        """The perturbed text with its white space drawn, except single spaces of a long text."""
        return _joined(self._raw(), self.length)

    def strip(self) -> str:
        """The positions of the changes in the text, as the shapes of an SVG of 10 by 1,000."""
        marked = [(change.offset, change.number, change) for change in self.changes]
        for change in self.changes:
            if change.other_end:
                number, offset = change.other_end
                marked.append((offset, number, change))
        marked.sort(key=lambda one: one[:2])
        places = groupby(marked, lambda one: STRIP_STEPS * one[0] // max(1, self.length))
        return "".join(_place(place, [*found]) for place, found in places)

    def _inline(self) -> Iterator[str | None]:
        names = SignNamer()
        for segment in self.difference.segments:
            if segment.kind == "equal":
                yield from _lines(segment.gold[0].text, names)
                continue
            yield self._marked("gold", segment.gold, segment.number, names)
            yield self._marked("perturbed", segment.perturbed, segment.number, names)
            if segment.kind in ("removed", "added"):
                yield f'<span class="gap {segment.kind}"{self.attributes[segment.number]}></span>'

    def _raw(self) -> Iterator[str | None]:
        whole, at, names = self.text("perturbed"), 0, SignNamer()
        for text, number in self._stretches("perturbed"):
            begin, at = at, at + len(text)
            beside = {"before": whole[max(0, begin - 1) : begin], "after": whole[at : at + 1]}
            drawn = names.render_raw(text, sparing=self.length >= LONG_TEXT, **beside)
            if number is None:
                yield from _drawn_lines(drawn)
            else:
                yield f'<span class="spot"{self.attributes[number]}>{drawn}</span>'

    def _stretches(self, side: Side) -> list[texts.Stretch]:
        return [
            (_text(_side(segment, side)), None if segment.kind == "equal" else segment.number)
            for segment in self.difference.segments
        ]

    def _words(self, number: int, side: Side) -> tuple[MarkedWord, ...]:
        words = self.words.get(number)
        return words[side] if words and side in words else ()

    def _marked(
        self, side: Side, parts: Iterable[Part | Piece], number: int, names: SignNamer
    ) -> str:
        parts = tuple(parts)
        if not parts:
            return ""
        tag, text = _TAGS[side], _text(parts)
        start = parts[0].start if isinstance(parts[0], Piece) else 0
        safe = _render_parts(parts, start, self._words(number, side), names)
        return f"<{tag}{self.attributes[number]}{_blank(text)}{_short(text)}>{safe}</{tag}>"

    def _row(self, row: SideBySideRow, names: SignNamer) -> str:
        numbers = {piece.number for piece in row.gold + row.perturbed if piece.kind != "equal"}
        changed = ""
        if numbers:
            folds = all("data-folds" in self.attributes[number] for number in numbers)
            changed = " data-changed data-folds" if folds else " data-changed"
        cells = self._cell("gold", row.gold, names), self._cell("perturbed", row.perturbed, names)
        left, right = (f'<td role="cell" dir="auto">{cell}</td>' for cell in cells)
        return f'<tr role="row"{changed}>{left}{right}</tr>'

    def _cell(self, side: Side, pieces: tuple[Piece, ...], names: SignNamer) -> str:
        segments = groupby(pieces, lambda piece: (piece.number, piece.kind))
        return "".join(
            names.escape(_text(group))
            if kind == "equal"
            else self._marked(side, group, number, names)
            for (number, kind), group in segments
        )


def render_plain(text: str) -> str:
    """A text without formatting, in chunks if it is long."""
    return _joined(_lines(text, SignNamer()), len(text))


def render_excerpt(change: change_kinds.ClassifiedChange) -> str:
    """Return the removed and the added text of a change, each cut to `EXCERPT_LENGTH` characters;
    of a passage that moved unchanged, the text once."""
    sides: list[tuple[Side, str]] = [("gold", change.gold), ("perturbed", change.perturbed)]
    attributes = _marks(change)
    if change.other_end:
        where = "down" if change.kind == "removed" else "up"
        attributes += f' data-move="to" data-where="moved {where}"'
        sides = sides[change.gold.strip() == change.perturbed.strip() :]
    return " ".join(
        f"<{_TAGS[side]}{attributes}{_blank(text)}>"
        f"{_excerpt(text, change.words.get(side, ()))}</{_TAGS[side]}>"
        for side, text in sides
        if text
    )


def words_around(difference: Difference, number: int) -> tuple[str, str]:
    """Return the unchanged words before and after a change on its line, each at most
    `CONTEXT_LENGTH` characters; "" where a line or another change begins."""
    segments = difference.segments
    before, after = (
        _text(segments[place].gold)
        if 0 <= place < len(segments) and segments[place].kind == "equal"
        else ""
        for place in (number - 1, number + 1)
    )
    before, after = before.rpartition("\n")[2], after.partition("\n")[0]
    if len(before) > CONTEXT_LENGTH:
        before = f"… {before[-CONTEXT_LENGTH:].partition(' ')[2]}"
    if len(after) > CONTEXT_LENGTH:
        after = f"{after[:CONTEXT_LENGTH].rpartition(' ')[0]} …"
    return before, after


def _excerpt(text: str, words: Sequence[MarkedWord]) -> str:
    shown = _truncate(text)
    whole = [word for word in words if word.end <= len(shown)]
    return _render_parts((Part(shown, True),), 0, whole, SignNamer())


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


def _short(text: str) -> str:
    """Return the attribute of a text of signs or of one character: a minus, a dot or a 1 that is
    struck through cannot be read."""
    is_word = len(text.strip()) > 1 and any(map(str.isalnum, text))
    return "" if text.isspace() or is_word else " data-short"


def _attributes(change: change_kinds.ClassifiedChange) -> Iterator[tuple[int, str]]:
    """Yield the number of the change's segment with the attributes of its elements; of a move, both
    ends."""
    folds = " data-folds" if change.folds else ""
    attributes = f"{_marks(change)}{folds}"
    if not change.other_end:
        yield change.number, f' data-change="{change.number}"{attributes}'
        return
    was_above = change.kind == "removed"
    where = {
        "from": f"moved {'down' if was_above else 'up'}",
        "to": f"moved here from {'above' if was_above else 'below'}",
    }
    ends = ("from", "to") if was_above else ("to", "from")
    for number, end in zip((change.number, change.other_end[0]), ends, strict=True):
        move = f' data-move="{end}" data-where="{where[end]}"'
        yield number, f' data-change="{number}"{attributes}{move}'


def _marks(change: change_kinds.ClassifiedChange) -> str:
    """Return the kinds of a change as an attribute, and the badge of a change that has no marked
    words."""
    if not change.marks:
        return ""
    kinds = f' data-mark="{" ".join(change.marks)}"'
    if not change.folds:
        return kinds
    return f'{kinds} data-badge="{"".join(BADGES[mark] for mark in change.marks)}"'


def _side(segment: Segment, side: Side) -> tuple[Part, ...]:
    return segment.gold if side == "gold" else segment.perturbed


def _text(parts: Iterable[Part | Piece]) -> str:
    return "".join([part.text for part in parts])


def _render_parts(
    parts: Sequence[Part | Piece], start: int, words: Sequence[MarkedWord], names: SignNamer
) -> str:
    """Return the parts, with changed parts marked unless all parts are changed, and these words
    marked. The first part begins at `start` of its change."""
    strong = not all(part.changed for part in parts)
    if not strong and not words:
        return names.escape(_text(parts))
    pieces: list[tuple[MarkedWord | None, str]] = []
    for part in parts:
        for text, word in _cut_at_words(part.text, start, words):
            safe = names.escape(text)
            pieces.append((word, f"<b>{safe}</b>" if strong and part.changed else safe))
        start += len(part.text)
    grouped = groupby(pieces, key=lambda piece: piece[0])
    return "".join(
        _render_word(word, "".join(safe for _, safe in group)) for word, group in grouped
    )


def _cut_at_words(
    text: str, start: int, words: Sequence[MarkedWord]
) -> Iterator[tuple[str, MarkedWord | None]]:
    """Yield the pieces of a text, which begins at `start` of its change, each with the word that it
    belongs to; `words` are in the order of the text. An empty text is one piece."""
    at, end = 0, start + len(text)
    # A change may have thousands of lines with words; each line looks at its own alone.
    for number in range(bisect_right(words, start, key=_word_end), len(words)):
        word = words[number]
        if word.start >= end:
            break
        first, last = max(word.start - start, 0), min(word.end - start, len(text))
        if first >= last:
            continue
        if at < first:
            yield text[at:first], None
        yield text[first:last], word
        at = last
    if at < len(text) or not text:
        yield text[at:], None


def _word_end(word: MarkedWord) -> int:
    return word.end


def _render_word(word: MarkedWord | None, safe: str) -> str:
    if word is None:
        return safe
    return f'<mark data-kind="{word.kind}" data-badge="{BADGES[word.kind]}">{safe}</mark>'


def _lines(text: str, names: SignNamer) -> Iterator[str | None]:
    """The lines of a text, with `_CUT` after each line break."""
    for line in text.splitlines(keepends=True):
        yield names.escape(line)
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


def _place(place: int, changes: list[tuple[int, int, change_kinds.ClassifiedChange]]) -> str:
    found = {mark for *_, change in changes for mark in change.marks}
    kinds = " ".join(mark for mark in change_kinds.CHANGE_KINDS if mark in found)
    folds = " data-folds" if all(change.folds for *_, change in changes) else ""
    removes = " data-removes" if all(change.kind == "removed" for *_, change in changes) else ""
    y = place * 1000 // STRIP_STEPS
    return (
        f'<rect x="0" y="{y}" width="10" height="{1000 // STRIP_STEPS}"'
        f' data-place="{changes[0][1]}" data-mark="{kinds}"{folds}{removes}/>'
    )
