"""Tags that show differences of two texts, rendered by `annotation.items.rendering.differences`."""

from collections.abc import Mapping
from typing import Any

from django import template
from django.utils.safestring import SafeString, mark_safe

from annotation.items.diffing.difference import ALGORITHM, Difference
from annotation.items.rendering import change_kinds, differences
from annotation.items.rendering.differences import DifferenceRenderer

register = template.Library()


@register.simple_tag
def diff_inline(difference: Difference) -> SafeString:
    """Show both texts as one text: for each change, the removed text is followed by the added
    text."""
    return mark_safe(DifferenceRenderer(difference).inline())  # noqa: S308 (all of its text is escaped)


@register.simple_tag
def pieces_of(
    difference: Difference | None,
) -> tuple[tuple[change_kinds.ClassifiedChange, int], ...]:
    """The changes that a claim is checked for, in order, each with the number of others that it
    stands for: all changes of formatting are one piece, as they are one stop for the reader. On a
    diff of the former algorithm, each was a piece of its own."""
    if not difference:  # "" in a template without one
        return ()
    changes = change_kinds.classify_changes(difference)
    if difference.algorithm != ALGORITHM:
        return tuple((change, 0) for change in changes)
    folding = [change for change in changes if change.folds]
    return tuple(
        (change, len(folding) - 1 if change.folds else 0)
        for change in changes
        if not change.folds or change is folding[0]
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
