"""Markers of changes that survive Markdown: private characters that become elements in the HTML.

Markdown rewrites a text, so character offsets cannot locate its changes in the HTML. Each change is
put between two private markers before rendering, and the markers are found again afterwards. They
are placed where they do not affect the rendering: within one line and one table cell, and after the
signs of a list, a heading or emphasis. A pair that is not complete in the text of one block is
dropped.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

_START, _STOP, _END = "\U0010ff00", "\U0010ff01", "\U0010ff02"
_DIGITS = [chr(0x10FF10 + digit) for digit in range(10)]
_PRIVATE_SIGNS = re.compile("[\U0010ff00-\U0010ff1f]")
_SENTINEL = re.compile(f"[{_START}{_STOP}][{''.join(_DIGITS)}]+{_END}")
_SENTINEL_WHOLE = re.compile(f"({_SENTINEL.pattern})")
_TAG = re.compile(r'(<span [^<>"]*(?:"[^"]*"[^<>"]*)*>[^<]*</span>|<(?:[^<>"]|"[^"]*")*>)')
_BLOCK = re.compile(r"</?(?:blockquote|br|hr|li|ol|p|pre|table|tbody|td|th|thead|tr|ul)\b")

# The start of a list item, heading, quotation or table row, and lines that contain only structure.
_PREFIX = re.compile(r"(?:[ \t]*(?:>|\|(?!\|)|(?:[-*+]|\d{1,9}[.)]|#{1,6})(?=[ \t]|$)))*[ \t]*")
_STRUCTURE = re.compile(
    r"[ \t>]*(?:(?:```|~~~).*|([-=*_])(?:[ \t]*\1)*|[|:\-+ \t]*|\$\$|\\[\[\]]|\[[^\]]*\]:.*)"
    r"[ \t]*\r?$"
)
_DELIMITERS = " \t\r*_~`|"

Draw = Callable[[int, str], str]


def escape_markers(text: str) -> str:
    """The text without characters of its own that look like markers; U+FFFD replaces them."""
    return _PRIVATE_SIGNS.sub("\ufffd", text)


def strip_markers(text: str) -> str:
    return _PRIVATE_SIGNS.sub("", text)


def insert_markers(stretches: Sequence[tuple[str, int | None]]) -> str:
    """The joined stretches with markers around those that have a number."""
    parts = [escape_markers(part) for part, _ in stretches]
    text, ends = "".join(parts), [*accumulate(map(len, parts))]
    lines = _line_ends(text)
    made: list[str] = []
    done = 0
    for (_, number), part, end in zip(stretches, parts, ends, strict=True):
        if number is None:
            continue
        for start, stop in _places(text, end - len(part), end, lines):
            if start >= done:
                made += [text[done:start], _sign(_START, number), text[start:stop]]
                made.append(_sign(_STOP, number))
                done = stop
    return "".join([*made, text[done:]])


def extract_markers(source: str) -> tuple[str, str, str]:
    """The opening markers in a source, the source without markers, and the closing markers."""
    found = [match[0] for match in _SENTINEL.finditer(source)]
    starts = "".join(sign for sign in found if sign[0] == _START)
    stops = "".join(sign for sign in found if sign[0] == _STOP)
    return starts, strip_markers(source), stops


def draw_marked(markup: str, draw: Draw) -> str:
    """The HTML with the text between each pair of markers drawn by `draw`, and no marker left."""
    pieces = [*_pieces(markup)]
    pairs = _pairs(pieces)
    made: list[str] = []
    number, stop = 0, -1
    for at, piece in enumerate(pieces):
        if at in pairs:
            number, stop = _number(piece), pairs[at]
            if stop == at + 1:
                made.append(draw(number, ""))
        elif not _SENTINEL.match(piece):
            shown = piece.startswith("<span ") or (piece.strip() and not piece.startswith("<"))
            made.append(draw(number, piece) if at < stop and shown else piece)
    return strip_markers("".join(made))


def _pieces(markup: str) -> Iterator[str]:
    """Tags, whole formulas, markers and the text between them, without empty pieces."""
    for at, piece in enumerate(_TAG.split(markup)):
        yield from filter(None, [piece] if at % 2 else _SENTINEL_WHOLE.split(piece))


def _sign(kind: str, number: int) -> str:
    return kind + "".join(_DIGITS[int(digit)] for digit in str(number)) + _END


def _number(sign: str) -> int:
    return int("".join(str(_DIGITS.index(digit)) for digit in sign[1:-1]))


def _pairs(pieces: list[str]) -> dict[int, int]:
    """The index of the closing marker by that of its opening marker, if no block lies between."""
    pairs: dict[int, int] = {}
    opened = -1
    for at, piece in enumerate(pieces):
        if _BLOCK.match(piece):
            opened = -1
        elif piece[:1] == _START:
            opened = at
        elif piece[:1] == _STOP:
            if opened >= 0 and _number(pieces[opened]) == _number(piece):
                pairs[opened] = at
            opened = -1
    return pairs


def _line_ends(text: str) -> list[int]:
    return [match.start() for match in re.finditer("\n", text)] + [len(text)]


def _places(text: str, start: int, end: int, lines: list[int]) -> Iterator[tuple[int, int]]:
    """Where markers may enclose text[start:end]: one (start, end) per line and table cell."""
    for at in range(bisect_right(lines, start - 1), len(lines)):
        first = lines[at - 1] + 1 if at else 0
        if first > end or (first == end and start < end):
            return
        line = text[first : lines[at]]
        if _STRUCTURE.match(line):
            continue
        begin = max(start, first + _prefix(line))
        yield from _cells(text, begin, min(end, lines[at]), gap=start == end)


def _prefix(line: str) -> int:
    match = _PREFIX.match(line)
    return match.end() if match else 0


def _cells(text: str, start: int, end: int, *, gap: bool) -> Iterator[tuple[int, int]]:
    if gap:
        place = start - 1 if text[start - 1 : start] == "\\" else start
        yield place, place
        return
    for cell in re.finditer(r"[^|]+", text[start:end]):
        first, last = start + cell.start(), start + cell.end()
        while first < last and text[first] in _DELIMITERS:
            first += 1
        while last > first and text[last - 1] in _DELIMITERS:
            last -= 1
        first -= text[first - 1 : first] == "\\" and first > start
        last -= text[last - 1 : last] == "\\"
        if first < last:
            yield first, last
