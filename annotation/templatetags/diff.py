"""Tags that show differences of two texts, rendered by `annotation.items.rendering.differences`."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django import template
from django.utils.safestring import SafeString, mark_safe

from annotation.items.diffing.difference import ALGORITHM, Difference
from annotation.items.rendering import change_kinds, differences
from annotation.items.rendering.differences import DifferenceRenderer

register = template.Library()


class ClaimPiece(NamedTuple):
    """A change that a claim is checked for. It stands for `others` more; `before` and `after` are
    the words next to it."""

    change: change_kinds.ClassifiedChange
    others: int
    before: str
    after: str


@register.simple_tag
def diff_inline(difference: Difference) -> SafeString:
    """Show both texts as one text: for each change, the removed text is followed by the added
    text."""
    return mark_safe(DifferenceRenderer(difference).inline())  # noqa: S308 (all of its text is escaped)


@register.simple_tag
def pieces_of(difference: Difference | None) -> tuple[ClaimPiece, ...]:
    """The changes that a claim is checked for, in order. All changes of formatting are one piece,
    as they are one stop for the reader; on a diff of the former algorithm, each was a piece of its
    own."""
    if not difference:  # "" in a template without one
        return ()
    changes = change_kinds.classify_changes(difference)
    joins = difference.algorithm == ALGORITHM
    folding = [change.number for change in changes if change.folds and joins]
    joined = set(folding[1:])
    return tuple(
        ClaimPiece(
            change,
            len(joined) if change.number in folding[:1] else 0,
            *differences.words_around(difference, change.number),
        )
        for change in changes
        if change.number not in joined
    )


@register.simple_tag
def excerpt(change: change_kinds.ClassifiedChange) -> SafeString:
    """The removed and the added text of a change, cut to a line or two."""
    return mark_safe(differences.render_excerpt(change))  # noqa: S308 (all of its text is escaped)


@register.simple_tag
def said_of_piece(answers: Mapping[str, Any] | None, field: str, number: int) -> str:
    """The earlier answer about a changed piece: "explained", "collateral" or ""."""
    said = (answers or {}).get(field) or {}
    return str(said.get(str(number), "")) if isinstance(said, Mapping) else ""
