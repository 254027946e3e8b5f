"""Unicode's normal forms, in time that grows with the length of a text."""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Literal

MOST_MARKS = 30
"""Marks behind a letter, as in Unicode's stream-safe text format (UAX #15, section 13)."""


def normalise(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return the text in this form. Of more than `MOST_MARKS` marks behind each other, which no
    writing has, the others are left out: the marks of a letter are sorted, in time that grows with
    the square of their number."""
    if text.isascii():
        return text
    return unicodedata.normalize(form, _long_runs().sub(r"\1", text))


@cache
def _long_runs() -> re.Pattern[str]:
    """What matches a row of too many marks, of which the group is kept."""
    # Some signs are none of these themselves, but consist of marks.
    points = (
        point
        for point in range(0x300, 0x20000)
        if unicodedata.combining(unicodedata.normalize("NFKD", chr(point))[0])
    )
    marks = character_class(points)
    return re.compile(f"([{marks}]{{{MOST_MARKS}}})[{marks}]+")


def character_class(members: Iterable[int]) -> str:
    """Return what a regular expression needs between [ and ] to match these sorted code points."""
    ranges: list[list[int]] = []
    for point in members:
        if ranges and point == ranges[-1][1] + 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return "".join(f"\\U{first:08X}-\\U{last:08X}" for first, last in ranges)
