"""Remove Markdown markup: the words stay, but the layout is lost."""

import re
from collections.abc import Iterator

from perturbers.changes import PerturberInput, TextChange, TextEdit
from perturbers.sentences import is_prose

_MARKS = re.compile(r"^[ \t]*(?:#{1,6}|[-*+>])[ \t]+|\*\*|__", re.MULTILINE)


def find_markup(source: PerturberInput) -> Iterator[TextChange]:
    """Yield one change that removes all marks of headings, lists, quotations and bold type; no
    change if there are no marks."""
    found = (one.span() for one in _MARKS.finditer(source.gold))
    edits = tuple(TextEdit(*span, "") for span in found if is_prose(source.gold, *span))
    if edits:
        yield TextChange(
            edits, "The marks of headings, lists and bold type are gone; no word differs."
        )
