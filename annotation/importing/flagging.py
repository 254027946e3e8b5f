"""What asks for a look at the two texts that a task type compares; pure."""

from collections.abc import Mapping
from typing import Any


def of(texts: Mapping[str, Any], compared: tuple[str, str] | None) -> tuple[str, ...]:
    """Says "identical" or "white-space-only", where that is all that the two texts differ in."""
    if compared is None:
        return ()
    before, after = (texts.get(name, "") for name in compared)
    if before == after:
        return ("identical",)
    if not _differ_in_a_word(before, after) and before.split() == after.split():
        return ("white-space-only",)
    return ()


def _differ_in_a_word(before: str, after: str) -> bool:
    """Whether the first characters that differ both belong to a word, which most changes tell."""
    alike, unlike = 0, min(len(before), len(after)) + 1
    while unlike - alike > 1:
        middle = (alike + unlike) // 2
        same = before[alike:middle] == after[alike:middle]
        alike, unlike = (middle, unlike) if same else (alike, middle)
    first = before[alike : alike + 1], after[alike : alike + 1]
    return all(one and not one.isspace() for one in first)
