"""Remove sentences from a text, and swap sentences or steps."""

from collections.abc import Iterator
from itertools import pairwise

from perturbers.changes import PerturberInput, TextChange, TextEdit
from perturbers.negation import shorten_sentence
from perturbers.sentences import NUMBERED, Sentence, is_prose, split_sentences

SHORTEST = 5


def find_removable(source: PerturberInput) -> Iterator[TextChange]:
    """Yield one change per sentence that follows another in the same line. The space between the
    two is also removed."""
    for first, second in _neighbours(source.gold):
        yield TextChange(
            (TextEdit(first.end, second.end, ""),),
            f"The sentence “{shorten_sentence(second.of(source.gold))}” is left out.",
        )


def find_swappable(source: PerturberInput) -> Iterator[TextChange]:
    """Yield one change per pair of consecutive sentences in a line."""
    for first, second in _neighbours(source.gold):
        yield _swap(source.gold, first, second, "sentences")


def find_swappable_steps(source: PerturberInput) -> Iterator[TextChange]:
    """Yield one change per pair of consecutive entries of a numbered list, if each is on one line.
    The numbers stay in place."""
    text, start, entries = source.gold, 0, []
    for number, line in enumerate(text.split("\n")):
        mark = NUMBERED.match(line)
        if mark and line[mark.end() :].strip():
            entries.append(Sentence(start + mark.end(), start + len(line.rstrip()), number))
        start += len(line) + 1
    for first, second in pairwise(entries):
        if second.line - first.line <= 2 and first.of(text) != second.of(text):
            yield _swap(text, first, second, "steps")


def _neighbours(text: str) -> Iterator[tuple[Sentence, Sentence]]:
    """Yield pairs of consecutive sentences in a line that are both long enough to be meaningful."""
    for first, second in pairwise(split_sentences(text)):
        longs = all(len(one.of(text).split()) >= SHORTEST for one in (first, second))
        if first.line == second.line and longs and is_prose(text, first.start, second.end):
            yield first, second


def _swap(text: str, first: Sentence, second: Sentence, what: str) -> TextChange:
    between = text[first.end : second.start]
    one, other = first.of(text), second.of(text)
    return TextChange(
        (TextEdit(first.start, second.end, f"{other}{between}{one}"),),
        f"The {what} “{shorten_sentence(one)}” and “{shorten_sentence(other)}” have changed "
        "places.",
    )
