"""Errors in worked solutions: in a result, in a number taken from the prompt, in the answer."""

import re
from collections.abc import Iterator

from perturbers.changes import Change, Source
from perturbers.numbers import Number, changed, numbers

_RESULT = re.compile(r"=\s*(?:\\?\$)?\s*\Z")
_BOXED = re.compile(r"\\boxed\{[^{}\n]*\}")


def results(source: Source) -> Iterator[Change]:
    """One change for each number that is the result of a calculation: it follows “=”, and behind
    it nothing more is calculated."""
    for one in numbers(source.gold):
        if _RESULT.search(source.gold, max(0, one.start - 10), one.start):
            yield changed(source, one, "The result {} of a calculation is changed to {}.")


def copied(source: Source) -> Iterator[Change]:
    """One change for the first place of each number that the gold answer has from the prompt."""
    said = {one.text for one in numbers(source.prompt)}
    seen: set[str] = set()
    for one in numbers(source.gold):
        if one.text in said and one.text not in seen:
            seen.add(one.text)
            yield changed(source, one, "The number {} of the prompt is copied as {}.")


def final(source: Source) -> Iterator[Change]:
    """One change: of the last number that is boxed, or else of the last of all."""
    one = _answer(source.gold)
    if one:
        yield changed(source, one, "The number {} of the final answer is changed to {}.")


def _answer(text: str) -> Number | None:
    found = list(numbers(text))
    boxes = [box.span() for box in _BOXED.finditer(text)]
    if boxes:
        start, end = boxes[-1]
        found = [one for one in found if start <= one.start < end]
    return found[-1] if found else None
