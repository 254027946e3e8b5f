"""How a difference of two texts is drawn: removed text in `del`, added in `ins`.

What changed inside a changed word stands in `b`. A stretch of nothing but white space names its
characters in `data-blank`, which the style sheet draws, so that the text itself stays as it is.
Every element carries the number of its change in `data-change`, so that a key can jump there.
"""

from collections.abc import Iterable
from itertools import groupby

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from annotation.diffing import Difference, Kind, Part, Piece, Row, Segment, rows

register = template.Library()

_TAGS = {"removed": "del", "added": "ins"}
_BLANKS = str.maketrans({" ": "·", "\t": "→", "\n": "↵", "\r": "↵"})


@register.simple_tag
def diff_inline(difference: Difference) -> SafeString:
    """Both texts as one: each change is what was removed, then what was added."""
    return format_html_join("", "{}", ((_segment(segment),) for segment in difference.segments))


@register.simple_tag
def diff_sides(difference: Difference) -> SafeString:
    """Table rows with a line of the gold text on the left and of the perturbed on the right."""
    return format_html_join("\n", "{}", ((_row(row),) for row in rows(difference)))


@register.filter
def change_count(difference: Difference) -> int:
    """In how many places the two texts differ."""
    return sum(segment.kind != "equal" for segment in difference.segments)


def _segment(segment: Segment) -> SafeString | str:
    if segment.kind == "equal":
        return segment.gold[0].text
    removed = _marked("removed", segment.gold, segment.number)
    return removed + _marked("added", segment.perturbed, segment.number)


def _marked(kind: str, parts: Iterable[Part | Piece], number: int) -> SafeString:
    parts = tuple(parts)
    if not parts:
        return SafeString()
    text = "".join(part.text for part in parts)
    return format_html(
        '<{} data-change="{}"{}>{}</{}>',
        _TAGS[kind],
        number,
        format_html(' data-blank="{}"', text.translate(_BLANKS)) if text.isspace() else "",
        _insides(parts),
        _TAGS[kind],
    )


def _insides(parts: tuple[Part | Piece, ...]) -> SafeString:
    """The parts, the changed ones marked unless all of them changed."""
    if all(part.changed for part in parts):
        return format_html_join("", "{}", ((part.text,) for part in parts))
    return format_html_join(
        "", "{}", ((format_html("<b>{}</b>", p.text) if p.changed else p.text,) for p in parts)
    )


def _row(row: Row) -> SafeString:
    changed = any(piece.kind != "equal" for piece in row.gold + row.perturbed)
    return format_html(
        "<tr{}><td>{}</td><td>{}</td></tr>",
        SafeString(" data-changed") if changed else "",
        _side("removed", row.gold),
        _side("added", row.perturbed),
    )


def _side(kind: str, pieces: tuple[Piece, ...]) -> SafeString:
    segments = groupby(pieces, lambda piece: (piece.number, piece.kind))
    return format_html_join(
        "", "{}", ((_stretch(kind, *segment, group),) for segment, group in segments)
    )


def _stretch(kind: str, number: int, segment: Kind, pieces: Iterable[Piece]) -> SafeString | str:
    if segment == "equal":
        return "".join(piece.text for piece in pieces)
    return _marked(kind, pieces, number)
