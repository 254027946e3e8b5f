"""Text without the marks of Markdown: the words stay, the layout is lost."""

import re
from collections.abc import Iterator

from perturbers.changes import Change, Edit, Source
from perturbers.sentences import is_prose

_MARKS = re.compile(r"^[ \t]*(?:#{1,6}|[-*+>])[ \t]+|\*\*|__", re.MULTILINE)


def find(source: Source) -> Iterator[Change]:
    """One change for all marks of headings, lists, quotations and bold type; none without any."""
    found = (one.span() for one in _MARKS.finditer(source.gold))
    edits = tuple(Edit(*span, "") for span in found if is_prose(source.gold, *span))
    if edits:
        yield Change(edits, "The marks of headings, lists and bold type are gone; no word differs.")
