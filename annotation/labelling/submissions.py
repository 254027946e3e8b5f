"""What a page sends of an item: which state of it the page showed, and what the person says."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ShownItem:
    """What was on the page; `key` is the signed one that the page was made with."""

    key: str
    item_key: str
    revision: int


@dataclass(frozen=True)
class SubmittedAnswers:
    """Answers by field as they were given, a comment, and how many seconds it took to answer."""

    answers: Mapping[str, object]
    comment: str = ""
    seconds: float | None = None
