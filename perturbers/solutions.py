"""Errors in worked solutions: in a result, in a number from the prompt, in the final answer."""

import re
from collections.abc import Iterator

from perturbers.changes import PerturberInput, TextChange
from perturbers.numbers import Number, change_number, find_digit_numbers

_RESULT = re.compile(r"=\s*(?:\\?\$)?\s*\Z")
_BOXED = re.compile(r"\\boxed\{[^{}\n]*\}")


def find_results(source: PerturberInput) -> Iterator[TextChange]:
    """Yield one change per number that is the result of a calculation: the number follows “=”, and
    no further calculation follows the number."""
    for one in find_digit_numbers(source.gold):
        if _RESULT.search(source.gold, max(0, one.start - 10), one.start):
            yield change_number(source, one, "The result {} of a calculation is changed to {}.")


def find_copied_numbers(source: PerturberInput) -> Iterator[TextChange]:
    """Yield one change per number of the gold answer that is also in the prompt, where the number
    first occurs in the answer."""
    said = {one.text for one in find_digit_numbers(source.prompt)}
    seen: set[str] = set()
    for one in find_digit_numbers(source.gold):
        if one.text in said and one.text not in seen:
            seen.add(one.text)
            yield change_number(source, one, "The number {} of the prompt is copied as {}.")


def find_final_answer(source: PerturberInput) -> Iterator[TextChange]:
    """Yield one change: of the last boxed number or, without a box, of the last number."""
    one = _find_answer(source.gold)
    if one:
        yield change_number(source, one, "The number {} of the final answer is changed to {}.")


def _find_answer(text: str) -> Number | None:
    found = list(find_digit_numbers(text))
    boxes = [box.span() for box in _BOXED.finditer(text)]
    if boxes:
        start, end = boxes[-1]
        found = [one for one in found if start <= one.start < end]
    return found[-1] if found else None
